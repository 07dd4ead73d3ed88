"""
Schemathesis' cases as probes: those of its coverage phase and random ones, each as it is and made sensible.

Whether a case is valid is computed from the contract, here and again by the checks, whatever Schemathesis called it. What is
taken from it and what is not: docs/schemathesis.md.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from streamgauge.conformance.probes.drawing import Drawn, begin, drawing_of, header_parameters, task_of
from streamgauge.conformance.probes.probe import MAX_TOKENS, Probe
from streamgauge.conformance.probes.sensible import (
    DANGEROUS,
    LIMIT,
    affordable,
    harmless,
    names_a_url,
    sensible,
    within_bounds,
)
from streamgauge.contract.contract import Operation
from streamgauge.contract.plain import plain_request
from streamgauge.contract.validator import Validator
from streamgauge.wire.json import read_json

__all__ = ["DANGEROUS", "FUZZED", "LIMIT", "LONGEST", "begin_drawing", "generated"]

FUZZED = 40
"""How many random cases that keep the schema are drawn for an operation, and how many that break it."""

LONGEST = 1000
"""Characters of the longest random request that is to be answered: a longer one costs tokens and asks nothing else."""

_SAFE = ("OPTIONS",)
"""
The other methods that are sent: those that change nothing (RFC 9110, section 9.2.1), but for GET, a probe of `refusal`.

A server that happens to know PUT, PATCH or DELETE would change something, and one that has never heard of TRACE or QUERY
rightly says 501.
"""


def begin_drawing(operations: Iterable[Operation]) -> None:
    """Let the cases of several operations be drawn side by side: :func:`generated` waits for those of one."""
    begin(task_of(operation, count=FUZZED) for operation in operations)


def generated(operation: Operation, model: str, *, seed: int = 0, count: int = FUZZED) -> Iterator[Probe]:
    """
    The probes of one operation: each request once, first those that a right server refuses, which cost nothing.

    `broken` requests break the schema. `unchanged` ones keep it, but name no model, or none that exists: they show whether the
    server stands them. `valid` ones are sensible, and to be answered; so are those that set a `header` of the operation.
    `fuzzed-` stands before random ones.

    Args:
        operation: whom to ask.
        model: one that exists.
        seed: of the random cases.
        count: how many random cases that keep the schema are drawn, and how many that break it; 0 for none.

    Raises:
        CannotTellError: nothing can be drawn from the document.
    """
    plain = plain_request(operation, model, max_tokens=MAX_TOKENS)
    drawn = drawing_of(operation, count=count, seed=seed)
    own = [case for case in drawn.covered if case.method == operation.method]
    from_coverage = _Requests("", operation, plain)
    for case in own:
        from_coverage.take(case.body)
    at_random = _Requests("fuzzed-", operation, plain, from_coverage.seen)
    for body in (*drawn.broken, *drawn.valid):
        at_random.take(body, longest=LONGEST)
    yield from from_coverage.refused()
    for method in sorted({case.method for case in drawn.covered} & set(_SAFE)):
        yield Probe(f"generated.method-{method.lower()}", b"", free=True, method=method)
    yield from at_random.refused()
    yield from _with_headers(operation, own, plain)
    yield from from_coverage.answered()
    yield from at_random.answered()


@dataclass(slots=True)
class _Requests:
    """Drawn requests, each once, by what a right server makes of them; `seen` holds the keys of all that were taken."""

    prefix: str
    operation: Operation
    plain: dict[str, Any]
    seen: set[str] = field(default_factory=set)
    broken: list[Any] = field(default_factory=list)
    unchanged: list[dict[str, Any]] = field(default_factory=list)
    valid: list[dict[str, Any]] = field(default_factory=list)

    def take(self, body: Any, *, longest: int | None = None) -> None:
        """
        Put a body where it belongs, as it is and made sensible.

        Args:
            body: as drawn.
            longest: leaves out a sensible one of more characters, and what is unheard of in those that are shorter.
        """
        if isinstance(body, bytes) and (text := read_json(body)).valid:
            body = text.value
        if names_a_url(body):
            return
        accepts = self.operation.request.accepts
        if not isinstance(body, dict):
            if isinstance(body, bytes) or not accepts(body):
                self._keep(body, self.broken)
            return
        given = affordable(harmless(body), self.operation)
        made = affordable(sensible(given, self.plain, self.operation), self.operation)
        if not accepts(made):
            self._keep(made, self.broken)
        elif longest is None:
            self._keep(made, self.valid)
        else:
            made = within_bounds(made, self.operation)
            if accepts(made) and len(json.dumps(made)) <= longest:
                self._keep(made, self.valid)
        if given.get("model") != self.plain["model"] and accepts(given):
            self._keep(given, self.unchanged)

    def _keep(self, body: Any, where: list[Any]) -> None:
        key = json.dumps(body, sort_keys=True, default=repr)
        if key not in self.seen:
            self.seen.add(key)
            where.append(body)

    def refused(self) -> Iterator[Probe]:
        """What breaks the schema, and what names no model that exists."""
        for kind, bodies in (("broken", self.broken), ("unchanged", self.unchanged)):
            for number, body in enumerate(bodies):
                yield Probe(f"generated.{self.prefix}{kind}-{number:04d}", body, free=True)

    def answered(self) -> Iterator[Probe]:
        """What a right server answers; cheap ones first, so that more of them fit into a budget."""
        probes = [Probe(f"generated.{self.prefix}valid-{number:04d}", body) for number, body in enumerate(self.valid)]
        return iter(sorted(probes, key=lambda probe: probe.tokens))


def _with_headers(operation: Operation, drawn: Iterable[Drawn], plain: dict[str, Any]) -> Iterator[Probe]:
    """The plain request with each value of a header field that was drawn and that its schema takes."""
    body = {**plain, "max_tokens": LIMIT}
    takes = {
        str(each["name"]).lower(): Validator(each.get("schema", {}), operation.components)
        for each in header_parameters(operation)
    }
    values = {pair: None for case in drawn for pair in case.headers if pair[0] in takes}
    right = [(name, value) for name, value in values if value.isascii() and takes[name].accepts(value)]
    for number, pair in enumerate(right):
        yield Probe(f"generated.header-{number:04d}", body, headers=(pair,))
