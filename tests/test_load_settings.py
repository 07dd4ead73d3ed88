"""The settings of a load run: how each is written, which contradict each other, what stands in place of what."""

from typing import Any

import pytest

from streamgauge.errors import ConfigError
from streamgauge.load.arrivals import ClosedLoop, OpenLoop, Segment
from streamgauge.load.lengths import Lengths
from streamgauge.load.mix import MixEntry
from streamgauge.load.rate import MOST_ARRIVALS, rate_of
from streamgauge.load.settings import Given, read_settings


def flags(**values: Any) -> dict[str, Given]:
    """Settings as the command line gives them."""
    return {name: Given(value, f"--{name}") for name, value in values.items()}


def file(**values: Any) -> dict[str, Given]:
    """Settings as a file gives them."""
    return {name: Given(value, f"load.yaml:{name}") for name, value in values.items()}


def read(**values: Any) -> dict[str, Any]:
    """What flags alone mean."""
    return read_settings(flags(**values), {})


def test_what_nobody_says() -> None:
    """Eight users for 20 s; everything else is the plan's own default."""
    assert read() == {"loop": ClosedLoop(8, 0), "duration_s": 20}
    assert read_settings({}, {}, users=1, duration_s=0) == {"loop": ClosedLoop(1, 0), "duration_s": 0}


READ: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"users": "3", "think": "500ms", "duration": "1m30s"}, {"loop": ClosedLoop(3, 0.5), "duration_s": 90}),
    ({"rate": "50"}, {"loop": OpenLoop((Segment(20, 50, 50),)), "duration_s": 20}),
    ({"rate": "10..100", "duration": "1m"}, {"loop": OpenLoop((Segment(60, 10, 100),)), "duration_s": 60}),
    (
        {"rate": "10@30s, 0.5..2.5@1m", "arrivals": "constant", "max_in_flight": "7"},
        {"loop": OpenLoop((Segment(30, 10, 10), Segment(60, 0.5, 2.5)), "constant", 1, 7), "duration_s": 90},
    ),
    ({"rate": "5@40s", "duration": "40s"}, {"loop": OpenLoop((Segment(40, 5, 5),)), "duration_s": 40}),
    ({"rate": "5", "arrivals": "gamma:0.5"}, {"loop": OpenLoop((Segment(20, 5, 5),), "gamma", 0.5)}),
    ({"requests": "9", "warm_up": "1.5s", "drain": "0s"}, {"requests": 9, "warm_up_s": 1.5, "drain_s": 0}),
    ({"prompt_tokens": "uniform:1..9"}, {"prompt_tokens": Lengths("uniform", (1, 9))}),
    ({"operation": "a", "no_stream": True}, {"entries": (MixEntry("a"),), "stream": False}),
    ({"mix": "a=2,b:whole"}, {"entries": (MixEntry("a", None, 2), MixEntry("b", stream=False))}),
    ({"judge": "all"}, {"judge": 1.0}),
    ({"judge": "ends"}, {"judge": 0.0}),
    ({"judge": "12.5%"}, {"judge": 0.125}),
    ({"load_budget_tokens": "500", "shared_prefix": "0", "seed": "0"}, {"budget_tokens": 500, "seed": 0}),
    ({"server_metrics": "off"}, {"metrics_url": None}),
    ({"server_metrics": "auto"}, {"metrics_url": "auto"}),
    ({"server_metrics": "http://h:1/metrics"}, {"metrics_url": "http://h:1/metrics"}),
]


@pytest.mark.parametrize(("values", "expected"), READ)
def test_what_settings_mean(values: dict[str, Any], expected: dict[str, Any]) -> None:
    """Each form of each setting, as an attribute of the plan."""
    found = read(**values)
    assert {name: found[name] for name in expected} == expected


def test_objectives_and_rules_may_be_several() -> None:
    """Each text is read; they keep their order."""
    found = read(slo=["ttft:p95<=500ms", "errors<=1%"], abort_on=["errors>50%", "consecutive>=20"])
    assert [str(each) for each in found["slos"]] == ["ttft:p95<=500ms", "errors<=1%"]
    assert [str(each) for each in found["abort_on"]] == ["errors>50%", "consecutive>=20"]


