"""One request before all others, and what it says when it fails."""

import dataclasses
import functools
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from scripted import CLOSE, HOLD, RESET, Answer, answer, dead_port, request_head, scripted

from streamgauge.contract.contract import Contract, load_contracts
from streamgauge.errors import CannotTellError, ConfigError, StreamgaugeError, UnreachableError
from streamgauge.outcomes import ExitCode
from streamgauge.preflight import preflight
from streamgauge.target import Target
from streamgauge.wire.recorder import Limits

KEY = "sk-5ecret-0123456789"
PATH = "/v1/chat/completions"
QUICK = Limits(concurrency=1, connect=30, idle=30, total=60, rate_limit_wait=0.01)


@functools.cache
def contract() -> Contract:
    """The compiled contract of chat completions."""
    return load_contracts(["seekr-chat"])[0]


def target(url: str, **more: Any) -> Target:
    """A target with key, model and path."""
    given = {"model": "tiny", "key": KEY, "paths": {"seekr-chat": PATH}, **more}
    return Target("t", url, contract(), **given)


def models(*names: str) -> Answer:
    """A list of models."""
    listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}
    return answer(200, json.dumps(listed).encode())


def endpoint(
    completion: Answer, listed: Answer | None = None, *, where: str = "/v1/models"
) -> Callable[[int, bytes], Answer]:
    """Answers to a completion and, at `where`, to the list of models; 404 elsewhere."""

    def choose(_: int, request: bytes) -> Answer:
        method, path, _ = request_head(request)[0].split(" ")
        if method == "GET":
            return listed if listed is not None and path == where else answer(404, b'{"error": "no such path"}')
        return completion

    return choose


def refused(choose: Callable[[int, bytes], Answer], limits: Limits = QUICK, **more: Any) -> StreamgaugeError:
    """What the preflight says about an endpoint; it says what, where and a hint, on one screen, and never the key."""
    with scripted(choose=choose) as server, pytest.raises(StreamgaugeError) as caught:
        preflight([target(server.url, **more)], limits)
    return checked(caught.value, server.url)


def checked(problem: StreamgaugeError, url: str) -> StreamgaugeError:
    """The problem, once its form is found right."""
    assert problem.what
    assert problem.hint
    assert problem.where.startswith(url)
    shown = str(problem)
    assert len(shown) < 2500
    assert len(shown.splitlines()) == 2
    assert all(line.isprintable() for line in shown.splitlines())
    assert KEY not in shown
    return problem


def test_right_endpoint() -> None:
    """One plain request with one token at most is all that a right endpoint sees."""
    with scripted(choose=endpoint(answer(200))) as server:
        ready, notes = preflight([target(server.url)], QUICK)
        assert len(server.requests) == 1
        line, fields = request_head(server.requests[0])
        body = json.loads(server.requests[0].partition(b"\r\n\r\n")[2])
    assert (line, fields["authorization"]) == (f"POST {PATH} HTTP/1.1", KEY)
    assert (body["model"], body["max_tokens"]) == ("tiny", 1)
    assert (ready, notes) == ([target(server.url)], [])


@pytest.mark.parametrize("where", ["/v1/models", "/base/openai/models"])
def test_only_model_is_taken(where: str) -> None:
    """Where no model is named and one is served, that one is taken, and said so."""
    paths = {"seekr-chat": "/base/openai/chat/completions"}
    with scripted(choose=endpoint(answer(200), models("tiny"), where=where)) as server:
        ready, notes = preflight([target(server.url, model="", paths=paths)], QUICK)
    assert [each.model for each in ready] == ["tiny"]
    assert "tiny" in notes[0]


def test_every_target_is_asked() -> None:
    """Several targets are asked one after another; insecure ones are pointed out."""
    with scripted(choose=endpoint(answer(200))) as server:
        ready, notes = preflight([target(server.url), target(server.url, insecure=True)], QUICK)
        assert (len(ready), len(server.requests)) == (2, 2)
    assert len(notes) == 1
    assert "NOT verified" in notes[0]


