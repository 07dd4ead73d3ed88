"""`structured.*`: does the answer have the form that the request demands?"""

from collections.abc import Callable, Iterator

from streamgauge.conformance.assembly import Choice, answer_in
from streamgauge.conformance.check import CLIENTS, Case, Departure, check
from streamgauge.conformance.declining import declines
from streamgauge.conformance.demands import DEMANDS, FORMAT, OUTPUTS, constraints_of, lacks_schema
from streamgauge.conformance.law import BESIDE, given, ignored, law
from streamgauge.conformance.posting import judged_by_body, shown
from streamgauge.conformance.predicates import valid_request
from streamgauge.conformance.textforms import Fit, TextForm
from streamgauge.contract.contract import Contract, Operation
from streamgauge.contract.paths import request_paths
from streamgauge.outcomes import Level, Outcome
from streamgauge.wire.exchange import Evidence

__all__: list[str] = []


def _fit(form: TextForm, choice: Choice) -> Fit:
    """Whether a choice has the form; one that says nothing as text, or was not ended by the model, often leaves it open."""
    return form.fit(choice.text, choice.finish == "stop") if choice.text and not declines(choice) else Fit.OPEN


def _demand(
    name: str,
    level: Level,
    title: str,
    properties: tuple[str, ...],
    *,
    requirement: str,
    source: str,
    binds: Callable[[Case], bool] = lambda case: True,
) -> None:
    """A law: each text has the form that is demanded."""
    demand = DEMANDS[name]

    def form_of(case: Case) -> TextForm:
        form = demand(given(case))
        assert form is not None
        return form

    def shows(case: Case) -> bool:
        form = form_of(case)
        return binds(case) and any(
            _fit(form, each) is not Fit.OPEN for each in answer_in(case.exchange).choices.values()
        )

    @law(
        f"structured.{name}",
        level,
        title,
        properties=properties,
        requirement=requirement,
        source=source,
        asks=lambda asked: demand(asked) is not None,
        applies=shows,
        beside=BESIDE - {"echo"},
        absent="no request demanded it and got a text that can show it: one that the model ended itself",
    )
    def judge(case: Case) -> Iterator[Departure]:
        form = form_of(case)
        for choice in answer_in(case.exchange).choices.values():
            match _fit(form, choice):
                case Fit.LACKS:
                    yield ignored(f"a text that is {form.words}", repr(choice.text))
                case Fit.ALMOST:
                    yield Departure(f"a text that is {form.words}", repr(choice.text))


def _strictly(case: Case) -> bool:
    """Where a document knows `strict`, only who asks for it may count on the schema."""
    strict = f"{FORMAT}.json_schema.strict"
    return (
        strict not in request_paths(case.operation) or case.exchange.sent[FORMAT]["json_schema"].get("strict") is True
    )


