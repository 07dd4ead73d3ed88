"""Banned, forced and allowed tokens: what proves that they were ignored, and what right servers do that proves nothing."""

import json
from typing import Any

import pytest
from transcripts import contract_of, exchange, http, outcomes, request, whole_answer

import streamgauge.conformance.checks  # noqa: F401 - declares every check
from streamgauge.conformance.check import CHECKS
from streamgauge.conformance.probes.laws.steering import steering
from streamgauge.conformance.probes.probe import FollowUp, Probe
from streamgauge.outcomes import Outcome
from streamgauge.wire.exchange import Exchange

IGNORED, WARN, FAIL = Outcome.IGNORED, Outcome.WARN, Outcome.FAIL
UNCLEAR, PASS, REFUSED, NOT_RUN = Outcome.INCONCLUSIVE, Outcome.PASS, Outcome.REFUSED, Outcome.NOT_RUN

PLAIN = "One, two, three, four, five."
IDS = [11, 12, 13, 12, 14]


class Server:
    """Exchanges of one operation; answered twice without any steering, alike, where `steady`."""

    def __init__(self, spec: str = "seekr-completions", *, steady: bool = True, **asked: Any) -> None:
        self.contract, self.operation = contract_of(spec)
        self.exchanges: list[Exchange] = []
        for text in (PLAIN, PLAIN if steady else PLAIN[:-3]):
            self.said(text, IDS if asked else None, **asked)

    def said(
        self, text: str, ids: list[int] | None = None, finish: str = "length", probe: str = "", **asked: Any
    ) -> "Server":
        """One whole answer."""
        body = whole_answer(self.operation)
        (choice,) = body["choices"]
        choice.update(text=text, finish_reason=finish, **({"token_ids": ids} if ids else {}))
        return self.answered(http(200, json.dumps(body).encode()), probe, **asked)

    def answered(self, wire: bytes, probe: str = "", **asked: Any) -> "Server":
        """One exchange."""
        name = probe or f"p{len(self.exchanges):03d}"
        self.exchanges.append(exchange(self.operation, request(self.operation, **asked), wire, probe=name))
        return self

    def finds(self, check: str) -> Outcome:
        """What the check finds in all of them."""
        return outcomes(self.contract, self.operation, *self.exchanges)[check]


_BIAS: dict[str, Any] = {"logit_bias": {"20": 100}}
_ALLOWED: dict[str, Any] = {"allowed_token_ids": [11, 12]}
_TOLD: dict[str, Any] = {"return_token_ids": True}


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (Server().said(PLAIN, **_BIAS), IGNORED),
        (Server().said("5555555555555555", **_BIAS), PASS),
        (Server().said("5 5 5 5 5 5 5 5", **_BIAS), PASS),
        (Server().said(" a bar bar bar bar".replace(" a ", " "), **_BIAS), PASS),
        (Server().said("", **_BIAS), PASS),  # a control character, or a special token
        (Server().said("One, two, three, five.", **_BIAS), UNCLEAR),
        (Server(steady=False).said(PLAIN, **_BIAS), UNCLEAR),
        (Server().said("20 20 20", [20, 20, 20], **_BIAS, **_TOLD), PASS),
        (Server().said("20 20", [20, 20, 2], "stop", **_BIAS, **_TOLD), PASS),
        (Server().said("20 20", [20, 20, 7], **_BIAS, **_TOLD), IGNORED),
        (Server().said(PLAIN, logit_bias={"20": 5}), NOT_RUN),
        (Server().said(PLAIN, logit_bias={"twenty": 100}), NOT_RUN),
        (Server().answered(http(400, b'{"detail": "logit_bias"}'), **_BIAS), REFUSED),
        (Server().answered(http(500, b"{}"), **_BIAS), FAIL),
    ],
)
def test_bias_of_100(server: Server, expected: Outcome) -> None:
    """One token again and again, or whatever that looks like; the text without the bias shows that there was none."""
    assert server.finds("steering.bias-forces") is expected


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (Server(**_TOLD).said("x", [9, 12, 13], logit_bias={"11": -100}, **_TOLD), PASS),
        (Server(**_TOLD).said(PLAIN, IDS, logit_bias={"11": -100}, **_TOLD), IGNORED),
        (Server(**_TOLD).said(PLAIN, None, logit_bias={"11": -100}, **_TOLD), NOT_RUN),
        (Server(**_TOLD).said(PLAIN, IDS, logit_bias={"99": -100}, **_TOLD), NOT_RUN),
        (Server().said(PLAIN, IDS, logit_bias={"11": -100}, **_TOLD), IGNORED),
        (Server(**_TOLD).said(PLAIN, IDS, logit_bias={"11": -5}, **_TOLD), NOT_RUN),
    ],
)
def test_bias_of_minus_100(server: Server, expected: Outcome) -> None:
    """The id of a token that the model says without it."""
    assert server.finds("steering.bias-bans") is expected


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (Server().said("a", [11, 12, 12, 11], **_ALLOWED, **_TOLD), PASS),
        (Server().said("a", [11, 12, 2], "stop", **_ALLOWED, **_TOLD), PASS),
        (Server().said("a", [11, 12, 2], **_ALLOWED, **_TOLD), IGNORED),
        (Server().said("!", [0], bad_words=["one"], **_ALLOWED, **_TOLD), IGNORED),
        (Server().said("a", None, **_ALLOWED, **_TOLD), UNCLEAR),
        (Server().said(PLAIN, allowed_token_ids=[20]), IGNORED),
        (Server().said("zzzzzzzzzzzz", allowed_token_ids=[20]), PASS),
        (Server().answered(http(422, b'{"detail": "nothing is left"}'), bad_words=["one"], **_ALLOWED), NOT_RUN),
        (Server().said(PLAIN, allowed_token_ids=[20], echo=True), NOT_RUN),
    ],
)
def test_allowed_token_ids(server: Server, expected: Outcome) -> None:
    """What ends an answer may be another token; where bad_words leaves nothing, no other one may come."""
    assert server.finds("steering.allowed-token-ids") is expected


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        (Server().said(PLAIN, bad_words=["two"]), IGNORED),
        (Server().said("One, three, five.", bad_words=["two"]), PASS),
        (Server().said("One, twofold", bad_words=["two"]), PASS),
        (Server().said("One, and two.", bad_words=["two"]), WARN),
        (Server(steady=False).said(PLAIN, bad_words=["two"]), WARN),
        (Server().said(PLAIN, bad_words=["six"]), NOT_RUN),
        (Server(steady=False).said("One, three.", bad_words=["two"]), NOT_RUN),
        (Server().said(PLAIN, bad_words=[" "]), NOT_RUN),
        (Server().said("", bad_words=["two"]), PASS),
        (Server().said(PLAIN, bad_words=["One"], echo=True), NOT_RUN),  # the prompt may have it
        (Server().said("One (two", bad_words=["two"]), PASS),  # with its mark it may be another token
    ],
)
def test_bad_words(server: Server, expected: Outcome) -> None:
    """In another text than without the ban, a word may have come about by tokens that are not banned."""
    assert server.finds("steering.bad-words") is expected


