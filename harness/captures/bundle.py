"""Takes targets and exchanges from stored bundles, to be judged again."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from streamgauge import catalog
from streamgauge.bundle.reader import Bundle
from streamgauge.captures.capture import Capture
from streamgauge.captures.matching import match
from streamgauge.contract.contract import load_contracts
from streamgauge.errors import UsageError
from streamgauge.target import Target
from streamgauge.wire.exchange import Exchange

__all__ = ["exchanges_of", "targets_of"]


def targets_of(bundles: Sequence[Bundle], *, profile: str | None, model: str | None) -> list[Target]:
    """
    The targets of stored runs, under the same documents as then.

    Args:
        bundles: stored runs.
        profile: in place of the bundles'.
        model: in place of the bundles'.

    Raises:
        UsageError: a document is not bundled, or has changed since; or two bundles differ about a target.
        BundleError: a bundle does not say what its targets were.
    """
    found: dict[str, Target] = {}
    for bundle in bundles:
        for described in bundle.meta.get("targets", []):
            target = _target(described, bundle, profile, model)
            known = found.setdefault(target.name, target)
            if (known.model, known.paths) != (target.model, target.paths) or _documents(known) != _documents(target):
                hint = "Judge them one by one."
                raise UsageError(f"another target of the name {target.name}", where=bundle.path.name, hint=hint)
    return list(found.values())


def exchanges_of(bundle: Bundle, number: int, targets: Sequence[Target]) -> Iterator[Exchange]:
    """
    The exchanges of these targets' operations: of the same names, else with their paths.

    Args:
        bundle: where from.
        number: 0 for the only bundle; for one of several, a number that makes the ids unique.
        targets: whose exchanges.
    """
    own = {(target.name, operation.name) for target in targets for operation in target.contract.operations}
    for exchange in bundle.exchanges.values():
        id_ = f"{number}-{exchange.id}" if number else exchange.id
        if (exchange.target, exchange.operation) in own:
            yield replace(exchange, id=id_)
            continue
        capture = Capture(exchange.id, b"", exchange.holds, exchange.request.method, exchange.request.url)
        for target in targets:
            operation = match(capture, target) if capture.path else ""
            if not isinstance(operation, str):
                several = f"{target.name}-{id_}" if len(targets) > 1 else id_
                yield replace(exchange, id=several, target=target.name, operation=operation.name)


def _documents(target: Target) -> list[tuple[str, str]]:
    return [(each.name, each.document.sha256) for each in target.contract.operations]


def _target(described: dict[str, Any], bundle: Bundle, profile: str | None, model: str | None) -> Target:
    try:
        name, operations = described["name"], described["operations"]
        documents = {each["document"]: each["document_sha256"] for each in operations}
        paths = {each["name"]: each["path"] for each in operations}
        used, asked, base_url = profile or described["profile"], model or described["model"], described["base_url"]
    except (KeyError, TypeError) as problem:
        raise UsageError(f"its meta.json describes no target: {problem!r}", where=bundle.path.name) from None
    for document, sha256 in documents.items():
        if document not in catalog.DOCUMENTS:
            what = f"was judged by a document of its own, {document}"
            raise UsageError(what, where=bundle.path.name, hint="Name that document again: --spec PATH.")
        if hashlib.sha256(catalog.document_text(document)).hexdigest() != sha256:
            what = f"was judged by another version of {document}"
            hint = f"Name the document to judge by: --spec {document} for today's."
            raise UsageError(what, where=bundle.path.name, hint=hint)
    if used not in catalog.profile_names() and profile is None:
        what = f"was judged by a profile of its own, {used}"
        raise UsageError(what, where=bundle.path.name, hint="Name that profile again: --profile PATH.")
    contract = load_contracts(list(documents), used)[0]
    target = Target(name=name, base_url=base_url, contract=contract, model=asked)
    moved = {each.name: paths[each.name] for each in contract.operations if paths.get(each.name) != target.path(each)}
    return replace(target, paths=moved)
