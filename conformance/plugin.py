"""
The pytest plugin behind the suite.

`pytest --pyargs streamgauge.conformance.suite --sg-base-url URL --sg-spec NAME` judges an endpoint from a team's own test
run; `streamgauge check` runs the same suite in its own process. The controlling process records into the bundle when its
session starts; the tests, under pytest-xdist in any worker, read the bundle and send nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from streamgauge.captures.gather import Captures
    from streamgauge.config import TargetFlags
    from streamgauge.conformance.judge import Finding
    from streamgauge.conformance.session import Item, Settings

# Everything else is imported inside the hooks: this module is loaded by every pytest run of the environment.

SETTINGS: pytest.StashKey[Settings] = pytest.StashKey()
FINDING: pytest.StashKey[Finding] = pytest.StashKey()

_FINDING_ATTRIBUTE = "streamgauge_finding"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options that name the target; the key comes from STREAMGAUGE_API_KEY or a key file, never from here."""
    group = parser.getgroup("streamgauge", "conformance of OpenAI-compatible endpoints")
    group.addoption("--sg-base-url", metavar="URL", help="prefix before an operation's path")
    group.addoption("--sg-target", metavar="NAME", help="target from streamgauge.yaml")
    group.addoption(
        "--sg-from",
        metavar="PATH",
        action="append",
        default=[],
        type=Path,
        help="judge stored bytes and send nothing: a bundle, a HAR file, `curl -i` output, or a folder of those; "
        "write --sg-from=PATH, lest pytest take its folder for the root of your tests",
    )
    group.addoption(
        "--sg-spec",
        metavar="SPEC",
        action="append",
        default=[],
        help="what it has to keep: a bundled document, a path or a URL; repeatable",
    )
    group.addoption("--sg-profile", metavar="PROFILE", help="bundled name or path of a profile")
    group.addoption("--sg-model", metavar="MODEL", help="model to ask for")
    group.addoption(
        "--sg-path",
        metavar="[OPERATION=]PATH",
        action="append",
        default=[],
        help="path in place of the document's",
    )
    group.addoption("--sg-header", metavar="NAME=VALUE", action="append", default=[], help="further header field")
    group.addoption("--sg-api-key-file", metavar="FILE", type=Path, help="file that holds the key")
    group.addoption("--sg-ca-file", metavar="FILE", help="certificates to trust")
    group.addoption("--sg-insecure", action="store_true", help="leave TLS certificates unverified")
    group.addoption("--sg-client-cert", metavar="FILE", help="certificate to show, and its key unless --sg-client-key")
    group.addoption("--sg-client-key", metavar="FILE", help="key of that certificate, without a passphrase")
    group.addoption(
        "--sg-proxy-from-env", action="store_true", help="obey HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY"
    )
    group.addoption("--sg-remote-refs", action="store_true", help="let a document refer to other files")
    group.addoption("--sg-output", metavar="DIR", type=Path, help="directory of the bundle (default: runs/<time>)")
    group.addoption("--sg-select", metavar="PROBE", action="append", default=[], help="send only these probes")
    group.addoption("--sg-budget-tokens", metavar="N", type=int, help="tokens that one operation may cost")
    group.addoption(
        "--sg-detect-rate",
        metavar="RATE",
        type=float,
        help="repeat each probe but the generated ones until a fault of this rate shows with 99 %% power: "
        "0.3 takes 13 tries",
    )
    group.addoption(
        "--sg-explore-tokens",
        metavar="N",
        type=int,
        help="tokens of that budget that requests drawn at random may cost; 0 draws none",
    )
    group.addoption("--sg-explore-seed", metavar="N", type=int, help="seed of those draws (default: 0)")
    group.addoption("--sg-destructive", action="store_true", help="also send requests that have killed engines")
    group.addoption("--sg-concurrency", metavar="N", type=int, help="requests at once")
    group.addoption("--sg-baseline", metavar="FILE", type=Path, help="known findings")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Record, in the controlling process only; `--collect-only` sends nothing."""
    from streamgauge.errors import StreamgaugeError

    config = session.config
    if SETTINGS in config.stash:
        return
    try:
        flags = _flags(config)
        if flags.names_a_target or config.getoption("--sg-from") or _worker(config):
            config.stash[SETTINGS] = _settings(config, flags)
    except StreamgaugeError as problem:
        pytest.exit(f"streamgauge: {_in_own_words(str(problem), config)}", returncode=int(problem.exit_code))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where the bundle lies."""
    settings = node.config.stash.get(SETTINGS, None)
    if settings is not None:
        node.workerinput["streamgauge_directory"] = str(settings.directory)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each check and operation: known before any traffic."""
    if "streamgauge_item" in metafunc.fixturenames:
        settings = metafunc.config.stash.get(SETTINGS, None)
        items = settings.items() if settings is not None else []
        metafunc.parametrize("streamgauge_item", items, ids=[item.id for item in items])


@pytest.fixture
def streamgauge_finding(request: pytest.FixtureRequest, streamgauge_item: Item) -> Finding:
    """What the check of this test finds."""
    finding = request.config.stash[SETTINGS].judge(streamgauge_item)
    request.node.stash[FINDING] = finding
    return finding


@pytest.fixture
def streamgauge_known(request: pytest.FixtureRequest, streamgauge_finding: Finding) -> str:
    """The baseline's reason for accepting the finding; empty when it is not known."""
    baseline = request.config.stash[SETTINGS].baseline
    entry = baseline.known(streamgauge_finding.line()) if baseline is not None else None
    return entry.reason if entry is not None else ""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the finding travel with the report, also from a worker to the controlling process."""
    report = yield
    if call.when == "call" and FINDING in item.stash:
        setattr(report, _FINDING_ATTRIBUTE, item.stash[FINDING].line())
    return report


class FindingsKeeper:
    """Writes findings as they come, and the gate at the end; lives in the controlling process."""

    def __init__(self, settings: Settings) -> None:
        from streamgauge.bundle.layout import FINDINGS
        from streamgauge.bundle.writer import LineWriter

        self._settings = settings
        self._lines: list[dict[str, Any]] = []
        self._file = LineWriter(settings.directory / FINDINGS)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Append the finding that a report carries."""
        line = getattr(report, _FINDING_ATTRIBUTE, None)
        if line is None:
            return
        entry = self._settings.baseline.known(line) if self._settings.baseline else None
        if entry is not None:
            line = {**line, "known": {"reason": entry.reason, "expires": str(entry.expires)}}
        self._lines.append(line)
        self._file.write(line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write honour table and gate; what the gate objects to beside failing tests (stale, no verdict) fails the session."""
        from streamgauge.bundle.layout import GATE, HONOUR
        from streamgauge.bundle.writer import write_whole
        from streamgauge.gate import decide

        self._file.close()
        write_whole(self._settings.directory / HONOUR, self._settings.honour(self._lines))
        gate = decide(self._lines, baseline=self._settings.baseline, interrupted=self._settings.interrupted)
        write_whole(self._settings.directory / GATE, gate.line())
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = int(gate.exit_code)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say where everything is."""
        terminalreporter.section("streamgauge")
        terminalreporter.write_line(f"bundle: {self._settings.directory}")
        terminalreporter.write_line(f"report: streamgauge report {self._settings.directory}")


def _worker(config: pytest.Config) -> str | None:
    found: str | None = getattr(config, "workerinput", {}).get("streamgauge_directory")
    return found


def _flags(config: pytest.Config) -> TargetFlags:
    import os

    from streamgauge.config import TargetFlags

    option = config.getoption
    flags = TargetFlags(
        target=option("--sg-target"),
        base_url=option("--sg-base-url"),
        spec=tuple(option("--sg-spec")),
        profile=option("--sg-profile"),
        model=option("--sg-model"),
        path=tuple(option("--sg-path")),
        header=tuple(option("--sg-header")),
        api_key_file=option("--sg-api-key-file"),
        ca_file=option("--sg-ca-file"),
        insecure=option("--sg-insecure"),
        client_cert=option("--sg-client-cert"),
        client_key=option("--sg-client-key"),
        proxy_from_env=option("--sg-proxy-from-env"),
        remote_refs=option("--sg-remote-refs"),
    )
    # The environment may complete a target that was named here; it never starts traffic in somebody else's test run.
    return flags.with_environment(os.environ) if flags.names_a_target else flags


def _in_own_words(message: str, config: pytest.Config) -> str:
    """The message with the command line's options under the names that they have here."""
    import re

    def own(option: re.Match[str]) -> str:
        name = f"--sg-{option[1]}"
        return name if config.getoption(name, default=config) is not config else option[0]

    return re.sub(r"(?<![\w-])--([a-z][a-z-]*[a-z])", own, message)


def _captured(config: pytest.Config, flags: TargetFlags) -> Captures | None:
    """What `--sg-from` names; None without it."""
    from streamgauge.captures.gather import gather, gather_targets
    from streamgauge.captures.sources import sources
    from streamgauge.errors import UsageError

    paths: list[Path] = config.getoption("--sg-from")
    if not paths:
        return None
    about_probes = (
        *("--sg-select", "--sg-budget-tokens", "--sg-detect-rate"),
        *("--sg-explore-tokens", "--sg-explore-seed", "--sg-destructive", "--sg-concurrency"),
    )
    said = flags.about_sending + [name for name in about_probes if _is_given(config.getoption(name))]
    if said:
        hint = "It takes --spec, --profile, --model, --path, --baseline and --output."
        raise UsageError(f"--from sends nothing, so it does not go with {', '.join(said)}", hint=hint)
    found = sources(paths)
    return gather(found, gather_targets(found, flags))


def _is_given(value: Any) -> bool:
    """Whether an option was given; 0 was, and equals False."""
    return value is not False and value not in ([], None)


def _settings(config: pytest.Config, flags: TargetFlags) -> Settings:
    from streamgauge.baseline import load_baseline
    from streamgauge.config import resolve_targets
    from streamgauge.conformance.session import Settings
    from streamgauge.detection import tries_for
    from streamgauge.runs import open_bundle, utc_now
    from streamgauge.wire.recorder import Limits

    option = config.getoption
    path: Path | None = option("--sg-baseline")
    rate: float | None = option("--sg-detect-rate")
    if rate is not None:
        tries_for(rate)
    captured = _captured(config, flags)
    targets = captured.targets if captured is not None else resolve_targets(flags)
    worker = _worker(config)
    settings = Settings(
        targets=targets,
        directory=Path(worker) if worker else Path(),
        select=tuple(option("--sg-select")),
        budget_tokens=option("--sg-budget-tokens"),
        detect_rate=rate,
        explore_tokens=option("--sg-explore-tokens"),
        explore_seed=option("--sg-explore-seed") or 0,
        destructive=option("--sg-destructive"),
        limits=Limits(concurrency=option("--sg-concurrency") or Limits().concurrency),
        baseline=load_baseline(path, utc_now().date()) if path else None,
    )
    if not worker and not config.option.collectonly:
        from streamgauge.conformance.plan import require_probes
        from streamgauge.conformance.session import record_into, require_known, take_into
        from streamgauge.preflight import preflight

        if settings.baseline is not None:
            require_known(settings.baseline)
        require_probes(targets, settings.select, destructive=settings.destructive)
        settings.targets, notes = (targets, captured.notes) if captured is not None else preflight(targets)
        writer, meta = open_bundle("check", settings.targets, output=option("--sg-output"), notes=notes)
        settings.directory = writer.path.absolute()
        if captured is not None:
            take_into(captured, writer, meta)
        else:
            record_into(settings, writer, meta)
        config.pluginmanager.register(FindingsKeeper(settings), "streamgauge-findings")
    return settings
