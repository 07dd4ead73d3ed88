"""`logprobs.*`: do the tokens with their log-probabilities make the text?"""

import itertools
from collections.abc import Iterator

from streamgauge.conformance.assembly import Choice, answer_in
from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.law import given
from streamgauge.conformance.logprobs import AS_ID, REPLACEMENT, Entry, entries_of, is_partial, is_special, spells
from streamgauge.conformance.posting import not_plain
from streamgauge.conformance.predicates import ended_answer, is_chat, valid_request
from streamgauge.conformance.tokens import counts, detail, final_usage
from streamgauge.contract.contract import COMPLETIONS, Contract, Operation
from streamgauge.outcomes import Level, Outcome
from streamgauge.text import one_line
from streamgauge.wire.exchange import Evidence

__all__: list[str] = []


def _choices(case: Case) -> list[Choice]:
    return [choice for choice in answer_in(case.exchange).choices.values() if entries_of(choice)]


def _in_completions(operation: Operation, contract: Contract) -> bool:
    return operation.family == COMPLETIONS


@check(
    "logprobs.bytes",
    Level.MUST,
    "The bytes of a token are those of its text",
    requirement="bytes: the token's bytes; put together, those of several tokens make a character.",
    source="/responses/200/content/application~1json/schema (logprobs of a choice)",
    applies=lambda case: (
        ended_answer(case)
        and any(isinstance(entry.data, list) for choice in _choices(case) for entry in entries_of(choice))
    ),
    concerns=is_chat,
    absent="no answer with the bytes of tokens",
)
def token_bytes(case: Case) -> Iterator[Departure]:
    """Where a token is a part of a character, its text cannot show it, and the bytes are all there is."""
    for choice in _choices(case):
        for entry in entries_of(choice):
            text = entry.text.encode("utf-8", "surrogatepass")
            if not isinstance(entry.data, list) or AS_ID.fullmatch(entry.text) or is_special(entry.text):
                continue
            if REPLACEMENT in entry.text:
                if entry.data == list(text) and REPLACEMENT not in choice.generated:
                    yield Departure("the bytes of a part of a character", f"those of U+FFFD: {entry.data}")
                    return
            elif not _spelt(entry):
                yield Departure(f"{list(text)}, the bytes of {entry.text!r}", one_line(repr(entry.data), 120))
                return


def _spelt(entry: Entry) -> bool:
    """Whether the bytes of a token are those of its text, beside the part of a character, which the text cannot show."""
    if not all(type(byte) is int and 0 <= byte < 256 for byte in entry.data):
        return False
    whole = entry.text.encode("utf-8", "surrogatepass")
    return bytes(entry.data) == whole or bytes(entry.data).decode("utf-8", "ignore") == entry.text


_BESIDE = {"logprobs", "top_logprobs", "n", "seed", "stream_options", "user", "request_id", "return_token_ids"}
"""What may be asked for where tokens and text are compared: nothing that hides a part of what was generated."""


def _comparable(case: Case) -> bool:
    """An answer whose tokens are all told, and nothing else."""
    if not (ended_answer(case) and bool(_choices(case)) and valid_request(case) and not_plain(case) <= _BESIDE):
        return False
    usage = final_usage(case.exchange)
    thoughts = detail(usage[0], "completion_tokens_details", "reasoning_tokens") if usage else None
    return not thoughts and not any(choice.reasoning or choice.calls for choice in _choices(case))


def _readable(entries: tuple[Entry, ...]) -> bool:
    """Whether the texts of the tokens show all of them."""
    return bool(entries) and not any(
        is_partial(entry.text) or AS_ID.fullmatch(entry.text) or _has_more_bytes(entry) for entry in entries
    )


def _has_more_bytes(entry: Entry) -> bool:
    """Whether a part of a character is told by its bytes alone."""
    return isinstance(entry.data, list) and len(entry.data) > len(entry.text.encode("utf-8", "surrogatepass"))


