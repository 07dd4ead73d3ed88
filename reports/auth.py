"""Which form of the key was let in, and which was not: the matrix of forms and operations."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from streamgauge.bundle.reader import Bundle
from streamgauge.outcomes import Outcome
from streamgauge.signing import IN_WORDS
from streamgauge.wire.exchange import Credential, Exchange

__all__ = ["KeyForm", "key_forms"]

_IN = "let in"


@dataclass(frozen=True, slots=True)
class KeyForm:
    """
    One form of the key.

    Attributes:
        form: in words.
        cells: for each operation what it was answered, as `401 refused` or `200 let in`; empty where it was not sent.
        wrong: of each cell, whether a check failed because of this form.
    """

    form: str
    cells: tuple[str, ...]
    wrong: tuple[bool, ...]


def key_forms(bundle: Bundle, columns: Sequence[tuple[str, str]]) -> tuple[KeyForm, ...]:
    """
    The forms that were sent with a request that is JSON; none where only the usual form was.

    Args:
        bundle: the run.
        columns: target and operation of each cell.
    """
    said: dict[tuple[Credential, tuple[str, str]], dict[str, None]] = {}
    for exchange in bundle.exchanges.values():
        form = exchange.request.credential
        if not form.usual and exchange.status and exchange.request.is_json:
            place = (form, (exchange.target, exchange.operation))
            said.setdefault(place, {})[_told(exchange)] = None
    sent = [form for form in Credential if any(form is each for each, _ in said)]
    failed = {
        (form, (finding["target"], finding["operation"]))
        for finding in bundle.findings
        if finding["outcome"] == Outcome.FAIL
        for form in _JUDGED_BY.get(finding["check"], ())
    }
    return tuple(
        _row(form, [", ".join(said.get((form, column), ())) for column in columns], columns, failed) for form in sent
    )


_JUDGED_BY = {
    "auth.missing": (Credential.NONE, Credential.EMPTY),
    "auth.wrong": (Credential.WRONG, Credential.ALTERED, Credential.LONGER),
}
"""Check → the forms without the right key that it wants refused."""


def _row(
    form: Credential,
    cells: Sequence[str],
    columns: Sequence[tuple[str, str]],
    failed: Collection[tuple[Credential, tuple[str, str]]],
) -> KeyForm:
    wrong = tuple(_IN in cell and (form, column) in failed for cell, column in zip(cells, columns, strict=True))
    return KeyForm(IN_WORDS[form], tuple(cells), wrong)


def _told(exchange: Exchange) -> str:
    words = _IN if exchange.status < 300 else "refused" if exchange.status in (401, 403) else ""
    return f"{exchange.status} {words}".strip()
