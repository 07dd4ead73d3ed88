"""`stop.*`: answers that go on where the request says to stop, or stop elsewhere."""

from streamgauge.reference.faults.bends import ignoring

__all__: list[str] = []

ignoring(
    "stop.ignored", "Stop strings are ignored", "stop.honoured", "stop", seen=("jundot/omlx#1054", "dphnAI/sonar#742")
)
