"""The reference endpoint in every dialect, judged under every other: exactly the switches that differ depart."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from commandline import streamgauge
from dialects import (
    JUDGED_BY,
    departed,
    exchanges_of,
    expected,
    findings_of,
    operations_of,
    turned,
    value_of,
)

from streamgauge import catalog
from streamgauge.bundle.reader import Bundle
from streamgauge.contract.contract import Contract
from streamgauge.contract.features import FEATURES
from streamgauge.contract.profile import Profile, load_profile
from streamgauge.outcomes import Outcome
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.launch import running

NAMES = catalog.profile_names()


def _compare(spoken: Profile, judged: Profile, name: str) -> set[str]:
    """Assert for each operation of a built-in profile's documents that exactly what has to departs; all that did."""
    contract = Contract(spoken, operations_of(name))
    exchanges = exchanges_of(contract, judged)
    everything: set[str] = set()
    for operation in contract.operations:
        found = departed(exchanges, operation, judged)
        assert found == expected(spoken, judged, operation), operation.name
        everything |= found
    return everything


@pytest.mark.parametrize("name", NAMES)
def test_own_dialect_passes(name: str) -> None:
    """Each built-in profile's dialect passes under that profile, nothing excepted but refused optional features."""
    profile = load_profile(name)

    assert _compare(profile, profile, name) == set()


@pytest.mark.parametrize(("spoken", "judged"), [*itertools.permutations(NAMES, 2)])
def test_other_profile_finds_what_differs(spoken: str, judged: str) -> None:
    """Under another built-in profile depart the checks of the switches whose spoken value it does not take, no others."""
    found = _compare(load_profile(spoken), load_profile(judged), spoken)

    assert ("auth.accepted" in found) == ("seekr" in (spoken, judged))


@pytest.mark.parametrize(
    ("spoken", "judged", "switch"),
    [
        (spoken, judged, switch)
        for spoken, judged in itertools.permutations(NAMES, 2)
        for switch in JUDGED_BY
        if value_of(load_profile(spoken), switch) != value_of(load_profile(judged), switch)
    ],
)
def test_single_differing_switch(spoken: str, judged: str, switch: str) -> None:
    """A profile that has one value from another finds the checks of that one switch, where the value is not taken."""
    profile = load_profile(spoken)
    mixed = turned(profile, switch, value_of(load_profile(judged), switch))

    assert _compare(profile, mixed, spoken) <= set(JUDGED_BY[switch])


VALUES: dict[str, tuple[Any, ...]] = {
    "auth.header": ("Authorization", "X-Token"),
    "auth.scheme": ("raw", "Bearer"),
    "auth.required": (True, False),
    "dialect.malformed_status": ((400,), (422,), (422, 400)),
    "dialect.unknown_model_status": ((404,), (403,), (422, 404)),
    "dialect.error_envelope": ("openai", "openai-or-string", "detail", "any"),
    "dialect.error_code": ("integer", "string", "any"),
    "dialect.reasoning_field": ("reasoning", "reasoning_content", "any"),
    "dialect.usage_chunk": ("own-chunk", "last-choice", "any"),
}
"""Switch → values to speak and to judge by: all, where they are enumerated."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("switch", VALUES)
def test_every_value_spoken_and_judged(switch: str, name: str) -> None:
    """Spoken and judged alike passes; differently it departs in the switch's checks and in no others."""
    profile = load_profile(name)
    for spoken, judged in itertools.product(VALUES[switch], repeat=2):
        found = _compare(turned(profile, switch, spoken), turned(profile, switch, judged), name)
        assert found <= (set(JUDGED_BY[switch]) if spoken != judged else set()), (spoken, judged)


@pytest.mark.parametrize(
    ("switch", "name", "spoken", "judged"),
    [
        ("auth.header", "openai", "X-Token", "Authorization"),
        ("auth.scheme", "seekr", "Bearer", "raw"),
        ("auth.required", "deepinfra", False, True),
        ("dialect.malformed_status", "seekr", (422,), (400,)),
        ("dialect.malformed_status", "seekr", (400,), (422,)),
        ("dialect.unknown_model_status", "openai", (404,), (403,)),
        ("dialect.unknown_model_status", "openai", (403,), (422, 404)),
        ("dialect.error_envelope", "openai", "openai-or-string", "openai"),
        ("dialect.error_envelope", "openai", "detail", "openai-or-string"),
        ("dialect.error_envelope", "deepinfra", "openai", "detail"),
        ("dialect.error_code", "seekr", "integer", "string"),
        ("dialect.error_code", "openai", "string", "integer"),
        ("dialect.reasoning_field", "seekr", "reasoning_content", "reasoning"),
        ("dialect.reasoning_field", "openai", "reasoning", "reasoning_content"),
        ("dialect.usage_chunk", "seekr", "last-choice", "own-chunk"),
        ("dialect.usage_chunk", "openai", "own-chunk", "last-choice"),
        ("allowed_statuses", "deepinfra", (404,), ()),
        ("features", "seekr", {"n": "unsupported"}, {"n": "supported"}),
    ],
)
def test_every_switch_departs_in_all_its_checks(switch: str, name: str, spoken: Any, judged: Any) -> None:
    """The matrix is no matter of empty sets: each switch is seen departing, in all of its checks."""
    profile = load_profile(name)

    found = _compare(turned(profile, switch, spoken), turned(profile, switch, judged), name)

    assert found == set(JUDGED_BY[switch])