def test_notes_of_the_contract_are_passed_on() -> None:
    """How a document was read is said where everything else is that the user should know."""
    with scripted(choose=endpoint(answer(200))) as server:
        named = target(server.url)
        noted = dataclasses.replace(named, contract=dataclasses.replace(named.contract, notes=("own: read so",)))
        assert preflight([noted], QUICK)[1] == [f"{named.name}: own: read so"]


def test_several_models() -> None:
    """Where several models are served, the user has to choose, and sees which there are."""
    with (
        scripted(choose=endpoint(answer(200), models("tiny", "huge"))) as server,
        pytest.raises(ConfigError) as caught,
    ):
        preflight([target(server.url, model="")], QUICK)
    assert "tiny, huge" in caught.value.hint
    assert "--model" in caught.value.hint
    assert caught.value.exit_code is ExitCode.USAGE


def test_many_models_fit_on_a_screen() -> None:
    """A thousand models, some with wild names, are not all listed."""
    names = [f"model-{number}" for number in range(1000)]
    names[0] = "evil\x1b[2J\n" * 100
    problem = refused(endpoint(answer(404), models(*names)))
    assert "980 more" in problem.hint


@pytest.mark.parametrize(
    "listed",
    [
        None,
        models(),
        answer(200, b"nonsense"),
        answer(200, b"[]"),
        answer(200, b'{"data": [1, {"id": 2}]}'),
        answer(500),
    ],
    ids=["404", "empty", "no-json", "no-object", "no-names", "500"],
)
def test_no_model_to_be_found(listed: Answer | None) -> None:
    """Where no model is named and none is listed, the user has to name one."""
    with scripted(choose=endpoint(answer(200), listed)) as server, pytest.raises(ConfigError) as caught:
        preflight([target(server.url, model="")], QUICK)
    assert "--model" in caught.value.hint
    assert f"{server.url}/v1/models" in caught.value.hint


@pytest.mark.parametrize("model", ["tiny", ""], ids=["model", "no-model"])
@pytest.mark.parametrize(("key", "said"), [(KEY, "was refused"), (None, "A key is needed")], ids=["key", "no-key"])
def test_key_is_refused(model: str, key: str | None, said: str) -> None:
    """401 is about the key, whichever request meets it first: a wrong one, or none; the form that was sent is named."""
    no = answer(401, b'{"error": {"message": "Invalid key"}}')
    problem = refused(endpoint(no, no), key=key, model=model)
    assert isinstance(problem, ConfigError)
    assert said in problem.hint
    assert "seekr sends it as Authorization" in problem.hint
    assert "Invalid key" in problem.what
    assert problem.exit_code is ExitCode.USAGE


def test_echoed_key_is_not_printed() -> None:
    """An endpoint that repeats the key in its refusal does not get it onto the screen."""
    problem = refused(endpoint(answer(401, f"no such key: {KEY}".encode())))
    assert "*" * len(KEY) in problem.what


def test_forbidden_without_a_list_is_about_the_key() -> None:
    """403 where the models are not listed either is about the key."""
    assert "key" in refused(endpoint(answer(403))).hint


@pytest.mark.parametrize("status", [400, 403, 404, 422])
def test_unknown_model(status: int) -> None:
    """A model that is not served is told apart from a wrong path, and those that are served are listed."""
    problem = refused(endpoint(answer(status), models("tiny", "huge")), model="tinny")
    assert isinstance(problem, ConfigError)
    assert "tinny is not served" in problem.hint
    assert "tiny, huge" in problem.hint


@pytest.mark.parametrize("status", [404, 405])
def test_wrong_path(status: int) -> None:
    """404 for a model that is served, or with no list, is about the path."""
    for listed in (models("tiny"), None):
        problem = refused(endpoint(answer(status), listed))
        assert isinstance(problem, ConfigError)
        assert "--path" in problem.hint
        assert problem.where.endswith(PATH)


