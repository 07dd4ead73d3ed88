"""Where a document comes from, and where its references may lead."""

import io
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from streamgauge.contract.contract import JSON, Operation, load_contracts
from streamgauge.contract.references import pointed_at, ref_to, refusal, tokens_of
from streamgauge.contract.source import Reach
from streamgauge.errors import DocumentError
from streamgauge.wire.fetch import fetch

ANSWERS = {"200": {"description": ""}}


def document(schema: Any, version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    """A document with one operation whose request has this schema."""
    body = {"content": {JSON: {"schema": schema}}}
    return {
        "openapi": version,
        "paths": {"/v1/completions": {"post": {"requestBody": body, "responses": ANSWERS}}},
        **more,
    }


def operation_of(spec: str | Path, **reach: Any) -> Operation:
    """The only operation of a document."""
    return load_contracts([str(spec)], None, Reach(**reach))[0].operations[0]


def refused(spec: str | Path, **reach: Any) -> DocumentError:
    """What loading it raises."""
    with pytest.raises(DocumentError) as caught:
        operation_of(spec, **reach)
    return caught.value


def written(path: Path, content: Any) -> Path:
    """A file with this content as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


class Site:
    """A web server with fixed answers, which remembers what it was asked."""

    def __init__(self) -> None:
        self.pages: dict[str, tuple[int, dict[str, str], bytes]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                status, headers, body = site.pages.get(self.path, (404, {}, b""))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def serve(self, path: str, content: Any, status: int = 200, **headers: str) -> str:
        """Answer that path with this content from now on; gives its URL."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.pages[path] = (status, headers, body)
        return self.url + path


@pytest.fixture
def site() -> Iterator[Site]:
    """A web server on loopback."""
    found = Site()
    thread = threading.Thread(target=found.server.serve_forever)
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


# -- standard input ----------------------------------------------------------------------------------------------------


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads the document from standard input, once, though it is named twice."""
    text = json.dumps(document({"required": ["a"]})).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    (contract,) = load_contracts(["-", "-"])
    assert [operation.name for operation in contract.operations] == ["stdin"]


@pytest.mark.parametrize(("text", "what"), [(b"", "is empty"), (b"[1", "not YAML"), (b"{}", "not an OpenAPI document")])
def test_standard_input_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch, text: bytes, what: str) -> None:
    """Messages call it by its name."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    problem = refused("-")
    assert what in problem.what
    assert problem.where.startswith("standard input")


def test_no_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without one says so."""
    monkeypatch.setattr(sys, "stdin", None)
    assert refused("-").hint


# -- URLs --------------------------------------------------------------------------------------------------------------


def test_a_named_url_is_fetched_without_any_credential(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The user named that host; no key, no cookie and no proxy of the environment has to do with it."""
    monkeypatch.setenv("STREAMGAUGE_API_KEY", "sk-0123456789")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    operation = operation_of(site.serve("/api/My%20API.json?token=abc", document({"required": ["a"]})))
    assert (operation.name, operation.request.accepts({})) == ("my-api", False)
    ((_, headers),) = site.asked
    assert set(headers) == {"host", "accept", "accept-encoding", "connection", "user-agent"}


def test_redirects_stay_on_the_host(site: Site) -> None:
    """A redirect on the same host is followed, one to another host is not, and the message names it."""
    there = site.serve("/there.json", document({}))
    assert operation_of(site.serve("/here", b"", 307, Location="/there.json")).name == "here"
    assert operation_of(site.serve("/again", b"", 302, Location=there)).name == "again"
    problem = refused(site.serve("/away", b"", 302, Location="http://example.com/openapi.json?key=1"))
    assert problem.what == "redirects to http://example.com/openapi.json"
    assert "more than" in refused(site.serve("/loop", b"", 302, Location="/loop")).what


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("http://127.0.0.1:1/x?secret", "cannot be fetched"),
        ("http://user:hunter2@127.0.0.1/x", "not a URL that can be fetched"),
        ("http:///x", "not a URL that can be fetched"),
        ("http://[::1/x", "not a URL that can be fetched"),
        ("http://127.0.0.1:99999/x", "not a URL that can be fetched"),
    ],
)
def test_urls_that_cannot_be_fetched(url: str, what: str) -> None:
    """What goes wrong is said in words, without what may be secret in the URL."""
    problem = refused(url)
    assert what in problem.what
    assert "secret" not in str(problem)
    assert "hunter2" not in str(problem)


