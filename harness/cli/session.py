from streamgauge.bundle.writer import BundleWriter
from streamgauge.runs import open_bundle as _ob


def open_bundle(command, targets, *, output, seed) -> BundleWriter:
    return _ob(command, targets, output=output, seed=seed)[0]
