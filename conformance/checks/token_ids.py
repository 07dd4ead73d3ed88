"""`tokens.*`: are tokens told as ids where that is asked for, nowhere else, and are they the answer's?"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from streamgauge.conformance.assembly import answer_in
from streamgauge.conformance.check import Case, Departure, check
from streamgauge.conformance.law import BESIDE, given, ignored, law
from streamgauge.conformance.logprobs import AS_ID, entries_of
from streamgauge.conformance.once import once
from streamgauge.conformance.posting import not_plain
from streamgauge.conformance.predicates import chunked, ended, ended_answer, object_answer, valid_request
from streamgauge.conformance.prompt_reports import ids_of_prompts, members_of, text_by_ids
from streamgauge.conformance.questions import answer_of
from streamgauge.conformance.tokens import counts
from streamgauge.conformance.told_ids import ids_of_choice
from streamgauge.contract.contract import CHAT, COMPLETIONS, Contract, Operation
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Evidence

__all__: list[str] = []

_REQUEST = "/requestBody/content/application~1json/schema/properties"


def _tells_ids(operation: Operation, contract: Contract) -> bool:
    return "return_token_ids" in operation.properties


@law(
    "tokens.ids",
    Level.MUST,
    "Token ids that were asked for are told, those of the prompt and those of the text",
    properties="return_token_ids",
    requirement="If specified, the result will include token IDs alongside the generated text.",
    source=f"{_REQUEST}/return_token_ids",
    asks=lambda asked: asked.get("return_token_ids") is True,
    applies=lambda case: any(choice.speaks for choice in answer_in(case.exchange).choices.values()),
)
def ids(case: Case) -> Iterator[Departure]:
    """How many they are is `usage.tokens-told`'s."""
    texts = [ids_of_choice(choice) for choice in answer_in(case.exchange).choices.values() if choice.speaks]
    prompts = ids_of_prompts(case)
    if prompts is None and not any(each is not None for each in texts):
        yield ignored("token_ids and prompt_token_ids", "neither")
    elif prompts is None:
        yield Departure("prompt_token_ids", "token_ids alone")
    elif any(each is None for each in texts):
        yield Departure("token_ids of each choice", "prompt_token_ids alone")


@check(
    "tokens.not-requested",
    Level.SHOULD,
    "No token ids are told where nobody asked for them",
    requirement="return_token_ids: default: null; if specified, the result will include token IDs.",
    source=f"{_REQUEST}/return_token_ids",
    applies=lambda case: (
        (object_answer(case) or chunked(case)) and valid_request(case) and not given(case).get("return_token_ids")
    ),
    concerns=_tells_ids,
    needs=(Evidence.REQUEST,),
)
def not_requested(case: Case) -> Iterator[Departure]:
    """They are several times as long as the text."""
    found = [name for name in ("prompt_token_ids", "token_ids") if any(ids for ids, _ in members_of(case, name))]
    for choice in answer_in(case.exchange).choices.values():
        found += [name for part in choice.parts for name in ("prompt_token_ids", "token_ids") if part.get(name)]
    if found:
        yield Departure("no token ids, or null", found[0])


@check(
    "tokens.first-chunk",
    Level.MUST,
    "What a stream tells of its prompt is in its first chunk only",
    requirement=(
        "In streaming mode, prompt_token_ids is included only in the first chunk, and token_ids contains the delta tokens "
        "for each chunk."
    ),
    source=f"{_REQUEST}/return_token_ids",
    applies=lambda case: ended(case) and valid_request(case) and bool(_about_prompt(case)),
    concerns=lambda operation, contract: operation.family == CHAT and _tells_ids(operation, contract),
    absent="no stream that tells the tokens or the text of its prompt",
    needs=(Evidence.REQUEST,),
)
def first_chunk(case: Case) -> Iterator[Departure]:
    """In every chunk, a long prompt is sent as often as the answer has tokens."""
    first = case.exchange.stream.payloads[0]
    for name, chunk in _about_prompt(case):
        if chunk is not first:
            yield Departure(f"{name} in the first chunk only", "in a later one", event=chunk.event)
            return


def _about_prompt(case: Case) -> list[tuple[str, Any]]:
    names = ("prompt_token_ids", "prompt_text")
    return [(name, chunk) for name in names for _, chunk in members_of(case, name) if chunk is not None]


def _as_ids(asked: Mapping[str, Any]) -> bool:
    logprobs = asked.get("logprobs")
    return asked.get("return_tokens_as_token_ids") is True and (
        logprobs is True or (type(logprobs) is int and logprobs > 0)
    )


@law(
    "tokens.as-ids",
    Level.MUST,
    "Tokens are told as `token_id:N` where that is asked for",
    properties="return_tokens_as_token_ids",
    requirement=(
        "If specified with 'logprobs', tokens are represented as strings of the form 'token_id:{token_id}' so that tokens "
        "that are not JSON-encodable can be identified."
    ),
    source=f"{_REQUEST}/return_tokens_as_token_ids",
    asks=_as_ids,
    needs_also=("logprobs", "top_logprobs"),
    applies=lambda case: any(map(entries_of, answer_in(case.exchange).choices.values())),
)
def as_ids(case: Case) -> Iterator[Departure]:
    """The likeliest tokens too; where the ids are told as well, they have to be the same."""
    for choice in answer_in(case.exchange).choices.values():
        entries = entries_of(choice)
        named = [AS_ID.fullmatch(entry.text) for entry in entries]
        tops = [token for entry in entries for token, _ in entry.top if not AS_ID.fullmatch(token)]
        known = ids_of_choice(choice)
        if entries and not any(named):
            yield ignored("token_id:N for each token", repr(entries[0].text))
        elif odd := [entry.text for entry, name in zip(entries, named, strict=True) if not name] + tops:
            yield Departure("token_id:N for each token", repr(odd[0]))
        elif known is not None and len(known) == len(named) and known != [int(name[1]) for name in named if name]:
            yield Departure(f"the choice's own token_ids {known}"[:120], str([entry.text for entry in entries])[:120])
        else:
            continue
        return