_SPECIAL: dict[str, Any] = {"allowed_token_ids": [2], "ignore_eos": True, **_TOLD}
_SHOWN: dict[str, Any] = {**_SPECIAL, "skip_special_tokens": False}


@pytest.mark.parametrize(
    ("skipped", "shown", "ids", "expected"),
    [
        ("", "</s></s>", [2, 2], PASS),
        ("", "", [2, 2], IGNORED),
        ("useruser", "useruser", [2, 2], NOT_RUN),  # it is none
        ("\n\n", "\n\n", [2, 2], NOT_RUN),
        (None, "", [2, 2], NOT_RUN),
        ("", "", [2], NOT_RUN),  # it may have ended the answer
        ("", "", None, NOT_RUN),
        ("", "", [2, 3], NOT_RUN),
    ],
)
def test_special_tokens(skipped: str | None, shown: str, ids: list[int] | None, expected: Outcome) -> None:
    """A token that has no text where special ones are skipped has one where they are not."""
    server = Server()
    if skipped is not None:
        server.said(skipped, ids, **_SPECIAL)
    assert server.said(shown, ids, **_SHOWN).finds("steering.special-tokens-shown") is expected


def made(server: Server) -> dict[str, dict[str, Any] | str]:
    """What becomes of the follow-ups of the topic, where the server's exchanges answered the probes of their names."""
    answered = {each.probe: each for each in server.exchanges}
    found: dict[str, dict[str, Any] | str] = {}
    for each in steering(server.operation, "tiny"):
        if isinstance(each, FollowUp):
            probe = each.probe(answered)
            found[each.id.removeprefix("law.steering.")] = probe.body if isinstance(probe, Probe) else probe
    return found


def test_follow_ups_take_ids_and_words_from_answers() -> None:
    """Banned is the first token; allowed are the first two; special is what ended an answer."""
    server = Server()
    server.said(PLAIN, IDS, probe="law.steering.ids", **_TOLD)
    server.said("Yes", [31, 2], "stop", probe="law.steering.ended", **_TOLD)
    server.said(PLAIN, probe="law.steering.words")
    found = made(server)

    assert found["bias-bans"]["logit_bias"] == {"11": -100}
    assert found["allowed"]["allowed_token_ids"] == [11, 12]
    assert found["special-shown"]["allowed_token_ids"] == [2]
    assert found["special-shown"]["skip_special_tokens"] is False
    assert "skip_special_tokens" not in found["special-skipped"]
    assert found["bad-words"] == "no word to ban"  # "One," is none, nor is "five."


@pytest.mark.parametrize(
    ("text", "words"),
    [("one two one x", ["one", "two"]), ("12 .. é", "no word to ban"), ("", "no word to ban")],
)
def test_follow_up_bans_whole_words(text: str, words: list[str] | str) -> None:
    """Each word once, and none of a single letter."""
    found = made(Server().said(text, probe="law.steering.text"))["bad-words"]
    assert (found["bad_words"] if isinstance(found, dict) else found) == words


def test_no_follow_up_without_answers() -> None:
    """The reason is told in place of the request."""
    assert set(made(Server()).values()) == {
        "no word to ban",
        "no answer told the ids of its tokens",
        "no answer told the id of a special token",
    }


def test_every_law_of_steering_is_tried_here() -> None:
    """No check of the topic without a case above."""
    tried = {"bias-forces", "bias-bans", "allowed-token-ids", "bad-words", "special-tokens-shown"}
    assert {id_ for id_ in CHECKS if id_.startswith("steering.")} == {f"steering.{name}" for name in tried}