def test_answers_that_are_no_document(site: Site) -> None:
    """A status, a size, a content coding and a page of HTML are told apart."""
    assert "the server says 404" in refused(site.url + "/nothing").what
    assert "larger than 10 bytes" in _fetch_problem(site.serve("/large", b"x" * 11), largest=10).what
    coded = site.serve("/coded", b"x", **{"Content-Encoding": "gzip"})
    assert "content coding" in refused(coded).what
    assert refused(site.serve("/page", b"<html>")).where == site.url + "/page"


def _fetch_problem(url: str, **limits: Any) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        fetch(url, **limits)
    return caught.value


def test_patience_ends(site: Site) -> None:
    """A transfer that takes longer than it may is given up."""
    assert "too long" in _fetch_problem(site.serve("/slow", b"x"), patience_s=1e-9).what


# -- JSON and YAML -----------------------------------------------------------------------------------------------------


def test_json_with_tabs_is_json(tmp_path: Path) -> None:
    """JSON may be indented by tabs, which YAML forbids; places are right all the same."""
    text = json.dumps(document({"type": "strnig"}), indent="\t")
    problem = refused(written(tmp_path / "tabs.json", text))
    line = next(number for number, row in enumerate(text.split("\n"), 1) if "strnig" in row)
    assert problem.where == f"{tmp_path / 'tabs.json'}:{line}:9"
    assert "/paths/~1v1~1completions/post/requestBody/content/application~1json/schema/type" in problem.what


def test_keys_given_twice_in_json(tmp_path: Path) -> None:
    """A key that JSON gives twice is refused with both lines."""
    problem = refused(written(tmp_path / "twice.json", '{"openapi": "3.1.0",\n "paths": {"/a": {},\n  "/a": {}}}'))
    assert problem.where == f"{tmp_path / 'twice.json'}:3:3"
    assert "first in line 2" in problem.what


# -- references --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ref", "words"),
    [
        ("https://example.com/x.yaml#/X", "on another host (example.com)"),
        ("other.yaml#/X", "which is another document"),
        ("#/components/schemas/No", "not there"),
        ("#nobody", "not there"),
        ("#", "not there"),
        ("http://[::1/x", "no URI"),
    ],
)
def test_references_that_are_refused(tmp_path: Path, ref: str, words: str) -> None:
    """A reference that leads nowhere, or to another document, is refused with its place and a way out."""
    problem = refused(written(tmp_path / "own.json", json.dumps(document({"$ref": ref}), indent=1)))
    assert words in problem.what
    assert problem.hint
    assert problem.where.startswith(f"{tmp_path / 'own.json'}:10:")


def test_references_of_others_do_not_matter(tmp_path: Path) -> None:
    """What no operation of ours leads to may be broken: that is the business of lint."""
    broken = {"schemas": {"X": {"$ref": "other.yaml#/X"}, "Y": {"$ref": "#/nowhere"}, "Z": "no schema"}}
    assert operation_of(written(tmp_path / "own.json", document({}, components=broken))).request.accepts({})


def test_files_beside_the_document(tmp_path: Path) -> None:
    """With --remote-refs, files in the document's folder are bundled, and their own references are followed from there."""
    written(tmp_path / "schemas" / "part.json", {"A": {"properties": {"b": {"$ref": "deeper/b c.yaml#/B"}}}})
    written(tmp_path / "schemas" / "deeper" / "b c.yaml", "B: {$ref: '../part.json#/C'}\n200: {type: string}\n")
    written(
        tmp_path / "schemas" / "part.json",
        {
            "A": {"properties": {"b": {"$ref": "deeper/b%20c.yaml#/B"}, "c": {"$ref": "deeper/b%20c.yaml#/200"}}},
            "C": {"type": "integer"},
        },
    )
    spec = written(tmp_path / "own.json", document({"$ref": "schemas/part.json#/A"}))
    request = operation_of(spec, remote_refs=True).request
    assert [request.accepts(body) for body in ({"b": 1, "c": "x"}, {"b": "x"}, {"c": 1})] == [True, False, False]
    assert "which is another document" in refused(spec).what


