"""Profiles: what an OpenAPI document cannot say about an endpoint, as data."""

import os.path
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from streamgauge import catalog
from streamgauge.errors import DocumentError
from streamgauge.yamlfile import Located, load_yaml

__all__ = [
    "ANY",
    "GENERIC",
    "SUPPORTED",
    "UNSUPPORTED",
    "Auth",
    "Dialect",
    "Profile",
    "default_profile",
    "load_profile",
]


@dataclass(frozen=True, slots=True)
class Auth:
    """Where the key goes."""

    header: str
    scheme: str
    """`raw` for the key alone, else the word before it."""

    required: bool

    def value(self, key: str) -> str:
        """The header's value for a key."""
        return key if self.scheme == "raw" else f"{self.scheme} {key}"


ANY = "any"
"""The value of a switch that takes every form."""

SUPPORTED, UNSUPPORTED = "supported", "unsupported"
"""What a profile may say of a feature; of one that it does not name nothing is known."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """
    Switches where right servers differ.

    Of statuses the first is the one that the vendor names; the others are taken as well.
    """

    malformed_status: tuple[int, ...]
    unknown_model_status: tuple[int, ...]
    error_envelope: str
    error_code: str = ANY
    reasoning_field: str = ANY
    usage_chunk: str = "own-chunk"
    default_max_tokens: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Profile:
    """One vendor's profile; see `spec/profile.schema.json` for the meaning of each member."""

    name: str
    title: str
    documents: tuple[str, ...]
    auth: Auth
    operations: dict[str, dict[str, Any]]
    dialect: Dialect
    headers: dict[str, str] = field(default_factory=dict)
    allowed_statuses: tuple[int, ...] = ()
    features: dict[str, str] = field(default_factory=dict)

    def paths(self, operation: str) -> tuple[str, ...]:
        """The paths at which the operation of this name is served; empty where the document's own holds."""
        return tuple(self.operations.get(operation, {}).get("paths", ()))

    def unsupported(self, used: Iterable[str]) -> tuple[str, ...]:
        """Those of the used features that the profile calls unsupported, in alphabetical order."""
        return tuple(sorted(name for name in used if self.features.get(name) == UNSUPPORTED))


_FORMAT = (
    "The switches and their values: docs/profiles.md; `streamgauge list profiles` shows the bundled ones. "
    "Required: name, title, documents, auth, operations, dialect."
)
_MOST_TOLD = 6

GENERIC = "openai"
"""The bundled profile of servers that no vendor's profile describes."""


def default_profile(document: str) -> str:
    """The bundled profile that names this document; :data:`GENERIC` for a document that none names."""
    for name in catalog.profile_names():
        if document in load_profile(name).documents:
            return name
    return GENERIC


def _require_valid(located: Located) -> None:
    """Say all that is wrong, each with its place; what is unknown first: a misspelt name also lacks the right one."""
    found = list(Draft202012Validator(catalog.schema("profile")).iter_errors(located.data))
    if not found:
        return
    found.sort(key=lambda error: (error.validator != "additionalProperties", error.validator == "required"))
    (where, what), *more = [(located.where(_path(error)), error.message) for error in found]
    lines = [f"{place}: {said}" for place, said in more[:_MOST_TOLD]]
    if len(more) > _MOST_TOLD:
        lines.append(f"and {len(more) - _MOST_TOLD} more")
    raise DocumentError(what, where=where, hint="\n".join([*lines, _FORMAT]))


def _path(error: ValidationError) -> list[str | int]:
    """Where the mistake stands: of an unknown member the member itself."""
    known: Any = error.schema
    unknown: Any = error.instance if error.validator == "additionalProperties" else ()
    return [*error.absolute_path, *[name for name in unknown if name not in known["properties"]][:1]]


def load_profile(name: str) -> Profile:
    """
    Load a profile by bundled name or by path.

    Raises:
        DocumentError: there is no such profile, or it breaks `spec/profile.schema.json`.
    """
    if name in catalog.profile_names():
        located = load_yaml(catalog.profile_text(name), name=f"bundled profile {name}", error=DocumentError)
    elif os.path.lexists(name):
        located = load_yaml(Path(name), error=DocumentError)
    else:
        raise DocumentError(
            "no such profile",
            where=name,
            hint=f"Give the path of a profile, or one of: {', '.join(catalog.profile_names())}.",
        )
    _require_valid(located)
    data: dict[str, Any] = located.data
    dialect: dict[str, Any] = data["dialect"]
    return Profile(
        name=data["name"],
        title=data["title"],
        documents=tuple(data["documents"]),
        auth=Auth(**data["auth"]),
        operations=data["operations"],
        dialect=Dialect(
            **{
                **dialect,
                "malformed_status": tuple(dialect["malformed_status"]),
                "unknown_model_status": tuple(dialect["unknown_model_status"]),
            }
        ),
        headers=data.get("headers", {}),
        allowed_statuses=tuple(data.get("allowed_statuses", ())),
        features=data.get("features", {}),
    )