def _said(sent: Mapping[str, Any], prompt: Any) -> str:
    """A request but for its form, with another prompt."""
    left = {
        name: value for name, value in sent.items() if name not in ("stream", "stream_options") and value is not None
    }
    return json.dumps({**left, "prompt": prompt}, sort_keys=True)


@once
def _answers(case: Case) -> dict[str, list[str]]:
    """What was asked without sampling, but for its form → the text of each answer."""
    found: dict[str, list[str]] = {}
    for exchange in case.others:
        sent, answer = exchange.sent, answer_of(case, exchange) if exchange.status == 200 else None
        if answer and isinstance(sent, dict) and sent.get("temperature") == 0 and exchange.request.credential.usual:
            texts = [choice.text for choice in answer.choices.values()]
            found.setdefault(_said(sent, sent.get("prompt")), []).append("\n".join(texts))
    return found


def _by_ids(asked: Mapping[str, Any]) -> bool:
    prompt = asked.get("prompt")
    if not (isinstance(prompt, list) and prompt and asked.get("temperature") == 0):
        return False
    return all(type(each) is int for each in prompt)


_REPEATS = 3
"""So many equal answers tell that a question is always answered so."""


@law(
    "tokens.roundtrip",
    Level.MUST,
    "A prompt's own token ids are answered as its text is",
    properties="prompt",
    requirement="prompt: a string, or its token ids.",
    source=f"{_REQUEST}/prompt",
    asks=_by_ids,
    applies=lambda case: text_by_ids(case) is not None,
    concerns=lambda operation, contract: operation.family == COMPLETIONS and _tells_ids(operation, contract),
    absent="no answer told the token ids of a prompt that was then asked by its ids",
)
def roundtrip(case: Case) -> Iterator[Departure]:
    """Proved where the text is always answered alike, and the ids are too, but otherwise."""
    sent = case.exchange.sent
    by_text = _answers(case).get(_said(sent, text_by_ids(case)), [])
    by_ids = _answers(case).get(_said(sent, sent["prompt"]), [])
    if not by_text or set(by_text) & set(by_ids):
        return
    settled = len(by_text) >= _REPEATS and len(set(by_text)) == 1 and len(by_ids) > 1 and len(set(by_ids)) == 1
    outcome = None if settled else Outcome.INCONCLUSIVE
    yield Departure(f"the text's answer {by_text[0]!r}"[:160], repr(by_ids[0])[:160], outcome=outcome)


def _plainly_told(case: Case) -> bool:
    """An answer that tells all its token ids, to a request that asks for them, hides no token and adds none."""
    answers = ended_answer(case) and valid_request(case) and not_plain(case) <= BESIDE - {"echo"} | {"prompt"}
    return (
        answers
        and given(case).get("return_token_ids") is True
        and (ids_of_prompts(case) is not None or bool(_generated(case)))
    )


def _generated(case: Case) -> list[list[int]]:
    """The token ids of every choice; none unless all tell them."""
    told = [ids_of_choice(choice) for choice in answer_in(case.exchange).choices.values()]
    known = [each for each in told if each is not None]
    return known if len(known) == len(told) else []


def _apart(counted: int, told: int, what: str) -> Departure:
    """The difference as whoever pays has it."""
    share = f", {(counted - told) / told:+.0%}" if told else ""
    return Departure(f"{told} {what} tokens, as many as have ids", f"{counted}{share}")


@check(
    "usage.tokens-told",
    Level.MUST,
    "As many tokens are counted as ids are told",
    requirement="UsageInfo: prompt_tokens, completion_tokens; token_ids, prompt_token_ids: array of integers.",
    source="/responses/200/content/application~1json/schema/properties/usage",
    applies=lambda case: (
        _plainly_told(case) and counts(case.exchange, "prompt_tokens", "completion_tokens") is not None
    ),
    concerns=_tells_ids,
    absent="no answer with usage and token ids",
    needs=(Evidence.REQUEST,),
)
def tokens_told(case: Case) -> Iterator[Departure]:
    """What is counted beyond the ids is billed for nothing; of the token that ends a text either may leave it out."""
    prompt, completion = counts(case.exchange, "prompt_tokens", "completion_tokens") or (0, 0)
    prompts, texts = ids_of_prompts(case), _generated(case)
    if prompts is not None and sum(map(len, prompts)) != prompt:
        yield _apart(prompt, sum(map(len, prompts)), "prompt")
    ended_by_itself = sum(choice.finish != "length" for choice in answer_in(case.exchange).choices.values())
    told = sum(map(len, texts))
    if texts and abs(completion - told) > ended_by_itself:
        yield _apart(completion, told, "completion")
