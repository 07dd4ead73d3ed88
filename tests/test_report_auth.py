"""The matrix of key forms in the report: computed from the exchanges alone."""

import contextlib
from pathlib import Path

import pytest
from report_bundles import meta
from transcripts import contract_of, exchange, http, request

from streamgauge.bundle.reader import Bundle
from streamgauge.bundle.writer import BundleWriter
from streamgauge.outcomes import Outcome
from streamgauge.reports.auth import KeyForm, key_forms
from streamgauge.signing import IN_WORDS
from streamgauge.wire.exchange import Credential, Exchange

OPERATION = contract_of("openai-chat")[1]
COLUMNS = (("t", "openai-chat"), ("t", "another"))


def sent(number: int, credential: Credential, status: int, body: object = None) -> Exchange:
    """One request in this form and the status of its answer; 0 for none."""
    wire = http(status, b"{}") if status else b""
    asked = request(OPERATION) if body is None else body
    return exchange(OPERATION, asked, wire, credential=credential, probe=str(number))


@pytest.mark.parametrize(
    ("exchanges", "expected"),
    [
        ([], []),
        ([(Credential.VALID, 200), (Credential.UNKNOWN, 401), (Credential.UNCONFIGURED, 200)], []),
        ([(Credential.NONE, 0)], []),
        ([(Credential.NONE, 401), (Credential.NONE, 401)], [(Credential.NONE, "401 refused")]),
        ([(Credential.NONE, 401), (Credential.NONE, 200)], [(Credential.NONE, "401 refused, 200 let in")]),
        (
            [(Credential.QUERY, 500), (Credential.EMPTY, 403)],
            [(Credential.EMPTY, "403 refused"), (Credential.QUERY, "500")],
        ),
    ],
)
def test_rows(exchanges: list[tuple[Credential, int]], expected: list[tuple[Credential, str]], tmp_path: Path) -> None:
    """A row for each form that was tried out and answered, each kind of answer once; a dash where none was sent."""
    writer = BundleWriter(tmp_path / "b")
    writer.meta(meta())
    with contextlib.closing(writer.exchanges("main")) as file:
        for number, (credential, status) in enumerate(exchanges):
            file.write(sent(number, credential, status))
        file.write(sent(99, Credential.WRONG, 400, b"{"))  # no JSON: says nothing about the key

    rows = key_forms(Bundle(tmp_path / "b"), COLUMNS)

    assert list(rows) == [KeyForm(IN_WORDS[credential], (cell, ""), (False, False)) for credential, cell in expected]


def test_every_form_has_words() -> None:
    """Findings and reports name each form that is not the usual one."""
    assert {each for each in Credential if not each.usual} == set(IN_WORDS)


def test_what_a_check_wanted_refused_is_marked(tmp_path: Path) -> None:
    """A form without the right key that was let in is marked where its check failed, and nowhere else."""
    writer = BundleWriter(tmp_path / "b")
    writer.meta(meta())
    with contextlib.closing(writer.exchanges("main")) as file:
        for number, form in enumerate((Credential.NONE, Credential.WRONG, Credential.X_API_KEY)):
            file.write(sent(number, form, 200))
    with writer.findings() as findings:
        for check, outcome in (("auth.missing", Outcome.FAIL), ("auth.wrong", Outcome.NOT_APPLICABLE)):
            said = {"check": check, "level": "MUST", "outcome": outcome, "counts": {}, "reason": "", "examples": []}
            findings.write({**said, "target": "t", "operation": "openai-chat"})

    rows = key_forms(Bundle(tmp_path / "b"), COLUMNS)

    assert [row.wrong for row in rows] == [(True, False), (False, False), (False, False)]
