"""What one request asks the pseudo-model for, with every default filled in."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamgauge.contract.contract import CHAT, Operation
from streamgauge.contract.profile import Dialect
from streamgauge.reference.asked_decoding import decoding_of, require_tokens
from streamgauge.reference.costs import described
from streamgauge.reference.decoding import Decoding
from streamgauge.reference.errors import Kind, Refusal
from streamgauge.reference.prompts import Prompt, completion_prompts, from_ids, from_text
from streamgauge.reference.rules import Asked
from streamgauge.reference.structured import script_of
from streamgauge.reference.templates import chat_text, content_of
from streamgauge.reference.tokens import SPECIAL, is_token
from streamgauge.reference.tools import Call, calls_of

__all__ = [
    "CONTEXT",
    "MAX_GENERATED",
    "MUCH_REASONING",
    "NATURAL_LENGTH",
    "REASONING_TOKENS",
    "Parameters",
    "parameters_of",
]

CONTEXT = 8192
"""Tokens that a prompt and its answer may have together."""

NATURAL_LENGTH = 64
"""Tokens, the one that ends the text included, after which the pseudo-model ends by itself where nothing sets a limit."""

REASONING_TOKENS = 3
"""Tokens that the pseudo-model thinks for where reasoning is asked for: fewer than a short answer has."""

MUCH_REASONING = 48
"""Tokens that it thinks for where much effort is asked for."""

MAX_GENERATED = 65536
"""Tokens that one request may have generated over all its choices."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """
    One valid request.

    Attributes:
        prompts: one for chat, one or more for text completions.
        n: choices for each prompt.
        best_of: how many are made for each, of which the best `n` are shown.
        lengths: tokens to generate for each prompt at most.
        natural: after how many tokens the text to each prompt likes to end; infinite where a limit is there first.
        stops: strings that end the text.
        stop_ids: tokens that do.
        decoding: how tokens are taken.
        repetition: smallest and largest size of a block of tokens, and how often in a row it ends the text; None for never.
        script: makes the text from a seed where the request wants a certain form.
        calls: the tool calls that each choice makes in the place of text.
        logprobs: how many alternatives to report per token; None for no log-probabilities at all.
        logprob_ids: tokens to report as well.
        prompt_logprobs: how many tokens to report at each place of a prompt; None for no such report.
        ids_as_tokens: whether log-probabilities name tokens by their ids.
        tells_ids: whether the answer has token ids.
        tells_prompt: whether it has the prompt that the chat template made.
        prefixes: text before the generated text of each prompt's choices (`echo`).
        seed: of chance; empty for none.
        reasoning: tokens of reasoning before each choice's text; part of its length.
        shows_reasoning: whether they are told and not only counted.
        described: what its document says of an answer's cost beside the counts; see `costs.described`.
        fail_fast: whether it would rather be refused than wait.
        service_tier: as asked for; None for none.
    """

    family: str
    model: str
    prompts: tuple[Prompt, ...]
    n: int
    best_of: int
    lengths: tuple[int, ...]
    natural: tuple[float, ...]
    min_tokens: int
    stops: tuple[str, ...]
    stop_ids: frozenset[int]
    include_stop: bool
    skip_special: bool
    decoding: Decoding
    repetition: tuple[int, int, int] | None
    script: Callable[[str], str] | None
    calls: tuple[Call, ...]
    echo: bool
    prefixes: tuple[str, ...]
    logprobs: int | None
    logprob_ids: tuple[int, ...]
    prompt_logprobs: int | None
    ids_as_tokens: bool
    tells_ids: bool
    tells_prompt: bool
    stream: bool
    include_usage: bool
    continuous_usage: bool
    request_id: str
    seed: str
    reasoning: int
    shows_reasoning: bool
    described: frozenset[str]
    fail_fast: bool
    service_tier: str | None

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(prompt.count for prompt in self.prompts)

    @property
    def reserved_tokens(self) -> int:
        """Tokens that the request may come to at most: prompts, and every choice at its full length."""
        return self.prompt_tokens + self.best_of * sum(self.lengths)


def parameters_of(operation: Operation, dialect: Dialect, asked: Asked) -> Parameters:
    """
    Fill in the defaults.

    Raises:
        Refusal: prompt and answer do not fit the context, the lengths contradict each other, or something cannot be made.
    """
    chat = operation.family == CHAT
    require_tokens(asked)
    prompts = _prompts(operation, asked)
    n = int(asked.get("n", 1))
    best_of = int(asked.get("best_of", n))
    decoding = decoding_of(asked)
    minimum = decoding.held_until
    limit = asked.get("max_completion_tokens", asked.get("max_tokens"))
    if limit is None:
        limit = dialect.default_max_tokens.get(operation.name)
    natural = tuple(_natural(prompt, limit, minimum, decoding) for prompt in prompts)
    lengths = tuple(_length(prompt, limit, minimum) for prompt in prompts)
    if sum(min(each) for each in zip(lengths, natural, strict=True)) * best_of > MAX_GENERATED:
        message = f"Choices and tokens multiply to more than the {MAX_GENERATED} tokens that one request may have."
        raise Refusal(Kind.UNPROCESSABLE, message, "n")
    stop = asked.get("stop", [])
    options = asked.get("stream_options", {})
    echo = bool(asked.get("echo"))
    return Parameters(
        family=operation.family,
        model=asked["model"],
        prompts=prompts,
        n=n,
        best_of=best_of,
        lengths=lengths,
        natural=natural,
        min_tokens=minimum,
        stops=(stop,) if isinstance(stop, str) else tuple(stop),
        stop_ids=frozenset(map(int, asked.get("stop_token_ids", ()))),
        include_stop=bool(asked.get("include_stop_str_in_output")),
        skip_special=bool(asked.get("skip_special_tokens", True)),
        decoding=decoding,
        repetition=_repetition(asked),
        script=script_of(asked),
        calls=calls_of(asked, f"{asked['model']} {prompts[0].text}") if chat else (),
        echo=echo,
        prefixes=tuple(_prefix(chat, asked, prompt) if echo else "" for prompt in prompts),
        logprobs=_logprobs(chat, asked),
        logprob_ids=tuple(dict.fromkeys(map(int, asked.get("logprob_token_ids", ())))),
        prompt_logprobs=_prompt_logprobs(asked),
        ids_as_tokens=bool(asked.get("return_tokens_as_token_ids")),
        tells_ids=bool(asked.get("return_token_ids")),
        tells_prompt=bool(asked.get("return_prompt_text")),
        stream=bool(asked.get("stream")),
        include_usage=bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
        request_id=asked.get("request_id", ""),
        seed=str(asked.get("seed", "")),
        reasoning=_reasoning(asked) if chat else 0,
        shows_reasoning=asked.get("include_reasoning", True),
        described=described(operation),
        fail_fast=bool(asked.get("fail_fast")),
        service_tier=asked.get("service_tier"),
    )


def _reasoning(asked: Asked) -> int:
    """Whoever asks for effort gets some; Seekr's `thinking_token_budget` limits it, and -1 there is no limit."""
    if asked.get("reasoning_effort", "none") == "none":
        return 0
    budget = int(asked.get("thinking_token_budget", -1))
    wanted = MUCH_REASONING if asked["reasoning_effort"] in ("high", "xhigh", "max") else REASONING_TOKENS
    return wanted if budget < 0 else min(budget, wanted)


