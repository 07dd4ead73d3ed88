"""The report in a real browser, under the policy of a strict CI artifact viewer: charts keep their colours."""

import functools
import http.server
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from report_bundles import full_bundle
from report_load import open_bundle

from streamgauge.reports.kinds import BLUE, GREEN, ORANGE
from streamgauge.reports.write import write_all

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no chromium, chromium-browser or google-chrome on PATH"),
]

POLICY = "sandbox; default-src 'none'; img-src 'self'; style-src 'self'"
DARK, LIGHT = 0, 1


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files; those below /strict/ with the viewer's policy."""

    def translate_path(self, path: str) -> str:
        """The file behind a path, with or without the policy."""
        return super().translate_path(path.removeprefix("/strict").removeprefix("/free"))

    def end_headers(self) -> None:
        """Add the policy."""
        if self.path.startswith("/strict/"):
            self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The reports on a closed and on an open loop, served on the loopback."""
    root = tmp_path_factory.mktemp("site")
    for bundle in (full_bundle(root / "closed"), open_bundle(root / "open")):
        write_all(bundle)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(root))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def screenshot(url: str, directory: Path, scheme: int) -> Image.Image:
    """What the browser shows of a page."""
    path = directory / "page.png"
    subprocess.run(
        [
            str(BROWSER),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--force-device-scale-factor=1",
            f"--blink-settings=preferredColorScheme={scheme}",
            f"--user-data-dir={directory / 'profile'}",
            f"--screenshot={path}",
            "--window-size=1000,12000",
            url,
        ],
        check=True,
        capture_output=True,
        timeout=90,
    )
    with Image.open(path) as picture:
        return picture.convert("RGB")


def colours(picture: Image.Image) -> Counter[tuple[int, int, int]]:
    """How many pixels have which colour."""
    return Counter({colour: count for count, colour in picture.getcolors(2**24)})


def rgb(colour: str) -> tuple[int, int, int]:
    """The channels of `#rrggbb`."""
    red, green, blue = bytes.fromhex(colour[1:])
    return red, green, blue


def longest_run(picture: Image.Image, colour: tuple[int, int, int], rows: int) -> int:
    """The width of the widest rectangle of one colour that is at least `rows` high."""
    wanted = bytes(colour)
    best, heights = 0, [0] * picture.width
    pixels, stride = picture.tobytes(), picture.width * len(wanted)
    for row in (pixels[start : start + stride] for start in range(0, len(pixels), stride)):
        if wanted not in row:
            heights = [0] * picture.width
            continue
        run = 0
        for x in range(picture.width):
            start = x * len(wanted)
            heights[x] = heights[x] + 1 if row[start : start + 3] == wanted else 0
            run = run + 1 if heights[x] >= rows else 0
            best = max(best, run)
    return best


VIEWS = [("strict", LIGHT, (255, 255, 255)), ("free", LIGHT, (255, 255, 255)), ("free", DARK, (20, 23, 27))]


@pytest.mark.parametrize("run", ["closed", "open"])
@pytest.mark.parametrize(("policy", "scheme", "page"), VIEWS, ids=["strict", "light", "dark"])
def test_charts_keep_their_colours(
    site: str, tmp_path: Path, run: str, policy: str, scheme: int, page: tuple[int, int, int]
) -> None:
    """Bars, lines, areas and marks are there in their own colours on the page's colour, and nothing turned black."""
    picture = screenshot(f"{site}/{policy}/{run}/report.html", tmp_path, scheme)
    found = colours(picture)
    assert found.most_common(1)[0][0] == page
    assert found[rgb(GREEN)] > 20_000
    assert found[rgb(BLUE)] > 5_000
    assert found[rgb(ORANGE)] > 500
    assert longest_run(picture, (0, 0, 0), rows=12) < 12