def test_a_broken_file_beside_the_document(tmp_path: Path) -> None:
    """A complaint about another file names that file, or the reference to it."""
    spec = written(tmp_path / "own.json", document({"$ref": "part.yaml#/A"}))
    assert refused(spec, remote_refs=True).what.startswith("part.yaml#/A cannot be read")
    written(tmp_path / "part.yaml", "A: {\n  type: 7}")
    problem = refused(spec, remote_refs=True)
    assert problem.where == "part.yaml:2:3"
    written(tmp_path / "part.yaml", "A: [\n")
    assert refused(spec, remote_refs=True).where.startswith("part.yaml:")


@pytest.mark.parametrize("ref", ["../outside.json#/X", "/etc/hostname#/X", "file:///etc/hostname#/X", "ftp://h/x#/X"])
def test_files_elsewhere_are_out_of_reach(tmp_path: Path, ref: str) -> None:
    """Even with --remote-refs a document leads to nothing outside of its folder."""
    written(tmp_path / "outside.json", {"X": {}})
    problem = refused(written(tmp_path / "in" / "own.json", document({"$ref": ref})), remote_refs=True)
    assert ref in problem.what


def test_urls_beside_the_document(site: Site) -> None:
    """With --remote-refs, what lies on the document's own host is fetched; another host is refused by name."""
    site.serve("/v1/part.json", {"A": {"type": "object"}})
    spec = site.serve("/v1/openapi.json", document({"$ref": "part.json#/A"}))
    assert not operation_of(spec, remote_refs=True).request.accepts([])
    assert [path for path, _ in site.asked] == ["/v1/openapi.json", "/v1/part.json"]
    away = site.serve("/away.json", document({"$ref": "http://example.com/part.json#/A"}))
    assert "on another host (example.com)" in refused(away, remote_refs=True).what
    local = site.serve("/local.json", document({"$ref": "file:///etc/hostname#/A"}))
    assert "by file from a document by http" in refused(local, remote_refs=True).what


REFERENCES: dict[str, tuple[Any, dict[str, Any]]] = {
    "percent-encoded": ({"$ref": "#/components/schemas/a%20b~1c"}, {"schemas": {"a b/c": {"type": "object"}}}),
    "anchor": ({"$ref": "#here"}, {"schemas": {"A": {"$anchor": "here", "type": "object"}}}),
    "id": ({"$ref": "urn:x:a"}, {"schemas": {"A": {"$id": "urn:x:a", "type": "object"}}}),
    "anchor-of-id": (
        {"$ref": "urn:x:a#b"},
        {"schemas": {"A": {"$id": "urn:x:a", "$defs": {"B": {"$anchor": "b", "type": "object"}}}}},
    ),
    "pointer-in-id": (
        {"$ref": "#/components/schemas/A"},
        {"schemas": {"A": {"$id": "urn:x:a", "$ref": "#/$defs/B", "$defs": {"B": {"type": "object"}}}}},
    ),
    "defs": (
        {"$ref": "#/components/schemas/A/$defs/B"},
        {"schemas": {"A": {"$defs": {"B": {"type": "object"}}}}},
    ),
    "own-defs": (
        {
            "$ref": "#/paths/~1v1~1completions/post/requestBody/content/application~1json/schema/$defs/B",
            "$defs": {"B": {"type": "object"}},
        },
        {},
    ),
    "chain": (
        {"$ref": "#/components/schemas/A"},
        {"schemas": {"A": {"$ref": "#/components/schemas/B"}, "B": {"type": "object"}}},
    ),
    "siblings": ({"$ref": "#/components/schemas/A", "type": "object"}, {"schemas": {"A": {}}}),
}


@pytest.mark.parametrize(("schema", "components"), REFERENCES.values(), ids=REFERENCES)
def test_references_inside_the_document(tmp_path: Path, schema: Any, components: dict[str, Any]) -> None:
    """Every form of reference inside a document leads to its schema (JSON Schema 2020-12, 8.2; RFC 6901)."""
    request = operation_of(written(tmp_path / "own.json", document(schema, components=components))).request
    assert (request.accepts({}), request.accepts([])) == (True, False)
    assert request.problems([])


