"""The directory of a run: what is written is read back, and no secret gets in."""

import asyncio
import dataclasses
import functools
import itertools
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from scripted import Answer, scripted

from streamgauge import catalog
from streamgauge.bundle.layout import exchange_line
from streamgauge.bundle.reader import Bundle, read_lines
from streamgauge.bundle.writer import BundleWriter, ExchangeWriter, LineWriter, write_whole
from streamgauge.contract.contract import Contract, load_contracts
from streamgauge.errors import BundleError
from streamgauge.gate import decide
from streamgauge.runs import describe_run, open_bundle
from streamgauge.target import Target
from streamgauge.wire.exchange import Credential, Ending, Evidence, Exchange, SentRequest
from streamgauge.wire.http import Read
from streamgauge.wire.recorder import Outgoing, Recorder

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NUMBERS = itertools.count()


@functools.cache
def contract() -> Contract:
    """The compiled contract of chat completions."""
    return load_contracts(["seekr-chat"])[0]


def schema(name: str) -> Draft202012Validator:
    """The validator of one kind of line."""
    return Draft202012Validator({**catalog.schema("bundle"), "$ref": f"#/$defs/{name}"})


def fresh(factory: pytest.TempPathFactory) -> Path:
    """A directory that is not there yet (Hypothesis calls a test many times with one tmp_path)."""
    return factory.getbasetemp() / f"bundle-{next(NUMBERS)}"


def some_exchange(wire: bytes = b"HTTP/1.1 204 X\r\n\r\n", **more: Any) -> Exchange:
    """An exchange."""
    request = SentRequest("POST", "http://h/", (("a", "b"),), b"{}", Credential.VALID)
    reads = (Read(0.5, len(wire)),) if wire else ()
    made = Exchange("main-t-00001", "t", "o", "p", request, "2026-01-01T00:00:00.000Z", wire, reads, Ending.COMPLETE)
    return dataclasses.replace(made, **more)


@st.composite
def exchanges(draw: st.DrawFn) -> Exchange:
    """Any exchange whatever, its times in whole microseconds as a bundle keeps them."""
    parts = draw(st.lists(st.binary(min_size=1, max_size=40), max_size=5))
    times = sorted(draw(st.lists(st.integers(0, 10**9), min_size=len(parts), max_size=len(parts))))
    return Exchange(
        id=draw(TEXT),
        target=draw(TEXT),
        operation=draw(TEXT),
        probe=draw(TEXT),
        request=SentRequest(
            method=draw(TEXT),
            url=draw(TEXT),
            headers=tuple(draw(st.lists(st.tuples(TEXT, TEXT), max_size=3))),
            body=draw(st.binary() | TEXT.map(str.encode)),
            credential=draw(st.sampled_from(list(Credential))),
        ),
        started=draw(st.sampled_from(["2026-01-01T00:00:00.000Z", ""])),
        wire=b"".join(parts),
        reads=tuple(Read(time / 10**6, len(part)) for time, part in zip(times, parts, strict=True)),
        ending=draw(st.sampled_from(list(Ending))),
        detail=draw(TEXT),
        redacted=tuple(draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=2))),
        holds=draw(st.just(frozenset(Evidence)) | st.frozensets(st.sampled_from(list(Evidence)))),
    )


def opened(directory: Path) -> BundleWriter:
    """A bundle with its meta.json."""
    writer = BundleWriter(directory)
    writer.meta({})
    return writer


# -- both directions ---------------------------------------------------------------------------------------------------


@given(st.lists(exchanges(), unique_by=lambda each: each.id, max_size=4))
@settings(max_examples=60)
def test_exchanges_are_read_back(tmp_path_factory: pytest.TempPathFactory, given_exchanges: list[Exchange]) -> None:
    """Written by two processes, exchanges are read back equal, and every line keeps the schema."""
    writer = opened(fresh(tmp_path_factory))
    files = [writer.exchanges(process) for process in ("a", "b")]
    for number, exchange in enumerate(given_exchanges):
        files[number % 2].write(exchange)
    for file in files:
        file.close()
    assert Bundle(writer.path).exchanges == {each.id: each for each in given_exchanges}
    for process in ("a", "b"):
        for line in read_lines(writer.path / f"exchanges-{process}.jsonl"):
            assert list(schema("exchange").iter_errors(line)) == []


def test_every_exchange_is_on_disk_at_once(tmp_path: Path) -> None:
    """A reader sees an exchange as soon as it is written, while the file is still open."""
    writer = opened(tmp_path / "b")
    file = writer.exchanges("a")
    for number in range(3):
        file.write(some_exchange(id=str(number)))
        assert list(Bundle(writer.path).exchanges) == [str(each) for each in range(number + 1)]
    file.close()