# What the pseudo-model can do and a document here knows: the profile decides whether it is done.
OFFERED = {
    **dict.fromkeys(("n", "stop", "seed", "logprobs"), "openai"),
    **dict.fromkeys(("echo", "suffix", "prompt_list", "prompt_token_ids", "ignore_eos", "min_tokens"), "seekr"),
    **dict.fromkeys(("tools", "reasoning"), "openai"),
}


@pytest.mark.parametrize("feature", OFFERED)
def test_features(feature: str) -> None:
    """A refused feature departs where it is supported, passes visibly where it is unsupported, and is refused else."""
    name = OFFERED[feature]
    profile = load_profile(name)
    supported, unsupported, unknown = (
        turned(profile, "features", said) for said in ({feature: "supported"}, {feature: "unsupported"}, {})
    )

    for judged in (supported, unsupported, unknown):
        assert _compare(supported, judged, name) == set()
    assert _compare(unsupported, unsupported, name) == set()
    assert _compare(unsupported, unknown, name) == set()
    # An operation whose document does not know the feature has nothing to refuse.
    contract = Contract(unsupported, operations_of(name))
    exchanges = exchanges_of(contract, supported)
    found = set().union(*(departed(exchanges, operation, supported) for operation in contract.operations))
    assert found == {"request.feature-supported"}


def test_features_that_the_endpoint_lacks_are_no_part_of_its_dialects() -> None:
    """Whatever a built-in profile calls supported, the reference endpoint has."""
    for name in NAMES:
        said = load_profile(name).features
        assert {feature for feature, word in said.items() if word == "supported"} <= {
            *OFFERED,
            "stream",
            "stream_usage",
        }
        assert said.keys() <= FEATURES.keys()


def test_what_the_profile_lets_pass_is_seen() -> None:
    """A status beyond the document, a second accepted one, a refused unsupported feature: passes with an example."""
    profile = turned(load_profile("openai"), "dialect.malformed_status", (422, 400))
    profile = turned(profile, "features", {"n": "unsupported"})
    spoken = turned(profile, "dialect.malformed_status", (400,))
    contract = Contract(spoken, operations_of("openai"))
    exchanges = exchanges_of(contract, profile)

    findings = {each.check: each for each in findings_of(exchanges, contract.operations[0], profile)}

    for check, told in (
        ("error.status-documented", "405, allowed by the profile openai, not listed by the document"),
        ("request.malformed-status", "400, accepted by the profile openai as well"),
        ("request.valid", "422, expected by the profile openai: it has n as unsupported"),
    ):
        shown = [example["actual"] for example in findings[check].examples if example["outcome"] == "pass"]
        assert told in shown
    assert findings["request.malformed-status"].outcome is Outcome.PASS
    assert findings["request.malformed-status"].counts == {Outcome.PASS: 4}


def test_profile_of_ones_own_is_spoken_and_judged(tmp_path: Path) -> None:
    """The documentation's example by path: `serve` speaks it at its path and with its header, and `check` finds nothing."""
    docs = Path(__file__).parents[1] / "docs" / "profiles.md"
    file = tmp_path / "mine.yaml"
    file.write_text(docs.read_text(encoding="utf-8").partition("```yaml\n")[2].partition("```")[0])
    with running(profiles=[str(file)]) as url:
        done = streamgauge(
            *("check", "--base-url", url, "--spec", "openai-chat", "--profile", str(file)),
            *(
                "--model",
                DEFAULT_MODEL,
                "--select",
                "form",
                "--select",
                "refusal",
                "--select",
                "auth",
                "--output",
                "out",
            ),
            cwd=tmp_path,
            STREAMGAUGE_API_KEY=DEFAULT_KEY,
        )
    bundle = Bundle(tmp_path / "out")

    assert done.returncode == 0, done.stdout + done.stderr
    assert {finding["outcome"] for finding in bundle.findings} <= {"pass", "refused", "not-applicable", "not-run"}
    assert bundle.meta["targets"][0]["operations"][0]["path"] == "/llm/v1/chat/completions"
    outcomes = {finding["check"]: finding["outcome"] for finding in bundle.findings}
    for check in ("auth.accepted", "error.code-type", "error.envelope-undocumented", "response.reasoning-field"):
        assert outcomes[check] == "pass", check
    assert outcomes["request.feature-supported"] == "pass"


@pytest.mark.parametrize("name", NAMES)
def test_own_dialect_passes_over_sockets(name: str, tmp_path: Path) -> None:
    """`streamgauge serve --profile X` and `streamgauge check`: exit 0, and nothing departs but refused optional features."""
    specs = [word for document in load_profile(name).documents for word in ("--spec", document)]
    with running(profiles=[name]) as url:
        done = streamgauge(
            *("check", "--base-url", url, *specs, "--model", DEFAULT_MODEL, "--output", "out"),
            cwd=tmp_path,
            STREAMGAUGE_API_KEY=DEFAULT_KEY,
        )
    bundle = Bundle(tmp_path / "out")

    assert done.returncode == 0, done.stdout + done.stderr
    assert {finding["outcome"] for finding in bundle.findings} <= {"pass", "refused", "not-applicable", "not-run"}
    laws = {declared["id"] for declared in bundle.checks if "properties" in declared}
    refused = {finding["check"] for finding in bundle.findings if finding["outcome"] == "refused"}
    assert refused <= {"request.valid", *laws}
    assert [said["profile"] for said in bundle.meta["targets"][0]["widened"]]
    report = (tmp_path / "out" / "report.html").read_text()
    assert f"405, allowed by the profile {name}, not listed by the document" in report
    assert json.dumps(bundle.meta).count(DEFAULT_KEY) == 0
