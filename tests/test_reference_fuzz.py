import json

import h11
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamgauge.contract.contract import JSON
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.messages import Request
from streamgauge.reference.responder import Responder
from streamgauge.reference.settings import Settings
from streamgauge.wire.sse import DONE, read_events

RESPONDER = Responder(Settings())
OPERATIONS = [(contract, operation) for contract in RESPONDER.contracts for operation in contract.operations]
NAMES = [operation.name for _, operation in OPERATIONS]
FUZZ = settings(
    max_examples=150, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.integers()
    | st.integers(2**62, 10**40)
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["", "\0", " ", "e", "auto", "none", "text", "json_object", "user", "left"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=6) | st.sampled_from(["type", "text", "include_usage", "json_schema", "role", "content"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
messages = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"]), "content": st.text() | st.none()}),
    max_size=3,
)


def bodies(operation):
    """Bodies that begin well: a right model and prompt, few tokens; on top, any parameters."""
    return st.fixed_dictionaries(
        {
            "model": st.just(DEFAULT_MODEL),
            "prompt": st.text() | st.lists(st.text(max_size=5), max_size=3) | st.lists(st.integers(0), max_size=3),
            "messages": messages,
            "max_tokens": st.integers(1, 12),
        },
        optional={
            "stream": st.booleans(),
            "n": st.integers(1, 3),
            "echo": st.booleans(),
            "stop": st.text(min_size=1, max_size=2) | st.lists(st.sampled_from(["e", " ", "ри"]), max_size=3),
            "logprobs": st.booleans() | st.integers(0, 3),
            "request_id": st.text(),
        },
    ).flatmap(
        lambda body: st.dictionaries(st.sampled_from(sorted(operation.properties)), values, max_size=2).map(body.__or__)
    )


def converse(request):
    """What h11's client makes of the reply: status, headers, body."""
    reply = RESPONDER.reply(request)
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=request.method, target="/", headers=[("host", "x")]))
    client.send(h11.EndOfMessage())
    events = []
    for write in reply.writes:
        client.receive_data(write.data)
        while (event := client.next_event()) is not h11.NEED_DATA:
            events.append(event)
            if isinstance(event, h11.EndOfMessage):
                break
    assert isinstance(events[0], h11.Response)
    assert isinstance(events[-1], h11.EndOfMessage)
    assert client.trailing_data == (b"", False)
    body = b"".join(event.data for event in events[1:-1])
    return events[0].status_code, dict(events[0].headers), body


def judge(contract, operation, data):
    """Any reply has a known status, and a body by the document's schema."""
    auth = contract.profile.auth
    headers = ((auth.header.lower(), auth.value(DEFAULT_KEY)), ("content-type", JSON))
    status, fields, body = converse(Request("POST", RESPONDER.paths[operation.name][0], headers, data))
    media_type = fields[b"content-type"].decode().partition(";")[0]
    assert status < 500
    assert contract.allows_status(operation, status)
    if media_type == JSON:
        payloads = [body]
    else:
        events, reader = read_events(body)
        assert reader.unfinished == []
        assert events[-1].data == DONE
        payloads = [event.data for event in events[:-1]]
    validator = operation.response(status, media_type)
    for payload in payloads:
        assert validator.problems(json.loads(payload)) == []
    return status


@pytest.mark.parametrize(("contract", "operation"), OPERATIONS, ids=NAMES)
def test_any_bytes(contract, operation):
    """Bytes of whatever kind are answered with a documented 4xx."""

    @FUZZ
    @given(st.binary(max_size=60) | st.text(alphabet='{}[]",:0e-truefalsn\\u \n').map(str.encode))
    def law(data):
        assert 400 <= judge(contract, operation, data) < 500

    law()


@pytest.mark.parametrize(("contract", "operation"), OPERATIONS, ids=NAMES)
def test_any_json(contract, operation):
    """JSON of whatever shape is answered with a known status and a valid body."""

    @FUZZ
    @given(values | st.dictionaries(st.sampled_from(sorted(operation.properties)), values, max_size=6))
    def law(value):
        judge(contract, operation, json.dumps(value).encode())

    law()


@pytest.mark.parametrize(("contract", "operation"), OPERATIONS, ids=NAMES)
def test_any_parameters(contract, operation):
    """Requests that begin well and set any parameters to anything are answered with valid bodies."""
    statuses = set()

    @FUZZ
    @given(bodies(operation))
    def law(body):
        statuses.add(judge(contract, operation, json.dumps(body).encode()))

    law()
    assert 200 in statuses


def test_any_target_and_headers():
    """No method, path or header makes the endpoint fail."""
    tokens = st.text("ABCxyz-", min_size=1, max_size=8)
    paths = st.text(st.characters(codec="latin-1"), max_size=20) | st.sampled_from(
        sorted(op.path for _, op in OPERATIONS)
    )
    latin = st.text(st.characters(codec="latin-1"), max_size=20)
    names = st.sampled_from(["authorization", "x-api-key", "content-type", "connection", "content-encoding"]) | tokens

    @FUZZ
    @given(
        tokens | st.sampled_from(["POST", "GET"]),
        paths,
        st.lists(st.tuples(names.map(str.lower), latin), max_size=4),
    )
    def law(method, path, headers):
        status, _, _ = converse(Request(method, path, tuple(headers)))
        assert status < 500

    law()
