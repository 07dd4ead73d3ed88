"""`prompt.*`: is the prompt read in all its forms, and told where that is asked for?"""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.law import BESIDE, given, ignored, law
from streamgauge.conformance.logprobs import entries_of, is_partial, is_special, spells
from streamgauge.conformance.once import once
from streamgauge.conformance.posting import not_plain
from streamgauge.conformance.predicates import count_of_choices, ended_answer, valid_request
from streamgauge.conformance.prompt_reports import counts_prompts, members_of, text_by_ids
from streamgauge.conformance.tokens import counts
from streamgauge.contract.contract import COMPLETIONS, Contract, Operation
from streamgauge.outcomes import Level, Outcome
from streamgauge.text import one_line
from streamgauge.wire.exchange import Evidence, Exchange

__all__: list[str] = []

_REQUEST = "/requestBody/content/application~1json/schema/properties"
_SHOWN = 120


def _in_completions(operation: Operation, contract: Contract) -> bool:
    return operation.family == COMPLETIONS


def _prompt_tokens(exchange: Exchange) -> int | None:
    """As an answer counts them: 0 is no count, as `usage.counted` says."""
    return next(iter(counts(exchange, "prompt_tokens") or ()), 0) or None


def _ids(prompt: Any) -> list[list[int]]:
    """The prompts that are given by token ids; empty where they are given otherwise."""
    if not (isinstance(prompt, list) and prompt):
        return []
    prompts = prompt if isinstance(prompt[0], list) else [prompt]
    good = all(isinstance(ids, list) and ids and all(type(each) is int for each in ids) for ids in prompts)
    return prompts if good else []


def _texts(prompt: Any) -> list[str]:
    """The prompts that are given as texts."""
    texts = prompt if isinstance(prompt, list) else [prompt]
    return [each for each in texts if isinstance(each, str)]


_LONG = 200
_LONGEST = 1000
"""No context of any model is smaller."""

_TIMES = 4
"""A prompt so many times as long as another has more tokens by any vocabulary."""


@once
def _costs(case: Case) -> dict[str, int]:
    """Prompts that were asked plainly → how many tokens their answers say that they have."""
    found = {}
    for exchange in case.others:
        plain = dataclasses.replace(case, exchange=exchange)
        sent, count = exchange.sent, _prompt_tokens(exchange) if exchange.status == 200 else None
        if count is not None and isinstance(sent, dict) and valid_request(plain) and not not_plain(plain):
            found[sent["prompt"]] = count
    return found


@once
def _shortest(case: Case) -> tuple[str, int] | None:
    """The shortest plain prompt, and its tokens."""
    return min(_costs(case).items(), key=lambda each: len(each[0]), default=None)


def _longer(case: Case) -> bool:
    shortest = _shortest(case)
    return shortest is not None and len(given(case)["prompt"]) >= _TIMES * len(shortest[0])


@law(
    "prompt.read",
    Level.MUST,
    "A long prompt is read to its end: it costs more tokens than a short one",
    properties="prompt",
    requirement="prompt: the text to continue. prompt_tokens: number of tokens in the prompt.",
    source=f"{_REQUEST}/prompt",
    asks=lambda asked: isinstance(asked.get("prompt"), str) and _LONG <= len(asked["prompt"]) <= _LONGEST,
    applies=lambda case: _prompt_tokens(case.exchange) is not None and _longer(case),
    concerns=_in_completions,
    absent="no answer with usage to a long prompt beside one to a short prompt",
)
def read(case: Case) -> Iterator[Departure]:
    """
    Equal counts come from a server that reads something else; how they should differ depends on the vocabulary.

    One that always says the same does not count, whatever it reads.
    """
    shortest, own = _shortest(case), _prompt_tokens(case.exchange)
    if shortest is None or own is None or own > shortest[1]:
        return
    told = f"{own} tokens for {len(given(case)['prompt'])} characters, {shortest[1]} for {len(shortest[0])}"
    if own == shortest[1]:
        ignores = counts_prompts(case)
        yield ignored("more tokens for more text", told) if ignores else Departure("more tokens for more text", told)
    else:
        yield Departure("more tokens for more text", told, outcome=Outcome.INCONCLUSIVE)


