"""Recognises the operations that can be judged: by the profile, by the path, and if there is none, by their fields."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from streamgauge.contract.document import Document, Part
from streamgauge.contract.fields import properties_of
from streamgauge.contract.media import JSON, SSE, matching_media_type
from streamgauge.contract.normal import Schemas
from streamgauge.contract.operation import CHAT, COMPLETIONS, Operation, schema_at
from streamgauge.errors import DocumentError

__all__ = ["METHODS", "family_by_path", "operations_of", "recognised"]

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")

_ENDS = {"/chat/completions": CHAT, "/completions": COMPLETIONS}
"""How the path of a family ends, the longer one first."""

_SHOWN = 10

Said = Mapping[str, Mapping[str, Any]]
"""What a profile says of each operation, by name."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    method: str
    path: str
    part: Part


def operations_of(document: Document, said: Said) -> list[Operation]:
    """
    The operations of a document that are chat or completions.

    Args:
        document: where to look.
        said: what the profile says of operations, by name.

    Raises:
        DocumentError: there is none, or the document is not built as OpenAPI says.
    """
    schemas = Schemas(document)
    candidates = _candidates(document)
    found = _recognised(document, schemas, candidates, said)
    if not found and len(candidates) == 1 and (family := said.get(document.name, {}).get("family")):
        found = [(candidates[0], family)]
    if not found:
        raise _none_recognised(document, candidates)
    operations = []
    for each, family in found:
        long = _name(each, document)
        name = document.name if len(found) == 1 else long
        told = said.get(name, said.get(long, {}))
        operation = Operation(
            name=name,
            document=document,
            method=each.method,
            path=each.path,
            family=told.get("family", family),
            streams=False,
            part=each.part,
            schemas=schemas,
        )
        operations.append(replace(operation, streams=_streams(operation, told)))
    return operations


def recognised(document: Document) -> dict[tuple[str, str], str]:
    """
    Upper-case method and path → family, of the operations that need no profile to be recognised.

    Raises:
        DocumentError: the document is not built as OpenAPI says.
    """
    found = _recognised(document, Schemas(document), _candidates(document), {})
    return {(each.method, each.path): family for each, family in found}


def family_by_path(method: str, path: str) -> str | None:
    """The family of an operation whose upper-case method and path tell it."""
    if method != "POST":  # GET of the same path lists completions that were kept
        return None
    return next((family for end, family in _ENDS.items() if path.endswith(end)), None)


def _recognised(
    document: Document, schemas: Schemas, candidates: list[_Candidate], said: Said
) -> list[tuple[_Candidate, str]]:
    found = [
        (each, family)
        for each in candidates
        if (family := _named(each, document, said) or family_by_path(each.method, each.path))
    ]
    if not found:
        found = [(each, family) for each in candidates if (family := _by_fields(each, schemas))]
        for each, family in found:
            document.notes.append(f"{each.method} {each.path} is taken for {family} by the fields of its request")
    return found


def _candidates(document: Document) -> list[_Candidate]:
    paths = document.root.child("paths")
    found = []
    for path in paths.mapping():
        if not path.startswith("/"):
            continue
        item = paths.child(path)
        found += [
            _Candidate(method.upper(), path, item.child(method)) for method in item.mapping() if method in METHODS
        ]
    return found


def _name(each: _Candidate, document: Document) -> str:
    return f"{document.name}:{each.method} {each.path}"


def _named(each: _Candidate, document: Document, said: Said) -> str | None:
    family: str | None = said.get(_name(each, document), {}).get("family")
    return family


def _by_fields(each: _Candidate, schemas: Schemas) -> str | None:
    """
    Chat has messages with a role, completions have a prompt and a limit of tokens; and both answer with choices.

    Other interfaces have `messages` (Anthropic's) or `prompt` (pictures), but no choices.
    """
    if each.method != "POST":
        return None
    try:
        asked = schemas.normal(schema_at(each.part.child("requestBody"), JSON))
        answer = schemas.normal(schema_at(each.part.child("responses", "200"), JSON))
    except DocumentError:  # about an operation that is none of ours
        return None
    answered = properties_of(schemas, answer, any_branch=True)
    if answered and "choices" not in answered:
        return None
    fields = properties_of(schemas, asked, any_branch=True)
    if "messages" in fields and _holds_roles(fields["messages"], schemas, bool(answered)):
        return CHAT
    limited = "max_tokens" in fields or "max_completion_tokens" in fields
    return COMPLETIONS if "prompt" in fields and limited else None


def _holds_roles(schema: Any, schemas: Schemas, has_choices: bool) -> bool:
    items = schemas.resolved(schema).get("items")
    fields = properties_of(schemas, items, any_branch=True)
    return "role" in fields and ("content" in fields or has_choices)


def _streams(operation: Operation, told: Mapping[str, Any]) -> bool:
    """
    What the document says, else what the profile says, else what the request's `stream` hints at.

    A profile cannot take back what the document says.
    """
    types = operation.media_types(200)
    if matching_media_type(types, SSE) is not None:
        return True
    if "stream" in told:
        return bool(told["stream"])
    if any(operation.documents_body(200, media_type) for media_type in types):
        return False
    kinds = operation.schemas.resolved(operation.properties.get("stream"))
    branches = [kinds, *kinds.get("anyOf", ()), *kinds.get("oneOf", ())]
    hinted = any(isinstance(branch, dict) and "boolean" in _as_list(branch.get("type")) for branch in branches)
    if hinted:
        operation.document.notes.append(f"{operation.name} is taken to stream, having a property `stream`")
    return hinted


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _none_recognised(document: Document, candidates: list[_Candidate]) -> DocumentError:
    listed = ", ".join(f"{each.method} {each.path}" for each in candidates[:_SHOWN]) or "none"
    more = f" and {len(candidates) - _SHOWN} more" if len(candidates) > _SHOWN else ""
    example = _name(candidates[0], document) if candidates else f"{document.name}:POST /path"
    hint = (
        "Looked for paths that end in /chat/completions or /completions, and for requests like theirs. "
        f"There are: {listed}{more}.\n"
        f'A profile names one by `operations: {{"{example}": {{family: chat}}}}`; give it by --profile.'
    )
    return DocumentError("holds no operation that streamgauge can judge", where=document.located.name, hint=hint)