def _prompts(operation: Operation, asked: Asked) -> tuple[Prompt, ...]:
    begins = asked.get("add_special_tokens", operation.properties.get("add_special_tokens", {}).get("default", False))
    if operation.family == CHAT:
        last = content_of(asked["messages"][-1])
        prompts = [from_text(chat_text(asked), begins=begins, asked=last)]
    else:
        given = asked["prompt"]
        ids = given if isinstance(given, list) else []
        flat = [token for item in ids for token in (item if isinstance(item, list) else [item])]
        if not all(is_token(token) for token in flat if not isinstance(token, str)):
            raise Refusal(Kind.UNPROCESSABLE, "`prompt` holds what is no token id of the vocabulary.", "prompt")
        prompts = completion_prompts(given, begins=begins)
    if "truncate_prompt_tokens" in asked:
        prompts = [_truncated(prompt, asked) for prompt in prompts]
    if asked.get("suffix"):
        prompts = [prompt.before(asked["suffix"]) for prompt in prompts]
    return tuple(prompts)


def _truncated(prompt: Prompt, asked: Asked) -> Prompt:
    """The last tokens, or the first: as many as the request lets stand, and -1 is as many as the context holds."""
    most = int(asked["truncate_prompt_tokens"])
    if most < 0:
        most = CONTEXT - int(asked.get("max_completion_tokens", asked.get("max_tokens")) or NATURAL_LENGTH)
    if prompt.count <= most:
        return prompt
    first = asked.get("truncation_side") == "right"
    return from_ids(prompt.ids[:most] if first else prompt.ids[-most:])


def _natural(prompt: Prompt, limit: float | None, minimum: int, decoding: Decoding) -> float:
    """Who limits the answer gets all that the limit allows, unless one word is wanted; the least number of tokens counts."""
    if not decoding.can_end or (limit is not None and not prompt.brief):
        return math.inf
    return max(1 if prompt.brief else NATURAL_LENGTH - 1, minimum)


def _length(prompt: Prompt, limit: int | float | None, minimum: int) -> int:
    room = CONTEXT - prompt.count
    if limit is None:
        limit = room
    if room < 1 or limit > room or minimum > room:
        message = f"The context length is {CONTEXT} tokens, prompt and answer together."
        raise Refusal(Kind.CONTEXT, message, "max_tokens")
    if minimum > limit:
        raise Refusal(Kind.UNPROCESSABLE, "`min_tokens` is greater than the limit of tokens.", "min_tokens")
    return int(limit)


def _prefix(chat: bool, asked: Asked, prompt: Prompt) -> str:
    """Text completions repeat the prompt; chat prepends the last message if the assistant said it."""
    if not chat:
        return prompt.text
    last: dict[str, Any] = asked["messages"][-1]
    return content_of(last) if last["role"] == "assistant" else ""


def _logprobs(chat: bool, asked: Asked) -> int | None:
    """Chat says whether and, apart from that, how many; text completions say how many."""
    wanted = asked.get("logprobs", False)
    if wanted is False:
        return None
    return int(asked.get("top_logprobs", 0)) if chat else int(wanted)


def _prompt_logprobs(asked: Asked) -> int | None:
    wanted = asked.get("prompt_logprobs")
    return None if wanted is None else len(SPECIAL) + 32 if wanted < 0 else int(wanted)


def _repetition(asked: Asked) -> tuple[int, int, int] | None:
    """Seekr's `RepetitionDetectionParams`: a greatest size of 0 turns it off, a least one of 0 is 1."""
    given = asked.get("repetition_detection", {})
    largest = int(given.get("max_pattern_size", 0))
    return (max(1, int(given.get("min_pattern_size", 0))), largest, int(given["min_count"])) if largest > 0 else None
