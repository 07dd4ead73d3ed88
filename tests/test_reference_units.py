import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamgauge.contract.contract import JSON
from streamgauge.reference import DEFAULT_KEY, DEFAULT_MODEL
from streamgauge.reference.messages import Request
from streamgauge.reference.prompts import completion_prompts
from streamgauge.reference.responder import Responder
from streamgauge.reference.settings import Settings
from streamgauge.reference.tokens import texts_of
from streamgauge.reference.words import VOCABULARY, sequence_class


def test_words_are_told_apart():
    """No two tokens have the same text, and each is one word behind one space."""
    assert len(set(VOCABULARY)) == len(VOCABULARY)
    assert all(text[0] == " " and text.split() == [text[1:]] for text in VOCABULARY)
    assert {len(letter.encode()) for letter in "".join(VOCABULARY)} == {1, 2, 3, 4}


def test_text_never_repeats_a_block():
    """No run of words stands twice in a row, so repetition is never detected."""
    classes = [sequence_class(position) for position in range(600)]
    assert set(classes) == {0, 1, 2}
    for size in range(1, 60):
        for start in range(len(classes) - 2 * size):
            assert classes[start : start + size] != classes[start + size : start + 2 * size]


@settings(database=None, derandomize=True)
@given(st.text())
def test_tokens_joined_are_the_prompt(text):
    """Cutting a prompt into tokens loses nothing, and every prompt has at least one."""
    [prompt] = completion_prompts(text)
    assert texts_of(prompt.ids) == text == prompt.text
    assert prompt.count == len(prompt.ids) >= 1


@pytest.mark.parametrize(
    ("prompt", "counts"),
    [
        ("", [1]),
        ("one two  three", [4]),
        ("a river", [2]),
        ("1 2 3", [3]),
        ("größe", [4]),
        (["a", "b c"], [1, 1]),
        ([5, 6, 7], [3]),
        ([5.0], [1]),
        ([[1], [2, 3]], [1, 2]),
    ],
)
def test_prompt_tokens(prompt, counts):
    """Words and other characters count one, ASCII by fours, numbers apart, ids one each."""
    assert [each.count for each in completion_prompts(prompt)] == counts


def test_metrics_count_what_is_written():
    """Counters, gauge and histograms follow one complete and one aborted answer."""
    responder = Responder(Settings(models=('a"\\b',)))
    body = b'{"model": "a\\"\\\\b", "prompt": "x y", "max_tokens": 4, "n": 2}'
    headers = (("authorization", DEFAULT_KEY), ("content-type", JSON))
    answer = responder.reply(Request("POST", "/v1/inference/completions", headers, body)).answer
    metrics = responder.metrics
    metrics.started(answer)
    metrics.wrote(answer, 2, 0.03, first=True)
    label = 'model_name="a\\"\\\\b"'
    assert f"vllm:num_requests_running{{{label}}} 1\n" in metrics.text()
    metrics.wrote(answer, 6, 20.0, first=False)
    metrics.ended(answer, complete=True)
    metrics.started(answer)
    metrics.ended(answer, complete=False)
    lines = metrics.text().splitlines()
    for line in (
        f"vllm:num_requests_running{{{label}}} 0",
        f"vllm:num_requests_waiting{{{label}}} 0",
        f"vllm:prompt_tokens_total{{{label}}} 4",
        f"vllm:generation_tokens_total{{{label}}} 8",
        f'vllm:request_success_total{{finished_reason="length",{label}}} 2',
        f'vllm:request_success_total{{finished_reason="stop",{label}}} 0',
        f'vllm:request_success_total{{finished_reason="abort",{label}}} 1',
        f'vllm:time_to_first_token_seconds_bucket{{le="0.02",{label}}} 0',
        f'vllm:time_to_first_token_seconds_bucket{{le="0.04",{label}}} 1',
        f'vllm:inter_token_latency_seconds_bucket{{le="10.0",{label}}} 0',
        f'vllm:inter_token_latency_seconds_bucket{{le="+Inf",{label}}} 1',
        f"vllm:inter_token_latency_seconds_sum{{{label}}} 20.0",
        "# TYPE vllm:num_requests_running gauge",
    ):
        assert line in lines


def test_metrics_page_needs_no_key():
    """A scraper reads the page without a key, in Prometheus' text format."""
    [write] = Responder(Settings()).reply(Request("GET", "/metrics")).writes
    assert b"Content-Type: text/plain; version=0.0.4" in write.data
    assert DEFAULT_MODEL.encode() in write.data
