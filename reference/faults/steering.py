"""`steering.*`: tokens that come in spite of the request."""

from streamgauge.reference.drafts import Draft
from streamgauge.reference.faults.bends import ask, declare, ignoring
from streamgauge.reference.faults.fault import Stage, requests

__all__: list[str] = []

ignoring(
    "steering.bias-ignored",
    "logit_bias is ignored",
    ("steering.bias-forces", "steering.bias-bans"),
    "logit_bias",
)
ignoring("steering.allowed-ignored", "allowed_token_ids is ignored", "steering.allowed-token-ids", "allowed_token_ids")
ignoring("steering.bad-words-ignored", "bad_words is ignored", "steering.bad-words", "bad_words")
ignoring(
    "steering.special-tokens-skipped",
    "skip_special_tokens is ignored",
    "steering.special-tokens-shown",
    "skip_special_tokens",
)


def _negative(draft: Draft) -> bool:
    bias = draft.asked.get("logit_bias") if requests(draft) else None
    return isinstance(bias, dict) and any(isinstance(value, int) and value < 0 for value in bias.values())


def _unbanned(draft: Draft) -> None:
    bias = {token: max(value, 0) for token, value in draft.asked["logit_bias"].items()}
    ask(draft, {**draft.asked, "logit_bias": bias})


declare(
    "steering.bias-never-bans",
    "A negative logit_bias is ignored",
    "steering.bias-bans",
    _unbanned,
    concerns=_negative,
    stage=Stage.REQUEST,
)


def _contradictory(draft: Draft) -> bool:
    return requests(draft) and bool(draft.asked.get("allowed_token_ids")) and bool(draft.asked.get("bad_words"))


def _any_token(draft: Draft) -> None:
    ask(draft, {name: value for name, value in draft.asked.items() if name != "allowed_token_ids"})


declare(
    "steering.allowed-against-bad-words",
    "Where bad_words forbids what is allowed, other tokens come",
    "steering.allowed-token-ids",
    _any_token,
    "vllm-project/vllm#57986",
    concerns=_contradictory,
    stage=Stage.REQUEST,
)
