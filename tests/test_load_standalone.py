"""The bundle of a plain `locust` run whose records lie on other machines: what the merged counts alone tell."""

from collections import Counter
from pathlib import Path

import pytest

from streamgauge.contract.contract import load_contracts
from streamgauge.load.counts import Counts
from streamgauge.load.plan import LoadPlan, Part
from streamgauge.load.standalone import Standalone
from streamgauge.metrics.slo import Slo
from streamgauge.outcomes import ExitCode
from streamgauge.target import Target

CODES = [
    ({"ok": 5}, "", False, ExitCode.PASS, "load: 5 requests, none failed"),
    ({"ok": 5, "unfinished_at_stop": 1}, "", False, ExitCode.PASS, "load: 6 requests, none failed"),
    ({"ok": 5, "http_5xx": 1}, "", False, ExitCode.GATE_FAILED, "load: 1 of 6 requests failed"),
    ({"http_5xx": 1}, "", False, ExitCode.CANNOT_TELL, "load: cannot tell: not one request succeeded"),
    ({"ok": 5}, "ttft:p50<=9s", False, ExitCode.CANNOT_TELL, "whether the objectives were kept is seen in the records"),
    ({"ok": 5}, "ttft:p50<=9s", True, ExitCode.INTERRUPTED, "load: interrupted"),
]


@pytest.mark.parametrize(("outcomes", "slo", "interrupted", "code", "said"), CODES)
def test_the_exit_code_by_counts(
    outcomes: dict[str, int],
    slo: str,
    interrupted: bool,
    code: ExitCode,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Counts tell whether requests failed; what needs single requests is left open, and where the records are is said."""
    contract = load_contracts(["seekr-chat"])[0]
    target = Target("t", "http://127.0.0.1:1", contract, model="m")
    plan = LoadPlan(target, (Part(contract.operations[0], True),), slos=(Slo.parse(slo),) if slo else ())
    counts = Counts()
    counts.outcomes = Counter(outcomes)
    found = Standalone(plan, tmp_path / "out").finish({"start": 100.0}, counts, interrupted=interrupted)
    told = capsys.readouterr().out
    assert found is code
    assert said in told
    assert f"{sum(outcomes.values())} records are on other machines" in told
