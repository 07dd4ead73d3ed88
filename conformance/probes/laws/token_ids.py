"""Token ids: told beside the text, as the names of tokens, and read back as a prompt."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import MAX_TOKENS, Answered, FollowUp, Probe, worst_case_tokens
from streamgauge.conformance.told_ids import prompt_ids_of
from streamgauge.contract.contract import CHAT, COMPLETIONS, Operation
from streamgauge.contract.plain import plain_request

__all__ = ["read_back", "token_ids"]

TOLD = "law.tokens.ids"
"""The probe whose answer tells the ids of the plain prompt."""

_LOGPROBS: dict[str, dict[str, Any]] = {CHAT: {"logprobs": True, "top_logprobs": 2}, COMPLETIONS: {"logprobs": 2}}


def token_ids(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """Of text completions also the plain prompt by its ids, to be answered as the plain prompt is, in both forms."""
    known = operation.properties
    plain = plain_request(operation, model, max_tokens=MAX_TOKENS)
    usage = {"stream_options": {"include_usage": True}} if "stream_options" in known else {}
    streamed = {"stream": True, **usage}
    if "return_token_ids" in known:
        yield Probe(TOLD, {**plain, "return_token_ids": True})
        yield Probe(f"{TOLD}-stream", {**plain, "return_token_ids": True, **streamed})
    if {"return_tokens_as_token_ids", "logprobs"} <= known.keys():
        as_ids = {**plain, **_LOGPROBS[operation.family], "return_tokens_as_token_ids": True}
        yield Probe("law.tokens.as-ids", as_ids)
        if "return_token_ids" in known:
            yield Probe("law.tokens.as-ids-stream", {**as_ids, "return_token_ids": True, **streamed})
    if "return_token_ids" in known and operation.family == COMPLETIONS:
        yield read_back("law.tokens.roundtrip", plain)
        yield read_back("law.tokens.roundtrip-stream", {**plain, **streamed})


def read_back(id_: str, body: dict[str, Any]) -> FollowUp:
    """A request with the plain prompt given by the ids that its answer told."""

    def by_ids(answered: Answered) -> dict[str, Any] | str:
        source = answered.get(TOLD)
        ids = prompt_ids_of(source) if source is not None else None
        return {**body, "prompt": list(ids)} if ids else "no answer told the ids of the prompt"

    return FollowUp(id_, worst_case_tokens(body), by_ids)