@check(
    "logprobs.text",
    Level.SHOULD,
    "The tokens put together are the text",
    requirement="logprobs: one entry for each token of the text.",
    source=CLIENTS,
    applies=lambda case: (
        _comparable(case) and any(_readable(entries_of(choice)) and choice.text for choice in _choices(case))
    ),
    absent="no answer with text and with log-probabilities of all its tokens",
    needs=(Evidence.REQUEST,),
)
def text(case: Case) -> Iterator[Departure]:
    """Whoever marks a text by its probabilities finds nothing; tokens as a vocabulary has them (`Ġthe`) are no text."""
    for choice in _choices(case):
        entries = entries_of(choice)
        if choice.text and _readable(entries) and not spells([entry.text for entry in entries], choice.text):
            joined = "".join(entry.text for entry in entries)
            yield Departure(one_line(repr(choice.text), 120), one_line(repr(joined), 120))
            return


@check(
    "logprobs.count",
    Level.SHOULD,
    "There is an entry for each completion token",
    requirement="logprobs: one entry for each token of the text.",
    source=CLIENTS,
    applies=lambda case: _comparable(case) and _counted(case) is not None,
    absent="no answer that the limit cut, with log-probabilities and usage",
    needs=(Evidence.REQUEST,),
)
def count(case: Case) -> Iterator[Departure]:
    """A token without an entry leaves a hole in every sum; where the limit cut all choices, no end token is missing."""
    wanted, told = _counted(case) or (0, 0)
    if wanted != told:
        yield Departure(f"{wanted} entries, one for each completion token", str(told))


def _counted(case: Case) -> tuple[int, int] | None:
    """Completion tokens and entries; None where an end may be told in one of them only."""
    choices = list(answer_in(case.exchange).choices.values())
    generated = counts(case.exchange, "completion_tokens")
    if generated is None or len(choices) != len(_choices(case)):
        return None
    if any(choice.finish != "length" for choice in choices):
        return None
    return generated[0], sum(len(entries_of(choice)) for choice in choices)


def _steps(entries: tuple[Entry, ...]) -> Iterator[tuple[Entry, int]]:
    """Each token whose length nobody counts otherwise, with how far the next one's offset lies behind its own."""
    for entry, following in itertools.pairwise(entries):
        if (
            entry.text.isascii()
            and not is_partial(entry.text)
            and type(entry.offset) is int
            and type(following.offset) is int
        ):
            yield entry, following.offset - entry.offset


def _bases(case: Case) -> set[int]:
    """Where the text may begin: at 0, or behind a prompt that is not echoed."""
    prompt = given(case).get("prompt")
    if not isinstance(prompt, str) or given(case).get("echo"):
        return {0}
    return {0, len(prompt), len(prompt.encode("utf-8", "surrogatepass"))}


@check(
    "logprobs.offsets",
    Level.SHOULD,
    "`text_offset` says where each token begins",
    requirement="text_offset: where each token begins in the text.",
    source=CLIENTS,
    applies=lambda case: (
        valid_request(case)
        and ended_answer(case)
        and bool(_choices(case))
        and not_plain(case) <= _BESIDE | {"echo"}
        and isinstance(given(case).get("prompt"), str)
        and any(type(entry.offset) is int for choice in _choices(case) for entry in entries_of(choice))
    ),
    concerns=_in_completions,
    absent="no answer with offsets",
    needs=(Evidence.REQUEST,),
)
def offsets(case: Case) -> Iterator[Departure]:
    """Counted from the prompt's beginning, as OpenAI did, or from the text's: which one is shown; streams go on counting."""
    for choice in _choices(case):
        entries = entries_of(choice)
        for entry, step in _steps(entries):
            trimmed = entry is entries[0] and step == len(entry.text.lstrip())
            if step != len(entry.text) and not trimmed and not (step == 0 and is_special(entry.text)):
                yield Departure(f"{len(entry.text)} characters behind {entry.text!r}", str(step))
                return
        first = entries[0].offset if entries else 0
        if type(first) is int and first not in _bases(case):
            yield Departure(" or ".join(map(str, sorted(_bases(case)))) + " as the first", str(first))
            return
        if first:
            yield Departure("0 as the first", f"{first}: counted from the prompt's beginning", outcome=Outcome.PASS)
            return