def test_a_writer_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """A process that opens its files again appends to them."""
    writer = opened(tmp_path / "b")
    for number in range(2):
        file = writer.exchanges("a")
        file.write(some_exchange(b"HTTP/1.1 20%d X\r\n\r\n" % number, id=str(number)))
        file.close()
    assert [each.status for each in Bundle(writer.path).exchanges.values()] == [200, 201]


def test_whole_run(tmp_path: Path) -> None:
    """Everything else of a run is read back and keeps the schema; what was not written is empty."""
    target = Target("t", "http://127.0.0.1:1", contract(), model="m", key="sk-5ecret-0123456789")
    writer, meta = open_bundle("check", [target], output=tmp_path / "b", seed=7, notes=["a note"])
    bundle = Bundle(writer.path)
    assert (bundle.checks, bundle.findings, bundle.gate, bundle.load, bundle.exchanges) == ([], [], {}, {}, {})
    check = {"id": "a.b", "title": "A", "level": "MUST", "requirement": "R.", "source": "S"}
    found = {"check": "a.b", "level": "MUST", "target": "t", "operation": "seekr-chat", "outcome": "fail"}
    example = {"exchange": "1", "outcome": "fail", "expected": "x", "actual": "y", "part": "body", "span": [0, 1]}
    found |= {"counts": {"fail": 1}, "reason": "", "examples": [example]}
    writer.checks([check])
    with writer.findings() as file:
        file.write(found)
    gate = decide([found]).line()
    writer.gate(gate)
    bundle = Bundle(writer.path)
    assert (bundle.checks, bundle.findings, bundle.gate) == ([check], [found], gate)
    assert bundle.meta == {"version": 1, **meta}
    lines = (("meta", bundle.meta), ("check", check), ("finding", found), ("gate", gate))
    for name, line in (*lines, ("target", bundle.meta["targets"][0])):
        assert list(schema(name).iter_errors(line)) == []
    assert "5ecret" not in json.dumps(bundle.meta)


def test_meta_of_a_run_describes_its_targets() -> None:
    """Addresses, documents and the key's form are described, the key is not."""
    target = Target("t", "http://127.0.0.1:1", contract(), key="sk-5ecret-0123456789")
    (described,) = describe_run("check", [target], seed=0)["targets"]
    assert (described["key"], described["auth"]) == (True, {"header": "Authorization", "scheme": "raw"})
    assert described["operations"][0]["url"] == "http://127.0.0.1:1/v1/inference/chat/completions"


def test_lone_surrogates_are_written(tmp_path: Path) -> None:
    """Text that has no UTF-8, as a server may send it in an escape, is written as an escape and read back."""
    text = "a\ud800b\udfff"
    with LineWriter(tmp_path / "x.jsonl") as writer:
        writer.write({"actual": text, text: 1})
    assert list(read_lines(tmp_path / "x.jsonl")) == [{"actual": text, text: 1}]
    write_whole(tmp_path / "x.json", {"a": text})
    assert json.loads((tmp_path / "x.json").read_bytes()) == {"a": text}


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_lines_are_lines(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    """Whatever a line holds, it stays one line."""
    path = fresh(tmp_path_factory)
    with LineWriter(path) as writer:
        writer.write({"a": value})
        writer.write({"b": value})
    assert path.read_bytes().count(b"\n") == 2
    assert list(read_lines(path)) == [{"a": value}, {"b": value}]


# -- damage ------------------------------------------------------------------------------------------------------------


def test_cut_last_line_is_left_out(tmp_path: Path) -> None:
    """Wherever a crash cuts the last line, the lines before it are read."""
    writer = opened(tmp_path / "b")
    file = writer.exchanges("a")
    file.write(some_exchange(id="1"))
    file.write(some_exchange(id="2"))
    file.close()
    path = writer.path / "exchanges-a.jsonl"
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    for cut in (first, first + 1, (first + len(whole)) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert list(Bundle(writer.path).exchanges) == ["1"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: b"nonsense",
        lambda line: b"[]",
        lambda line: b"{}",
        lambda line: line.replace(b'"ending":"complete"', b'"ending":"sudden"'),
        lambda line: line.replace(b"blobs-a.bin", b"blobs-z.bin"),
        lambda line: line.replace(b'"offset":0', b'"offset":"x"'),
    ],
    ids=["no-json", "no-object", "no-members", "unknown-ending", "no-blob", "no-offset"],
)
def test_damaged_lines(tmp_path: Path, damage: Any) -> None:
    """A damaged line in the middle is refused with the file's name."""
    writer = opened(tmp_path / "b")
    file = writer.exchanges("a")
    file.write(some_exchange())
    file.close()
    path = writer.path / "exchanges-a.jsonl"
    path.write_bytes(damage(path.read_bytes().rstrip(b"\n")) + b"\n" + path.read_bytes())
    with pytest.raises(BundleError) as caught:
        _ = Bundle(writer.path).exchanges
    assert str(path) in caught.value.where


def test_lines_reach_for_no_other_file(tmp_path: Path) -> None:
    """A line cannot make the reader open a file outside of the bundle."""
    (tmp_path / "outside").write_bytes(b"private")
    writer = opened(tmp_path / "b")
    with LineWriter(writer.path / "exchanges-a.jsonl") as lines:
        lines.write(exchange_line(some_exchange(b"1234567"), "../outside", 0))
    with pytest.raises(BundleError):
        _ = Bundle(writer.path).exchanges


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"1", b"{}", b'{"version": 2}', b"\xff"])
def test_no_bundle(tmp_path: Path, content: bytes | None) -> None:
    """A directory without a meta.json that this version reads is refused."""
    if content is not None:
        (tmp_path / "meta.json").write_bytes(content)
    with pytest.raises(BundleError) as caught:
        Bundle(tmp_path)
    assert str(tmp_path) in caught.value.where


