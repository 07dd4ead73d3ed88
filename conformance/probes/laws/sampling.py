"""Sampling parameters, penalties, numbers of choices."""

from collections.abc import Iterator
from typing import Any

from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.contract.contract import CHAT, COMPLETIONS, Operation
from streamgauge.contract.plain import plain_request, prompt_member

__all__ = ["sampling"]

_OPEN = "Tell a short story about an animal of your choice."
"""Leaves every word open, the first one included."""

_AGAIN = "Go on with these words, and mix in some of your own: stone river moon river river river river"
"""A model that goes on repeats some words, and has others close behind them."""

_TOKENS = 12
_MORE_TOKENS = 24
"""So many that words come again."""

_CHOICES = 3
"""As few as can all differ without its being noise."""

_HOT = 2

_NARROW: dict[str, Any] = {"top_k": 1, "top_p": 1e-6, "min_p": 1}
"""Property → the value that leaves one token."""

_OFF: dict[str, Any] = {"top_k": 0, "min_p": 0}

_PENALTIES: dict[str, Any] = {"presence_penalty": 2, "frequency_penalty": 2, "repetition_penalty": 5}
"""The strongest that servers take."""

_LOGPROBS: dict[str, dict[str, Any]] = {CHAT: {"logprobs": True, "top_logprobs": 5}, COMPLETIONS: {"logprobs": 5}}

_UNSEEN: dict[str, Any] = {"length_penalty": 1.5, "best_of": 2, "spaces_between_special_tokens": False}
"""Properties whose effect nobody sees: sent to see whether they are taken."""


def sampling(operation: Operation, model: str) -> Iterator[Probe | FollowUp]:
    """Each as far as the document has it; alone as well, so that a refusal is about nothing else."""
    for probe in (*_draws(operation, model), *_penalised(operation, model), *_counts(operation, model)):
        asked = probe.body.keys() - {"max_tokens"}
        if asked <= operation.properties.keys() and operation.request.accepts(probe.body):
            yield probe


def _draws(operation: Operation, model: str) -> Iterator[Probe]:
    plain = {**plain_request(operation, model, max_tokens=_TOKENS), **prompt_member(operation, _OPEN)}
    hot = {**plain, "temperature": _HOT}
    several = {"n": _CHOICES}
    yield from [Probe("law.sampling.greedy", plain)] * _CHOICES
    yield Probe("law.sampling.greedy-choices", {**plain, **several})
    yield Probe("law.sampling.hot", hot)
    yield Probe("law.sampling.hot-choices", {**hot, **several})
    yield from [Probe("law.sampling.seed", {**hot, "seed": 11})] * _CHOICES
    for seed in (12, 13):
        yield Probe(f"law.sampling.seed-{seed}", {**hot, "seed": seed})
    for name, value in _NARROW.items():
        yield Probe(f"law.sampling.{name}".replace("_", "-"), {**hot, name: value})
        yield Probe(f"law.sampling.{name}-choices".replace("_", "-"), {**hot, name: value, **several})
    for name, value in _OFF.items():
        yield Probe(f"law.sampling.{name}-off".replace("_", "-"), {**hot, name: value, **several})


def _penalised(operation: Operation, model: str) -> Iterator[Probe]:
    plain = {**plain_request(operation, model, max_tokens=_MORE_TOKENS), **prompt_member(operation, _AGAIN)}
    told = {**plain, **_LOGPROBS[operation.family]}
    yield from [Probe("law.sampling.unpenalised", told)] * 2
    for name, value in _PENALTIES.items():
        yield Probe(f"law.sampling.{name}".replace("_", "-"), {**told, name: value})
        yield Probe(f"law.sampling.{name}-alone".replace("_", "-"), {**plain, name: value, "max_tokens": 1})


def _counts(operation: Operation, model: str) -> Iterator[Probe]:
    plain = plain_request(operation, model, max_tokens=_TOKENS)
    yield Probe("law.sampling.beams", {**plain, "use_beam_search": True, "n": _CHOICES})
    yield Probe("law.sampling.beams-alone", {**plain, "use_beam_search": True, "max_tokens": 1})
    for name, n in (("n-zero", 0), ("n-negative", -1)):
        yield Probe(f"law.sampling.{name}", {**plain, "n": n}, free=True)
    for name, value in _UNSEEN.items():
        yield Probe(f"law.sampling.{name}".replace("_", "-"), {**plain, name: value, "max_tokens": 1})
