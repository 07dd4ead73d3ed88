"""Profiles: what an OpenAPI document cannot say about an endpoint, as data."""

import os.path
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.errors import DocumentError
from streamgauge.yamlfile import load_yaml

__all__ = ["Auth", "Dialect", "Profile", "default_profile", "load_profile"]


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


@dataclass(frozen=True, slots=True)
class Dialect:
    """Switches where right servers differ."""

    malformed_status: tuple[int, ...]
    unknown_model_status: tuple[int, ...]
    error_envelope: str
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


def default_profile(document: str) -> str:
    """The bundled profile that names this document; `seekr` for a document that none names, being the strictest."""
    for name in catalog.profile_names():
        if document in load_profile(name).documents:
            return name
    return "seekr"


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
    for error in Draft202012Validator(catalog.schema("profile")).iter_errors(located.data):
        raise DocumentError(error.message, where=located.where(error.absolute_path))
    data: dict[str, Any] = located.data
    dialect = data["dialect"]
    return Profile(
        name=data["name"],
        title=data["title"],
        documents=tuple(data["documents"]),
        auth=Auth(**data["auth"]),
        operations=data["operations"],
        dialect=Dialect(
            malformed_status=tuple(dialect["malformed_status"]),
            unknown_model_status=tuple(dialect["unknown_model_status"]),
            error_envelope=dialect["error_envelope"],
            default_max_tokens=dialect.get("default_max_tokens", {}),
        ),
        headers=data.get("headers", {}),
        allowed_statuses=tuple(data.get("allowed_statuses", ())),
    )
