"""The mix: how it is written, and which parts it means for a target."""

import pytest

from streamgauge.contract.contract import load_contracts
from streamgauge.errors import UsageError
from streamgauge.load.mix import MixEntry, mix_for, parse_mix
from streamgauge.target import Target

SEEKR = Target("seekr", "http://127.0.0.1:9", load_contracts(["seekr-chat", "seekr-completions"])[0], "m")
DEEPINFRA = Target("deepinfra", "http://127.0.0.1:9", load_contracts(["deepinfra-completions"])[0], "m")


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a", [MixEntry("a")]),
        ("a=3,a:whole=1", [MixEntry("a", None, 3), MixEntry("a", stream=False)]),
        (" a:stream = 0.5 , b", [MixEntry("a", stream=True, weight=0.5), MixEntry("b")]),
    ],
)
def test_how_a_mix_is_written(text: str, entries: list[MixEntry]) -> None:
    """Operations, a form if wanted, a weight if wanted; what is written of it reads back."""
    found = parse_mix(text)
    assert list(found) == entries
    assert parse_mix(",".join(map(str, found))) == found


@pytest.mark.parametrize("text", ["", "a,", "a:half", "a=0", "a=-1", "a=x", "a=", ":stream=1"])
def test_what_is_no_mix(text: str) -> None:
    """A part without a name, a form that there is not, a weight that is none or nothing."""
    with pytest.raises(UsageError):
        parse_mix(text)


def test_the_parts_that_a_mix_means() -> None:
    """The first operation by default; a form where the entry says one, else what is wanted in general."""
    target, parts = mix_for([SEEKR, DEEPINFRA], (), stream=True)
    assert (target, [part.operation.name for part in parts]) == (SEEKR, ["seekr-chat"])
    _, parts = mix_for([SEEKR], parse_mix("seekr-chat=3,seekr-completions:stream"), stream=False)
    assert [(part.operation.name, part.stream, part.weight) for part in parts] == [
        ("seekr-chat", False, 3),
        ("seekr-completions", True, 1),
    ]
    assert mix_for([SEEKR, DEEPINFRA], parse_mix("deepinfra-completions"), stream=True)[0] is DEEPINFRA


@pytest.mark.parametrize("text", ["nothing", "seekr-chat,nothing", "seekr-chat,deepinfra-completions"])
def test_what_does_not_fit_the_targets(text: str) -> None:
    """An operation that no target has, and two of different targets, are refused by name."""
    with pytest.raises(UsageError, match=text.rpartition(",")[2]):
        mix_for([SEEKR, DEEPINFRA], parse_mix(text), stream=True)
