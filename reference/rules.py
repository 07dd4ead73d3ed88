"""The rules of a request that the documents state in prose, or that follow from what a parameter means."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streamgauge.reference.errors import Kind, Refusal

__all__ = ["BOUNDS", "CONSTRAINTS", "RULES", "Asked", "Rule", "enforce"]

Asked = dict[str, Any]
"""The documented parameters of a request that are not null; null and absent mean the same."""


@dataclass(frozen=True, slots=True)
class Rule:
    """
    One rule.

    Attributes:
        param: the parameter it is about; where a document lacks it, it is an extra field and has no rule.
        message: what the rule says.
        broken: whether a request that gives the parameter breaks the rule.
        kind: how a request that breaks it is refused.
    """

    param: str
    message: str
    broken: Callable[[Asked], bool]
    kind: Kind = Kind.UNPROCESSABLE


_NO_LIMIT = float("inf")

BOUNDS: dict[str, tuple[float, float]] = {
    "n": (1, 128),
    "max_tokens": (0, _NO_LIMIT),
    "max_completion_tokens": (1, _NO_LIMIT),
    "min_tokens": (0, _NO_LIMIT),
    "top_logprobs": (0, 20),
    "prompt_logprobs": (-1, 20),
    "seed": (-(2**63), 2**63 - 1),
    "truncate_prompt_tokens": (-1, _NO_LIMIT),
    "priority": (0, 0),
    "thinking_token_budget": (-1, _NO_LIMIT),
    "temperature": (0, _NO_LIMIT),
    "top_p": (0, 1),
    "min_p": (0, 1),
    "top_k": (-1, _NO_LIMIT),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
    "repetition_penalty": (0, _NO_LIMIT),
}
"""Numbers → least and greatest value that have a meaning here. The context bounds `max_tokens` from above."""

_MOST_PROMPTS = 1024
CONSTRAINTS = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
"""Members of `structured_outputs` of which exactly one is set."""


def _stops(asked: Asked) -> list[str]:
    stop = asked["stop"]
    return [stop] if isinstance(stop, str) else stop


def _prompt_is_empty(asked: Asked) -> bool:
    prompt = asked["prompt"]
    return isinstance(prompt, list) and (not prompt or any(item == [] for item in prompt))


def _prompts_are_too_many(asked: Asked) -> bool:
    prompt = asked["prompt"]
    return isinstance(prompt, list) and len(prompt) > _MOST_PROMPTS and isinstance(prompt[0], (str, list))


def _nothing_is_wanted(asked: Asked) -> bool:
    return bool(asked["max_tokens"] == 0 and not ("prompt" in asked and asked.get("echo")))


def _best_is_unclear(asked: Asked) -> bool:
    most, shown = asked["best_of"], asked.get("n", 1)
    return bool(most < shown or (most > shown and asked.get("stream")))


def _constraints_are_not_one(asked: Asked) -> bool:
    given = asked["structured_outputs"]
    return sum(given.get(name) is not None for name in CONSTRAINTS) != 1


def _forms_are_two(asked: Asked) -> bool:
    return "response_format" in asked and asked["response_format"].get("type", "text") != "text"


def _forced_tool_is_missing(asked: Asked) -> bool:
    choice = asked["tool_choice"]
    names = [tool["function"]["name"] for tool in asked.get("tools", [])]
    if isinstance(choice, dict):
        return choice["function"]["name"] not in names
    return choice == "required" and not names


def _schema_is_missing(asked: Asked) -> bool:
    wanted = asked["response_format"]
    if wanted.get("type") != "json_schema":
        return False
    return not wanted.get("json_schema") or wanted["json_schema"].get("schema") is None


def _detection_is_contradictory(asked: Asked) -> bool:
    given = asked["repetition_detection"]
    largest, smallest, count = (given.get(name, 0) for name in ("max_pattern_size", "min_pattern_size", "min_count"))
    if smallest < 0 or smallest > largest:
        return True
    return bool(largest > 0 and count < 2)


RULES: tuple[Rule, ...] = (
    Rule("prompt", "`prompt` holds nothing to continue.", _prompt_is_empty, Kind.MALFORMED),
    Rule("prompt", f"`prompt` can hold {_MOST_PROMPTS} prompts at most.", _prompts_are_too_many),
    Rule("messages", "`messages` must hold at least one message.", lambda asked: not asked["messages"]),
    Rule("stop", "A stop string cannot be empty.", lambda asked: "" in _stops(asked)),
    Rule("bad_words", "A bad word cannot be empty.", lambda asked: "" in asked["bad_words"]),
    Rule("allowed_token_ids", "`allowed_token_ids` cannot be empty.", lambda asked: not asked["allowed_token_ids"]),
    Rule(
        "repetition_penalty",
        "`repetition_penalty` must be greater than 0.",
        lambda asked: asked["repetition_penalty"] == 0,
    ),
    Rule(
        "truncate_prompt_tokens",
        "`truncate_prompt_tokens` must leave a token.",
        lambda asked: asked["truncate_prompt_tokens"] == 0,
    ),
    Rule("max_tokens", "`max_tokens` can be 0 only where `echo` has a prompt scored.", _nothing_is_wanted),
    Rule("best_of", "`best_of` cannot be less than `n`, and there is no choosing in a stream.", _best_is_unclear),
    Rule("prompt_logprobs", "`prompt_logprobs` cannot be streamed.", lambda asked: bool(asked.get("stream"))),
    Rule(
        "logprob_token_ids",
        "`logprob_token_ids` requires `logprobs`.",
        lambda asked: asked.get("logprobs", False) is False,
    ),
    Rule(
        "top_logprobs",
        "`top_logprobs` requires `logprobs`.",
        lambda asked: asked["top_logprobs"] > 0 and not asked.get("logprobs"),
    ),
    Rule(
        "logprobs",
        "`logprobs` must be between 0 and 20.",
        lambda asked: not isinstance(asked["logprobs"], bool) and not 0 <= asked["logprobs"] <= 20,
    ),
    Rule(
        "continue_final_message",
        "`continue_final_message` and `add_generation_prompt` exclude each other.",
        lambda asked: bool(asked["continue_final_message"] and asked.get("add_generation_prompt")),
    ),
    Rule(
        "structured_outputs",
        "`structured_outputs` must set exactly one constraint.",
        _constraints_are_not_one,
    ),
    Rule("structured_outputs", "`structured_outputs` and `response_format` exclude each other.", _forms_are_two),
    Rule("tool_choice", "`tool_choice` wants a call of what is not among the `tools`.", _forced_tool_is_missing),
    Rule(
        "response_format",
        "`response_format` of type json_schema must hold `json_schema` with a `schema`.",
        _schema_is_missing,
    ),
    Rule(
        "repetition_detection",
        "`repetition_detection` must have `min_pattern_size` between 0 and `max_pattern_size`, "
        "and `min_count` of 2 or more.",
        _detection_is_contradictory,
    ),
)
"""In the order in which they are looked at."""


def enforce(asked: Asked) -> None:
    """
    Judge a request that is valid by schema.

    Raises:
        Refusal: it breaks a rule; the first one in the tables' order.
    """
    for rule in RULES:
        if rule.param in asked and rule.broken(asked):
            raise Refusal(rule.kind, rule.message, rule.param)
    for param, (low, high) in BOUNDS.items():
        if param in asked and not low <= asked[param] <= high:
            raise Refusal(Kind.UNPROCESSABLE, _out_of_range(param, low, high), param)


def _out_of_range(param: str, low: float, high: float) -> str:
    if low == high:
        return f"`{param}` must be {low}."
    return f"`{param}` must be {low} or more." if high == _NO_LIMIT else f"`{param}` must be between {low} and {high}."