def test_redirect() -> None:
    """A redirect is not followed; where it leads is said."""
    problem = refused(endpoint(answer(308, b"", "Location: https://elsewhere.example/v1")))
    assert "https://elsewhere.example/v1" in problem.hint
    assert problem.exit_code is ExitCode.USAGE


@pytest.mark.parametrize("status", [500, 502, 503])
def test_failing_server(status: int) -> None:
    """A server that fails on the plainest request gets no verdict."""
    problem = refused(endpoint(answer(status, b"Traceback:\n" + b"  line\n" * 1000)))
    assert isinstance(problem, CannotTellError)
    assert problem.exit_code is ExitCode.CANNOT_TELL
    assert str(status) in problem.what


def test_rate_limit() -> None:
    """An endpoint that goes on limiting the rate gets no verdict."""
    problem = refused(endpoint(answer(429, b"slow down", "Retry-After: 1")))
    assert isinstance(problem, CannotTellError)
    assert "limits the rate" in problem.hint


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ([b"SSH-2.0-OpenSSH_9.6\r\n\r\n", CLOSE], "HTTP/1.1"),
        ([CLOSE], "closed without an answer"),
        ([RESET], "closed without an answer"),
        ([b"HTTP/1.1 200 OK\r\nA: " + b"\x1b[2J" * 99, CLOSE], "closed without an answer"),
        ([HOLD], "nothing answers"),
    ],
    ids=["no-http", "closed", "reset", "cut-head", "silent"],
)
@pytest.mark.parametrize("model", ["tiny", ""], ids=["model", "no-model"])
def test_no_answer(script: Answer, said: str, model: str) -> None:
    """A target that does not answer gets no verdict, and the likely reason is said."""
    limits = dataclasses.replace(QUICK, idle=0.2) if HOLD in script else QUICK
    problem = refused(endpoint(script, script), limits, model=model)
    assert isinstance(problem, UnreachableError)
    assert problem.exit_code is ExitCode.CANNOT_TELL
    assert said in problem.hint


def test_connection_refused() -> None:
    """A port where nothing listens is said to be one."""
    with dead_port() as port, pytest.raises(UnreachableError) as caught:
        url = f"http://127.0.0.1:{port}"
        preflight([target(url)], QUICK)
    problem = checked(caught.value, url)
    assert "Connection refused" in problem.what
    assert "Nothing listens" in problem.hint


def test_https_to_a_plain_server() -> None:
    """TLS to a server without it is said to be that."""

    def plain(listener: socket.socket) -> None:
        link, _ = listener.accept()
        with link:
            link.recv(65536)
            link.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=plain, args=(listener,))
        thread.start()
        with pytest.raises(UnreachableError) as caught:
            preflight([target(url)], QUICK)
        thread.join(30)
    assert "TLS failed" in checked(caught.value, url).hint


def test_plain_http_to_a_tls_server() -> None:
    """What servers with TLS say to a request without it, a fatal alert (RFC 8446, section 6) or nothing, leads to https."""
    for said in ([b"\x15\x03\x03\x00\x02\x02\x46", CLOSE], [CLOSE], [RESET]):
        assert "https://" in refused(endpoint(said, said)).hint


def test_wild_answers_are_tamed() -> None:
    """Control sequences and floods from the server do not reach the terminal."""
    body = b"\x1b]0;owned\x07\r\n" * 5000 + "\u202e\u2028".encode()
    assert "owned" in refused(endpoint(answer(418, body))).what


def test_list_that_fails_does_not_hide_the_answer() -> None:
    """When the list of models breaks while a refusal is explained, the refusal is what is told."""
    problem = refused(endpoint(answer(404, b"no path"), [CLOSE]))
    assert "404" in problem.what
    assert "--path" in problem.hint
