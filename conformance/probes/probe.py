"""What a probe is, and what it may cost."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from streamgauge.wire.exchange import Credential, Exchange
from streamgauge.wire.json import is_number

__all__ = ["MAX_TOKENS", "Answered", "FollowUp", "Probe", "worst_case_tokens"]

MAX_TOKENS = 8
"""How many tokens a curated probe asks for: enough for a stream with a middle."""

UNLIMITED_TOKENS = 256
"""What a choice without a limit is reckoned at."""

BYTES_PER_TOKEN = 3
"""Reckons a prompt's tokens on the safe side."""


@dataclass(frozen=True, slots=True)
class Probe:
    """
    One request to send.

    Attributes:
        id: `topic.name`, unique for an operation.
        body: a JSON value, or raw bytes.
        free: whether a right server refuses it before it generates anything.
        credential: how it is signed; None for the target's usual way.
        headers: what it says in place of the usual header fields; None leaves one out.
        late: sent only when all others of its operation have been answered.
        models: goes to the model list, beside the contract.
        alone: sent behind all others, while nothing else is.
        leave_after: the client leaves after so many events; 0 for reading to the end.
        destructive: known to have killed engines, so sent on demand only.
    """

    id: str
    body: Any
    free: bool = False
    credential: Credential | None = None
    method: str = "POST"
    headers: tuple[tuple[str, str | None], ...] = ()
    late: bool = False
    models: bool = False
    alone: bool = False
    leave_after: int = 0
    destructive: bool = False

    @property
    def content(self) -> bytes:
        """The body as sent."""
        return (
            self.body
            if isinstance(self.body, bytes)
            else json.dumps(self.body, ensure_ascii=False).encode("utf-8", "surrogatepass")
        )

    @property
    def tokens(self) -> int:
        """Worst case of what a right server spends on it."""
        return 0 if self.free else worst_case_tokens(self.body)


Answered = Mapping[str, Exchange]
"""The exchanges of one operation by the ids of their probes; of a probe that was sent several times, the last."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """
    A request that is made of earlier answers: a stop string out of a text, a prompt out of token ids.

    Attributes:
        id: `topic.name`, as a probe's.
        tokens: what it may cost at most, as a probe's.
        make: the request's body out of the answers to all probes that are not late; where these do not give it, the
            reason, as a text.
    """

    id: str
    tokens: int
    make: Callable[[Answered], dict[str, Any] | str]
    free: bool = False
    late: bool = False

    def probe(self, answered: Answered) -> Probe | str:
        """The probe, or why there is none."""
        made = self.make(answered)
        return made if isinstance(made, str) else Probe(self.id, made)


def worst_case_tokens(body: Any) -> int:
    """Prompt and completion tokens that a request costs at most; 0 for what is no JSON object."""
    if not isinstance(body, dict):
        return 0
    limits = [body[name] for name in ("max_tokens", "max_completion_tokens") if _is_count(body.get(name))]
    completion = int(max(limits, default=UNLIMITED_TOKENS))
    choices = int(body["n"]) if _is_count(body.get("n")) else 1
    prompt = body.get("prompt")
    prompts = len(prompt) if isinstance(prompt, list) and prompt and isinstance(prompt[0], (str, list)) else 1
    size = len(json.dumps({name: body.get(name) for name in ("messages", "prompt", "suffix", "tools")}, default=str))
    return size // BYTES_PER_TOKEN + completion * max(choices, 1) * prompts


def _is_count(value: Any) -> bool:
    return is_number(value) and value >= 0