def _within(head: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{head}.{name}" for name in names)


_OPENAI = "OpenAI, create chat completion: response_format"
_VLLM = "vLLM, structured outputs"

_demand(
    "json-object",
    Level.MUST,
    "With the format json_object a text is a JSON object",
    (FORMAT, f"{FORMAT}.type"),
    requirement="JSON mode, which ensures the message the model generates is valid JSON.",
    source=_OPENAI,
)
_demand(
    "json-schema",
    Level.MUST,
    "With the format json_schema a text is JSON by the schema",
    (
        *_within(f"{FORMAT}.json_schema", "schema", "strict"),
        f"{FORMAT}.json_schema",
        FORMAT,
        f"{FORMAT}.type",
    ),
    requirement="Structured Outputs which ensures the model will match your supplied JSON schema.",
    source=_OPENAI,
    binds=_strictly,
)
_demand(
    "format-regex",
    Level.MUST,
    "With the format regex a text matches the pattern",
    (f"{FORMAT}.regex", FORMAT, f"{FORMAT}.type"),
    requirement="regex: Pattern that the output has to match.",
    source="DeepInfra, completions: response_format",
)
_demand(
    "format-tag",
    Level.MUST,
    "With the format structural_tag a text is what its format says",
    (f"{FORMAT}.format", FORMAT, f"{FORMAT}.type"),
    requirement="type: structural_tag, format: ...",
    source=f"{_VLLM}; xgrammar, structural tag",
)
_demand(
    "format-tags",
    Level.MUST,
    "With structural tags each trigger in a text begins a whole tag",
    (
        *_within(FORMAT, "triggers", "structures", "structures[].begin", "structures[].schema", "structures[].end"),
        FORMAT,
        f"{FORMAT}.type",
    ),
    requirement="structural_tag: Follow a JSON schema within a set of specified tags within the generated text.",
    source=_VLLM,
)
_CONSTRAINTS = (
    ("json", "json", "is JSON by the schema", "the output will follow the JSON schema."),
    ("regex", "regex", "matches the pattern", "the output will follow the regex pattern."),
    ("choice", "choice", "is one of the choices", "the output will be exactly one of the choices."),
    ("grammar", "grammar", "follows the grammar", "the output will follow the context free grammar."),
    ("any-object", "json_object", "is a JSON object", "the output will be a JSON object."),
    (
        "structural-tag",
        "structural_tag",
        "is what the tag says",
        "Follow a JSON schema within a set of specified tags within the generated text.",
    ),
)
"""Name of the demand, of the constraint, what the text is, and what vLLM says of it."""

for _demanded, _constraint, _what, _said in _CONSTRAINTS:
    _demand(
        _demanded,
        Level.MUST,
        f"With `structured_outputs.{_constraint}` a text {_what}",
        (f"{OUTPUTS}.{_constraint}", OUTPUTS),
        requirement=f"{_constraint}: {_said}",
        source=_VLLM,
    )

_FLAGS = (
    ("tight", "disable_any_whitespace", "no arbitrary white space"),
    ("closed", "disable_additional_properties", "no members that the schema does not name"),
    ("spacing", "whitespace_pattern", "the white space of the pattern alone"),
)
"""Name of the demand, of the flag, and what JSON then has."""

for _demanded, _flag, _what in _FLAGS:
    _demand(
        _demanded,
        Level.SHOULD,
        f"With `structured_outputs.{_flag}` JSON has {_what}",
        (f"{OUTPUTS}.{_flag}",),
        requirement=f"structured_outputs: {_flag}",
        source=f"{_VLLM}; whether it is kept depends on its backend",
    )


def _knows(path: str) -> Callable[[Operation, Contract], bool]:
    return lambda operation, contract: path in request_paths(operation)


def _judged(case: Case) -> bool:
    return valid_request(case) and judged_by_body(case)


@check(
    "structured.exactly-one",
    Level.MUST,
    "Structured outputs with several constraints are refused",
    requirement="Structured-output constraints. Exactly one constraint may be set.",
    source="/requestBody/content/application~1json/schema/properties/structured_outputs",
    applies=lambda case: _judged(case) and len(constraints_of(given(case))) > 1,
    concerns=_knows(OUTPUTS),
    absent="no request set several constraints",
    needs=(Evidence.REQUEST,),
)
def exactly_one(case: Case) -> Iterator[Departure]:
    """Accepted, all but one of them are silently left out."""
    if case.exchange.status == 200:
        told = ", ".join(constraints_of(given(case)))
        yield Departure(f"4xx for several constraints ({told})", shown(case), outcome=Outcome.IGNORED)


@check(
    "structured.schema-missing",
    Level.SHOULD,
    "The format json_schema without a schema is refused",
    requirement="json_schema: Structured Outputs configuration options, including a JSON Schema.",
    source=CLIENTS,
    applies=lambda case: _judged(case) and lacks_schema(given(case)),
    concerns=lambda operation, contract: f"{FORMAT}.json_schema.schema" in request_paths(operation),
    absent="no request that the document allows lacked the schema",
    needs=(Evidence.REQUEST,),
)
def schema_missing(case: Case) -> Iterator[Departure]:
    """A misspelt member takes the schema away, and what comes back is taken for data by it."""
    if case.exchange.status == 200:
        yield Departure("4xx, since there is no schema", shown(case), outcome=Outcome.IGNORED)


_FORMATS = ("json-object", "json-schema", "format-regex", "format-tag")


def _both(case: Case) -> list[TextForm]:
    """What a format and a constraint demand, where both do; empty otherwise."""
    asked = given(case)
    names = _FORMATS, [name for name, *_ in _CONSTRAINTS]
    found = [[form for name in each if (form := DEMANDS[name](asked)) is not None] for each in names]
    return [form for forms in found for form in forms] if all(found) else []


@check(
    "structured.both",
    Level.SHOULD,
    "A format and structured outputs that exclude each other are refused, or both are kept",
    requirement="Exactly one constraint may be set.",
    source="/requestBody/content/application~1json/schema/properties/structured_outputs",
    applies=lambda case: _judged(case) and bool(_both(case)),
    concerns=lambda operation, contract: {FORMAT, OUTPUTS} <= operation.properties.keys(),
    absent="no request gave both",
    needs=(Evidence.REQUEST,),
)
def both(case: Case) -> Iterator[Departure]:
    """No document says which one wins."""
    if case.exchange.status != 200:
        return
    for choice in answer_in(case.exchange).choices.values():
        for form in _both(case):
            if _fit(form, choice) in (Fit.LACKS, Fit.ALMOST):
                yield ignored(f"4xx, or a text that is {form.words}", repr(choice.text))
                return