def test_no_directory(tmp_path: Path) -> None:
    """A file, and a directory that is not there, are no bundles."""
    (tmp_path / "file").touch()
    for name in ("file", "missing"):
        with pytest.raises(BundleError):
            Bundle(tmp_path / name)


def test_occupied_directories(tmp_path: Path) -> None:
    """A bundle is never written among other files, nor into a file."""
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BundleError) as caught:
            BundleWriter(place)
        assert caught.value.where == str(place)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_default_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name, runs get directories of their own under runs/, named after time and command."""
    monkeypatch.chdir(tmp_path)
    for _ in range(3):
        open_bundle("check", [], output=None, seed=0)
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert len(names) == 3
    assert all("-check" in name for name in names)


# -- secrets -----------------------------------------------------------------------------------------------------------

# What a header field can hold, but for `*`: that is the filler itself, so a key of it alone is never seen to go.
HOLDABLE = st.characters(min_codepoint=0x20, exclude_characters="*\x7f", exclude_categories=["Cs", "Cc"])
# The ending keeps Hypothesis from drawing a word of the bundle's own, such as `operation`, and finding it there.
SECRETS = (
    st.text(HOLDABLE, min_size=5, max_size=27)
    .map(lambda text: f"{text.lstrip()}~q7")
    .filter(lambda text: len(text) >= 8)
)


def forms_of(secret: str) -> list[bytes]:
    """The ways in which a secret is commonly written."""
    escaped = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    percent = {quote(secret), quote(secret, safe="")}
    lower = {re.sub("%[0-9A-F]{2}", lambda match: match.group().lower(), form) for form in percent}
    return [form.encode() for form in {secret, *escaped, *percent, *lower}]


def chunked(body: bytes) -> bytes:
    """The body in chunks of seven bytes."""
    parts = [body[start : start + 7] for start in range(0, len(body), 7)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@given(SECRETS, st.sampled_from(["key", "header"]))
@example('a"b\\c/d e', "key")
@example("žluťoučký/kůň", "header")
@example("<&>+% ~'", "key")
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_no_secret_gets_into_a_bundle(tmp_path_factory: pytest.TempPathFactory, secret: str, kind: str) -> None:
    """Sent and echoed in head, URL and body, in whatever usual form, a secret is in no file of the bundle."""
    directory = fresh(tmp_path_factory)
    forms = forms_of(secret)
    echo = json.dumps({"error": secret}).encode() + b"|".join(forms)
    head = b"HTTP/1.1 401 No\r\nX-Echo: " + secret.encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    reply: Answer = [head + chunked(echo), "close"]
    with scripted(reply) as server:
        more: dict[str, Any] = {"key": secret} if kind == "key" else {"headers": {"X-Api-Key": f"Token {secret}"}}
        target = Target("t", server.url, contract(), model="m", **more)
        if kind == "header" and " " in secret:
            target = dataclasses.replace(target, headers={"X-Api-Key": secret})
        target = dataclasses.replace(target, headers={**target.headers, "X-Other": secret})
        writer, _ = open_bundle("check", [target], output=directory, seed=0)
        url = f"{server.url}/x?a={quote(secret)}&b={quote(secret, safe='')}"
        outgoing = Outgoing(url, echo, target.credential)

        async def run() -> Exchange:
            async with Recorder(target, on_exchange=file.write) as recorder:
                return await recorder.send(outgoing)

        file: ExchangeWriter = writer.exchanges("a")
        exchange = asyncio.run(run())
        file.close()
        sent = server.requests[0]
    assert secret.encode() in sent  # or the test would prove nothing
    assert (exchange.ending, exchange.status, len(exchange.response.body)) == (Ending.COMPLETE, 401, len(echo))
    for path in directory.iterdir():
        content = path.read_bytes()
        for form in forms:
            assert form not in content, path.name
    stored = Bundle(directory).exchanges[exchange.id]
    assert (stored.wire, stored.request) == (exchange.wire, exchange.request)
