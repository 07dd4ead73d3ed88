"""The contract: one profile and one or more documents, compiled."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from streamgauge.contract.document import Document, load_document
from streamgauge.contract.families import operations_of
from streamgauge.contract.media import JSON, SSE
from streamgauge.contract.operation import CHAT, COMPLETIONS, Operation
from streamgauge.contract.profile import Profile, default_profile, load_profile
from streamgauge.contract.security import documented_auth
from streamgauge.contract.source import Reach
from streamgauge.errors import DocumentError

__all__ = ["CHAT", "COMPLETIONS", "JSON", "SSE", "Contract", "Operation", "load_contracts"]


@dataclass(frozen=True)
class Contract:
    """
    A profile and the operations that are judged under it.

    Attributes:
        notes: where a document was read in a way that the user should know of.
    """

    profile: Profile
    operations: tuple[Operation, ...]
    notes: tuple[str, ...] = ()

    def operation(self, name: str) -> Operation | None:
        """The operation of that name."""
        return next((operation for operation in self.operations if operation.name == name), None)

    def allows_status(self, operation: Operation, status: int) -> bool:
        """Whether document or profile knows this status for the operation."""
        return operation.documents_status(status) or status in self.profile.allowed_statuses


def load_contracts(specs: Sequence[str], profile: str | None = None, reach: Reach | None = None) -> list[Contract]:
    """
    Compile documents, grouped by the profile that each goes with.

    Args:
        specs: bundled names, paths, URLs, or `-` for standard input.
        profile: one profile for all of them; by default each document's own.
        reach: what else may be read for them; nothing by default.

    Raises:
        DocumentError: a document or profile cannot be used, or holds no operation of a family that we know.
    """
    groups: dict[str, list[Document]] = {}
    for spec in dict.fromkeys(specs):
        document = load_document(spec, reach)
        groups.setdefault(profile or default_profile(document.name), []).append(document)
    contracts = []
    for name, documents in groups.items():
        loaded = load_profile(name)
        operations = [operation for document in documents for operation in _compiled(document, loaded)]
        names = [operation.name for operation in operations]
        for twice in {name for name in names if names.count(name) > 1}:
            hint = "Rename one of the files: an operation is called after its document."
            raise DocumentError(f"two documents give an operation called {twice}", hint=hint)
        notes = [f"{document.name}: {note}" for document in documents for note in document.notes]
        if profile is None:
            loaded, said = _as_documented(loaded, operations)
            notes += said
        contracts.append(Contract(loaded, tuple(operations), tuple(notes)))
    return contracts


def _compiled(document: Document, profile: Profile) -> list[Operation]:
    """The operations, once every schema of theirs has proved usable: not in the middle of a run."""
    try:
        operations = operations_of(document, profile.operations)
        for operation in operations:
            operation.require_usable()
    except DocumentError as problem:
        where = problem.where or document.located.name
        raise DocumentError(problem.what, where=where, hint=problem.hint) from None
    except RecursionError:
        raise DocumentError("is nested too deeply", where=document.located.name) from None
    return operations


def _as_documented(profile: Profile, operations: Sequence[Operation]) -> tuple[Profile, list[str]]:
    """The profile with the key where the documents want it, unless the profile is made for one of them; and what to say."""
    if any(operation.document.name in profile.documents for operation in operations):
        return profile, []
    notes = []
    for operation in operations:
        auth = documented_auth(operation)
        if auth is not None:
            form = auth.header if auth.scheme == "raw" else f"{auth.header}: {auth.scheme}"
            changed = (auth.header, auth.scheme) != (profile.auth.header, profile.auth.scheme)
            if changed:
                notes.append(
                    f"{operation.document.name}: the key goes as the document says, {form}, not as profile {profile.name} says"
                )
            return dataclasses.replace(profile, auth=auth), notes
    return profile, notes