def test_a_property_called_ref(tmp_path: Path) -> None:
    """A property may be called `$ref`, and an example may hold one: neither refers to anything."""
    schema = {"properties": {"$ref": {"type": "integer"}}, "example": {"$ref": "#/nothing"}, "default": {"$ref": "x"}}
    request = operation_of(written(tmp_path / "own.json", document(schema))).request
    assert [request.accepts({"$ref": value}) for value in (1, "#/x")] == [True, False]


def test_recursive_schemas(tmp_path: Path) -> None:
    """A schema may hold itself: validators, properties and requirements come to an end."""
    tree = {
        "type": "object",
        "required": ["prompt"],
        "properties": {"prompt": {"type": "string"}, "next": {"$ref": "#/components/schemas/T"}},
        "allOf": [{"$ref": "#/components/schemas/U"}],
    }
    components = {"schemas": {"T": tree, "U": {"properties": {"x": {"$ref": "#/components/schemas/T"}}}}}
    operation = operation_of(
        written(tmp_path / "own.json", document({"$ref": "#/components/schemas/T"}, components=components))
    )
    assert (sorted(operation.properties), operation.required) == (["next", "prompt", "x"], ("prompt",))
    assert operation.request.accepts({"prompt": "a", "next": {"prompt": "b", "x": {"prompt": "c"}}})
    assert operation.request.problems({"prompt": "a", "next": {"prompt": "b", "x": {}}})[0].pointer == "/next/x"


@pytest.mark.parametrize("tokens", [(), ("a",), ("a/b", "c~d"), ("a b", "%", "é", ""), ("$defs", "#", "~1")], ids=str)
def test_pointers_and_back(tokens: tuple[str, ...]) -> None:
    """A reference leads to the steps that it was made of (RFC 6901, section 6)."""
    assert tokens_of(ref_to(tokens)[1:]) == tokens


def test_what_is_pointed_at() -> None:
    """Steps lead through objects and lists, and to nothing else."""
    data = {"a": [{"b": 1}], "0": "x"}
    assert (pointed_at(data, ("a", "0", "b")), pointed_at(data, ("a", 0)), pointed_at(data, ("0",))) == (
        1,
        {"b": 1},
        "x",
    )
    for wrong in (("b",), ("a", "1"), ("a", "x"), ("0", "0"), ("a", "0", "b", "c")):
        with pytest.raises(LookupError):
            pointed_at(data, wrong)


@pytest.mark.parametrize(
    ("uri", "ref", "reason"),
    [
        ("file:///a/b.json", "c.json", None),
        ("file:///a/b.json", "d/c.json", None),
        ("file:///a/b.json", "d/../../c.json", "outside of the document's folder"),
        ("file:///a/b.json", "http://h/c", "on another host (h)"),
        ("http://h/b", "c", None),
        ("http://h/b", "http://H:81/c", None),
        ("http://h/b", "https://h/c", None),
        ("https://h/b", "http://h/c", "by http from a document by https"),
        ("http://h/b", "//g/c", "on another host (g)"),
        ("", "c", "beside a document that lies nowhere"),
    ],
)
def test_where_references_may_lead(uri: str, ref: str, reason: str | None) -> None:
    """A document's own folder or host, and nothing else."""
    assert refusal(uri, ref, allowed=True) == reason
    assert refusal(uri, ref, allowed=False) is not None


def test_what_was_bundled_is_a_document_by_itself(tmp_path: Path) -> None:
    """The document as it was put together can be written down and read again: it refers to nothing outside any more."""
    written(tmp_path / "part.json", {"A": {"$id": "urn:x:a", "$ref": "#/$defs/B", "$defs": {"B": {"type": "object"}}}})
    spec = written(tmp_path / "own.json", document({"allOf": [{"$ref": "part.json#/A"}, {"$ref": "urn:x:a"}]}))
    first = operation_of(spec, remote_refs=True)
    again = operation_of(written(tmp_path / "elsewhere" / "own.json", first.document.raw))
    for operation in (first, again):
        assert [operation.request.accepts(body) for body in ({}, [])] == [True, False]
    raw = first.document.raw
    (part,) = raw["x-streamgauge-remote"].values()
    part["A"]["$defs"]["B"]["type"] = 7
    assert "/$defs/B/type cannot be used" in refused(written(tmp_path / "elsewhere" / "own.json", raw)).what