NO_PAGES = ("on", "ftp://h/", "http://u:p@h/m", "http://h/m?k=1", "http://h/ m", "http://h..x/m", "http://h:0/")

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"users": "0"}, "users"),
    ({"users": "many"}, "users"),
    ({"users": "100001"}, "users"),
    ({"users": "3", "rate": "5"}, "users"),
    ({"rate": "5", "think": "1s"}, "rate"),
    ({"users": "3", "arrivals": "poisson"}, "users"),
    ({"arrivals": "poisson"}, "arrivals"),
    ({"max_in_flight": "5"}, "max_in_flight"),
    ({"operation": "a", "mix": "b"}, "operation"),
    ({"prompts": "f", "prompt_tokens": "5"}, "prompts"),
    *(
        ({"rate": text}, "rate")
        for text in ("", "x", "0", "0..0", "-1", "1..2..3", "5@", "5@soon", "5@1.5s", "5@10s,6")
    ),
    ({"rate": "5@30s", "duration": "20s"}, "rate"),
    ({"rate": str(MOST_ARRIVALS)}, "rate"),
    *(({"rate": "5", "arrivals": text}, "arrivals") for text in ("even", "gamma", "gamma:0", "gamma:x", "poisson:2")),
    ({"duration": "0s"}, "duration"),
    ({"warm_up": "20s"}, "warm_up"),
    ({"drain": "1.5s"}, "drain"),
    ({"prompt_tokens": "0"}, "prompt_tokens"),
    *(({"judge": text}, "judge") for text in ("", "half", "101%", "0.5", "%")),
    ({"slo": ["ttft"]}, "slo"),
    ({"abort_on": ["never"]}, "abort_on"),
    *(({"server_metrics": text}, "server_metrics") for text in NO_PAGES),
    ({"seed": "-1"}, "seed"),
]


@pytest.mark.parametrize(("values", "named"), WRONG)
def test_wrong_settings_are_named(values: dict[str, Any], named: str) -> None:
    """The setting that is wrong is the place of the message, by flag and by file; and it says what would be right."""
    for given, where in ((flags(**values), f"--{named}"), (file(**values), f"load.yaml:{named}")):
        with pytest.raises(ConfigError) as caught:
            read_settings(*((given, {}) if where.startswith("--") else ({}, given)))
        assert caught.value.where == where
        assert caught.value.what


REPLACED: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"users": "3"}, {"users": "5", "duration": "1m"}, {"loop": ClosedLoop(3), "duration_s": 60}),
    ({"users": "3"}, {"rate": "5@1m", "arrivals": "constant", "max_in_flight": "9"}, {"loop": ClosedLoop(3)}),
    ({"rate": "5"}, {"users": "3", "think": "1s", "duration": "9s"}, {"loop": OpenLoop((Segment(9, 5, 5),))}),
    ({"rate": "5@1m"}, {"rate": "9", "duration": "9s"}, {"loop": OpenLoop((Segment(60, 5, 5),))}),
    ({"think": "1s"}, {"rate": "5"}, {"loop": ClosedLoop(8, 1)}),
    ({"operation": "a"}, {"mix": "b,c"}, {"entries": (MixEntry("a"),)}),
    ({"mix": "b"}, {"operation": "a"}, {"entries": (MixEntry("b"),)}),
    ({"prompt_tokens": "5"}, {"prompts": "f"}, {"prompt_tokens": Lengths.constant(5)}),
]


@pytest.mark.parametrize(("said", "written", "expected"), REPLACED)
def test_a_flag_stands_in_place_of_what_the_file_says(
    said: dict[str, Any], written: dict[str, Any], expected: dict[str, Any]
) -> None:
    """Of the same setting, and of those that would contradict the flag."""
    found = read_settings(flags(**said), file(**written))
    assert {name: found[name] for name in expected} == expected
    assert "dataset" not in found


@pytest.mark.parametrize("text", ["50@20s", "10..100@1s", "0..0.125@3600s,7@1s"])
def test_rates_read_back(text: str) -> None:
    """The segments of a loop, written and read again."""
    loop = read(rate=text)["loop"]
    assert rate_of(loop.segments) == text
