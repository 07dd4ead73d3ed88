"""What one request asks the pseudo-model for, with every default filled in."""

from dataclasses import dataclass
from typing import Any

from streamgauge.contract.contract import CHAT, Operation
from streamgauge.contract.profile import Dialect
from streamgauge.reference.costs import described
from streamgauge.reference.errors import Kind, Refusal
from streamgauge.reference.prompts import Prompt, chat_prompt, completion_prompts
from streamgauge.reference.rules import Asked
from streamgauge.reference.tools import Call, forced_call

__all__ = ["CONTEXT", "MAX_GENERATED", "NATURAL_LENGTH", "REASONING_TOKENS", "Parameters", "parameters_of"]

CONTEXT = 8192
"""Tokens that a prompt and its answer may have together."""

NATURAL_LENGTH = 64
"""Tokens after which the pseudo-model ends by itself where neither request nor document sets a limit."""

REASONING_TOKENS = 3
"""Tokens that the pseudo-model thinks for where reasoning is asked for: fewer than a short answer has."""

MAX_GENERATED = 65536
"""Tokens that one request may have generated over all its choices."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """
    One valid request.

    Attributes:
        prompts: one for chat, one or more for text completions.
        lengths: tokens to generate for each prompt if no stop string comes first.
        finish_reason: of a choice that reaches its length.
        stops: strings that end the text.
        logprobs: how many alternatives to report per token; None for no log-probabilities at all.
        prefixes: text before the generated text of each prompt's choices (`echo`).
        sampling: what else the generated text depends on.
        reasoning: tokens of reasoning before each choice's text; part of its length.
        shows_reasoning: whether they are told and not only counted.
        described: what its document says of an answer's cost beside the counts; see `costs.described`.
        call: the tool call that each choice makes in the place of text, where one is forced.
    """

    family: str
    model: str
    prompts: tuple[Prompt, ...]
    n: int
    lengths: tuple[int, ...]
    finish_reason: str
    min_tokens: int
    stops: tuple[str, ...]
    include_stop: bool
    echo: bool
    prefixes: tuple[str, ...]
    logprobs: int | None
    stream: bool
    include_usage: bool
    continuous_usage: bool
    request_id: str
    sampling: tuple[str, ...]
    reasoning: int
    shows_reasoning: bool
    described: frozenset[str]
    call: Call | None

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(prompt.count for prompt in self.prompts)


def parameters_of(operation: Operation, dialect: Dialect, asked: Asked) -> Parameters:
    """
    Fill in the defaults.

    Raises:
        Refusal: prompt and answer do not fit the context, or the lengths contradict each other.
    """
    chat = operation.family == CHAT
    prompts = _prompts(chat, asked)
    n = int(asked.get("n", 1))
    limit = asked.get("max_completion_tokens", asked.get("max_tokens"))
    if limit is None:
        limit = dialect.default_max_tokens.get(operation.name)
    minimum = int(asked.get("min_tokens", 0))
    to_the_end = limit is not None or bool(asked.get("ignore_eos"))
    lengths = tuple(_length(prompt, limit, minimum, to_the_end=to_the_end) for prompt in prompts)
    if sum(lengths) * n > MAX_GENERATED:
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
        lengths=lengths,
        finish_reason="length" if to_the_end else "stop",
        min_tokens=minimum,
        stops=(stop,) if isinstance(stop, str) else tuple(stop),
        include_stop=bool(asked.get("include_stop_str_in_output")),
        echo=echo,
        prefixes=tuple(_prefix(chat, asked, prompt) if echo else "" for prompt in prompts),
        logprobs=_logprobs(chat, asked),
        stream=bool(asked.get("stream")),
        include_usage=bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
        request_id=asked.get("request_id", ""),
        sampling=(str(asked.get("seed", "")), asked.get("suffix", "")),
        reasoning=_reasoning(asked) if chat else 0,
        shows_reasoning=asked.get("include_reasoning", True),
        described=described(operation),
        call=forced_call(asked, f"{asked['model']} {prompts[0].text}") if chat else None,
    )


def _reasoning(asked: Asked) -> int:
    """Whoever asks for effort gets some; Seekr's `thinking_token_budget` limits it, and -1 there is no limit."""
    if asked.get("reasoning_effort", "none") == "none":
        return 0
    budget = int(asked.get("thinking_token_budget", -1))
    return REASONING_TOKENS if budget < 0 else min(budget, REASONING_TOKENS)


def _prompts(chat: bool, asked: Asked) -> tuple[Prompt, ...]:
    if chat:
        return (chat_prompt(asked["messages"], asked.get("tools", [])),)
    return tuple(completion_prompts(asked["prompt"]))


def _length(prompt: Prompt, limit: int | float | None, minimum: int, *, to_the_end: bool) -> int:
    room = CONTEXT - prompt.count
    if limit is None:
        limit = room if to_the_end else min(room, max(NATURAL_LENGTH, minimum))
    if room < 1 or limit > room or minimum > room:
        message = f"The context holds {CONTEXT} tokens, prompt and answer together."
        raise Refusal(Kind.UNPROCESSABLE, message, "max_tokens")
    if minimum > limit:
        raise Refusal(Kind.UNPROCESSABLE, "`min_tokens` is greater than the limit of tokens.", "min_tokens")
    return int(limit)


def _prefix(chat: bool, asked: Asked, prompt: Prompt) -> str:
    """Text completions repeat the prompt; chat prepends the last message if the assistant said it."""
    if not chat:
        return prompt.text
    last: dict[str, Any] = asked["messages"][-1]
    content = last.get("content")
    return content if last["role"] == "assistant" and isinstance(content, str) else ""


def _logprobs(chat: bool, asked: Asked) -> int | None:
    """Chat says whether and, apart from that, how many; text completions say how many."""
    wanted = asked.get("logprobs", False)
    if wanted is False:
        return None
    return int(asked.get("top_logprobs", 0)) if chat else int(wanted)