@law(
    "prompt.token-ids",
    Level.SHOULD,
    "A prompt of token ids costs as many tokens as it has",
    properties="prompt",
    requirement="prompt: token ids. prompt_tokens: number of tokens in the prompt.",
    source=f"{_REQUEST}/prompt",
    asks=lambda asked: bool(_ids(asked.get("prompt"))),
    applies=lambda case: _prompt_tokens(case.exchange) is not None,
    concerns=_in_completions,
)
def token_ids(case: Case) -> Iterator[Departure]:
    """One that is read as text (`[1, 2]`) has more; a server may put one token before each prompt."""
    prompts, told = _ids(given(case)["prompt"]), _prompt_tokens(case.exchange)
    least = sum(map(len, prompts))
    if told is not None and not least <= told <= least + len(prompts):
        yield Departure(f"{least} prompt tokens", str(told))


@law(
    "prompt.order",
    Level.MUST,
    "Of several prompts, choice i*n + j continues prompt i",
    properties="prompt",
    requirement="prompt: several of them, each of which gets choices of its own.",
    source=f"{_REQUEST}/prompt",
    asks=lambda asked: len(set(_texts(asked.get("prompt")))) > 1 and asked.get("echo") is True,
    needs_also=("echo", "n"),
    applies=lambda case: count_of_choices(case) is not None and bool(_begun(case)),
    concerns=_in_completions,
    absent="no request with several prompts that are echoed",
)
def order(case: Case) -> Iterator[Departure]:
    """The echo tells which prompt a choice belongs to; how many there are is for `response.choices`."""
    prompts = _texts(given(case)["prompt"])
    n = (count_of_choices(case) or 0) // len(prompts)
    for index, begins in _begun(case).items():
        expected = prompts[index // n] if index // n < len(prompts) else None
        if begins != expected:
            yield Departure(f"choice {index} continues {expected!r}", f"{begins!r}")
            return


def _begun(case: Case) -> dict[int, str]:
    """The prompt that each choice begins with; choices that begin with none of them are left out."""
    prompts = sorted(_texts(given(case)["prompt"]), key=len, reverse=True)
    found = {}
    for index, choice in answer_in(case.exchange).choices.items():
        text = choice.text.lstrip()
        begun = next((prompt for prompt in prompts if text.startswith(prompt.lstrip())), None)
        if begun is not None:
            found[index] = begun
    return found


def _known(case: Case) -> list[str]:
    """The texts of the request's prompts; of one that is given by ids, if an answer told these as the ids of a text."""
    by_ids = text_by_ids(case)
    return [by_ids] if by_ids else _texts(given(case)["prompt"])


def _asks_echo(sent: Mapping[str, Any]) -> bool:
    return sent.get("echo") is True and bool(_texts(sent.get("prompt")) or _ids(sent.get("prompt")))


def _echoed(prompt: str, text: str) -> bool:
    """Whether a text begins with the prompt; a mark of the vocabulary may stand before it."""
    before, found, _ = text.partition(prompt)
    return bool(found) and is_special(before.strip())


@law(
    "prompt.echo",
    Level.MUST,
    "The answer begins with its prompt where `echo` asks for it",
    properties="echo",
    requirement="echo: put the prompt into the answer.",
    source=f"{_REQUEST}/echo",
    asks=_asks_echo,
    beside=BESIDE | {"prompt", "max_tokens"},
    applies=lambda case: bool(_known(case)) and bool(answer_in(case.exchange).choices),
    concerns=_in_completions,
)
def echo(case: Case) -> Iterator[Departure]:
    """Which of several prompts a choice begins with is `prompt.order`'s."""
    prompts = _known(case)
    for choice in answer_in(case.exchange).choices.values():
        if not any(_echoed(prompt, choice.text) for prompt in prompts):
            yield ignored(
                f"a text that begins with {one_line(prompts[0], _SHOWN)!r}", repr(one_line(choice.text, _SHOWN))
            )
            return


@law(
    "prompt.echo-only",
    Level.SHOULD,
    "With `echo` and no token to generate, the prompt alone comes back",
    properties="echo",
    requirement="max_tokens: 0 with `echo` only scores the prompt.",
    source=CLIENTS,
    asks=lambda asked: _asks_echo(asked) and asked.get("max_tokens") == 0 and len(_texts(asked["prompt"])) == 1,
    needs_also=("max_tokens",),
    applies=lambda case: any(choice.text for choice in answer_in(case.exchange).choices.values()),
    concerns=_in_completions,
    absent="no request for the echo alone",
)
def echo_only(case: Case) -> Iterator[Departure]:
    """Evaluations score texts so; a token that is generated all the same is scored with them."""
    (prompt,) = _texts(given(case)["prompt"])
    generated = counts(case.exchange, "completion_tokens")
    for choice in answer_in(case.exchange).choices.values():
        before, found, behind = choice.text.partition(prompt)
        if found and is_special(before.strip()) and behind.strip():
            yield Departure("nothing behind the prompt", repr(one_line(behind, _SHOWN)))
            return
    if generated and generated[0]:
        yield Departure("0 completion tokens", str(generated[0]))


def _scored(case: Case) -> bool:
    """An echo of one text with log-probabilities of tokens that have a text."""
    sent = given(case)
    if not (valid_request(case) and sent.get("echo") is True and isinstance(sent.get("prompt"), str)):
        return False
    choices = answer_in(case.exchange).choices.values()
    return (
        not_plain(case) <= BESIDE
        and ended_answer(case)
        and any(map(entries_of, choices))
        and all(_echoed(sent["prompt"], choice.text) for choice in choices)
        and not any(is_partial(entry.text) for choice in choices for entry in entries_of(choice))
    )


@check(
    "prompt.echo-logprobs",
    Level.SHOULD,
    "The log-probabilities of an echoed text begin with those of the prompt",
    requirement="logprobs: one entry for each token of the text, which the echoed prompt is a part of.",
    source=CLIENTS,
    applies=_scored,
    concerns=_in_completions,
    absent="no echo with log-probabilities",
    needs=(Evidence.REQUEST,),
)
def echo_logprobs(case: Case) -> Iterator[Departure]:
    """Whoever scores a text has nothing without them."""
    for choice in answer_in(case.exchange).choices.values():
        tokens = [entry.text for entry in entries_of(choice)]
        if not spells(tokens, choice.text):
            yield Departure(
                f"the tokens of {one_line(choice.text, _SHOWN)!r}", f"those of {one_line(''.join(tokens), _SHOWN)!r}"
            )
            return


@law(
    "prompt.suffix",
    Level.MUST,
    "A suffix is read: with it a prompt costs more tokens",
    properties="suffix",
    requirement="suffix: what follows after the text that is to be filled in.",
    source=f"{_REQUEST}/suffix",
    asks=lambda asked: isinstance(asked.get("suffix"), str) and len(asked["suffix"].split()) > 1,
    applies=lambda case: (
        _prompt_tokens(case.exchange) is not None and _without_suffix(case) is not None and counts_prompts(case)
    ),
    absent="no answer with usage to a prompt with a suffix and to the same without",
)
def suffix(case: Case) -> Iterator[Departure]:
    """What the model makes of it cannot be seen; that the model was given it can."""
    own, without = _prompt_tokens(case.exchange), _without_suffix(case)
    if own is None or without is None or own > without:
        return
    told = f"{own} with the suffix, {without} without"
    if own == without:
        yield ignored("more prompt tokens with a suffix than without", told)
    else:
        yield Departure("more prompt tokens with a suffix than without", told, outcome=Outcome.INCONCLUSIVE)


def _without_suffix(case: Case) -> int | None:
    prompt = given(case).get("prompt")
    return _costs(case).get(prompt) if isinstance(prompt, str) else None


@law(
    "prompt.text",
    Level.MUST,
    "The prompt that the chat template made is told where that is asked for",
    properties="return_prompt_text",
    requirement="If true, the response will include `prompt_text` containing the prompt string produced by chat templating.",
    source=f"{_REQUEST}/return_prompt_text",
    asks=lambda asked: asked.get("return_prompt_text") is True and bool(_last_words(asked)),
)
def prompt_text(case: Case) -> Iterator[Departure]:
    """It holds what the user said last."""
    told = [value for value, _ in members_of(case, "prompt_text")]
    words = _last_words(given(case))
    if not told:
        yield ignored("prompt_text", "none")
    elif not (isinstance(told[0], str) and words in told[0]):
        yield Departure(f"a text with {one_line(words, _SHOWN)!r} in it", repr(one_line(str(told[0]), _SHOWN)))


def _last_words(sent: Mapping[str, Any]) -> str:
    messages = sent.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    content = last.get("content") if isinstance(last, dict) and last.get("role") == "user" else None
    return content.strip() if isinstance(content, str) else ""
