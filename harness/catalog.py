"""The documents, profiles and schemas that ship in `spec/`."""

import functools
import json
from importlib.resources import files
from typing import Any

__all__ = ["DOCUMENTS", "document_text", "profile_names", "profile_text", "schema", "traceability_text"]

DOCUMENTS: dict[str, str] = {
    "seekr-chat": "seekr-chat-completions.yaml",
    "seekr-completions": "seekr-completions.yaml",
    "deepinfra-completions": "deepinfra-completions.yaml",
    "openai-chat": "openai-chat-completions.yaml",
    "openai-completions": "openai-completions.yaml",
}
"""Name of each bundled document → its file in `spec/openapi`."""

_SPEC = files("streamgauge.spec")


def document_text(name: str) -> bytes:
    """The bundled document's bytes: as the vendor published them, or as we wrote them."""
    return _SPEC.joinpath("openapi", DOCUMENTS[name]).read_bytes()


def profile_names() -> list[str]:
    """The bundled profiles, in alphabetical order."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in _SPEC.joinpath("profiles").iterdir()
        if entry.name.endswith(".yaml")
    )


def profile_text(name: str) -> bytes:
    """The bundled profile's YAML."""
    return _SPEC.joinpath("profiles", f"{name}.yaml").read_bytes()


def traceability_text(name: str) -> bytes:
    """The YAML that names the checks of each statement of a bundled document."""
    return _SPEC.joinpath("traceability", f"{name}.yaml").read_bytes()


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """One of our own JSON Schemas: `bundle`, `config`, `scenario`, `profile`, `baseline` or `traceability`."""
    loaded: dict[str, Any] = json.loads(_SPEC.joinpath(f"{name}.schema.json").read_bytes())
    return loaded
