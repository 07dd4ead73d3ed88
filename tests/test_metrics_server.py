"""What servers' own pages of metrics say, under one set of names (Prometheus' text format, version 0.0.4)."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from streamgauge import catalog
from streamgauge.metrics.server import (
    GAUGES,
    SERVERS,
    Phase,
    Quantity,
    Sample,
    deltas,
    read_page,
    samples_of,
)

VLLM = """# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 1.2345e+04
vllm:prompt_tokens_created{engine="0",model_name="m"} 1.7960106414292605e+09
# TYPE vllm:prompt_tokens_cached_total counter
vllm:prompt_tokens_cached_total{engine="0",model_name="m"} 32.0
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 48.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 678.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 7.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 5.0
vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"} 2.0
vllm:request_success_total{engine="0",finished_reason="error",model_name="m"} 1.0
vllm:request_success_total{engine="0",finished_reason="repetition",model_name="m"} 1.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 12.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 13.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 13.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 1.5
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_sum{engine="0",model_name="m"} 9.0
"""

SGLANG = """# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{is_streaming="true",model_name="m"} 30.0
sglang:prompt_tokens_total{is_streaming="false",model_name="m"} 12.0
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device",model_name="m"} 8.0
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{is_streaming="true",model_name="m"} 20.0
# TYPE sglang:num_requests_total counter
sglang:num_requests_total{is_streaming="true",model_name="m"} 4.0
sglang:num_requests_total{is_streaming="false",model_name="m"} 2.0
# TYPE sglang:num_aborted_requests_total counter
sglang:num_aborted_requests_total{model_name="m"} 1.0
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{model_name="m"} 2.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m"} 0.0
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="m"} 0.5
"""

LLAMA = """# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed, excluding cached tokens
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 14
# TYPE llamacpp:prompt_tokens_cached_total counter
llamacpp:prompt_tokens_cached_total 6
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 8
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 1
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 2
"""

TGI = """# TYPE tgi_request_success counter
tgi_request_success{method="generate"} 3
# TYPE tgi_request_input_length histogram
tgi_request_input_length_bucket{le="2"} 1
tgi_request_input_length_sum 90
tgi_request_input_length_count 3
# TYPE tgi_request_generated_tokens histogram
tgi_request_generated_tokens_sum 60
# TYPE tgi_batch_current_size gauge
tgi_batch_current_size 2
# TYPE tgi_queue_size gauge
tgi_queue_size 1
"""

PAGES: list[tuple[str, str, dict[str, float]]] = [
    (
        VLLM,
        "vLLM",
        {
            "prompt_tokens": 12345,
            "cached_prompt_tokens": 32,
            "completion_tokens": 678,
            "finished": 13,
            "finished_stop": 7,
            "finished_length": 5,
            "aborted": 2,
            "first_tokens": 13,
            "first_token_seconds": 1.5,
            "running": 3,
            "waiting": 1,
            "cache_usage": 0.25,
        },
    ),
    (
        SGLANG,
        "SGLang",
        {
            "prompt_tokens": 42,
            "cached_prompt_tokens": 8,
            "completion_tokens": 20,
            "finished": 6,
            "aborted": 1,
            "running": 2,
            "waiting": 0,
            "cache_usage": 0.5,
        },
    ),
    (
        LLAMA,
        "llama.cpp",
        {"computed_prompt_tokens": 14, "cached_prompt_tokens": 6, "completion_tokens": 8, "running": 1, "waiting": 2},
    ),
    (TGI, "TGI", {"prompt_tokens": 90, "completion_tokens": 60, "finished": 3, "running": 2, "waiting": 1}),
]


@pytest.mark.parametrize(("page", "server", "values"), PAGES, ids=[server for _, server, _ in PAGES])
def test_pages_of_each_server(page: str, server: str, values: dict[str, float]) -> None:
    """Each server's own names are read; of two names for one quantity the first of the table counts."""
    found = read_page(page, "m")
    assert found.server == server
    assert found.values == values
    assert found.of_model == (values if "model_name" in page else None)


def test_every_server_tells_tokens_and_what_runs() -> None:
    """The table gives each server what the comparison needs least."""
    for families in SERVERS.values():
        told = {family.quantity for family in families}
        assert {Quantity.COMPLETION_TOKENS, Quantity.RUNNING, Quantity.WAITING} <= told
        assert told & {Quantity.PROMPT_TOKENS, Quantity.COMPUTED_PROMPT_TOKENS}


def test_engines_are_summed_and_models_told_apart() -> None:
    """Counts of several engines are added, the greatest use of a cache stands for all; the model asked for is summed apart."""
    page = """# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 10
vllm:generation_tokens_total{engine="1",model_name="m"} 5
vllm:generation_tokens_total{engine="0",model_name="other"} 100
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.75
"""
    found = read_page(page, "m")
    assert found.values == {"completion_tokens": 115, "cache_usage": 0.75}
    assert found.of_model == {"completion_tokens": 15, "cache_usage": 0.75}
    assert read_page(page, "nobody").of_model is None


def test_names_of_models_may_hold_anything() -> None:
    """A backslash, a quote and a line feed are escaped in a label's value (text format: "Line format")."""
    page = (
        '# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total{model_name="a\\\\b\\"c\\nd} 5"} 7\n'
    )
    assert read_page(page, 'a\\b"c\nd} 5').of_model == {"completion_tokens": 7}


def test_unknown_names_are_listed() -> None:
    """A page of a server that we do not know has no values, and its families are told."""
    found = read_page("# TYPE ollama_requests_total counter\nollama_requests_total 5\n", "m")
    assert (found.server, found.values, found.families) == ("", {}, ("ollama_requests_total",))


def test_a_server_is_known_before_its_first_request() -> None:
    """SGLang's samples come with the first request; the lines of their types are there before."""
    empty = "".join(line + "\n" for line in SGLANG.splitlines() if line.startswith("#"))
    found = read_page(empty, "m")
    assert (found.server, found.values, found.of_model) == ("SGLang", {}, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<html><body>Not Found</body></html>",
        '{"detail": "Not Found"}',
        "vllm:generation_tokens_total{model_name=m} 5\n",
        'vllm:generation_tokens_total{model_name="m"} many\n',
        'vllm:generation_tokens_total{model_name="m" 5\n',
        "vllm:generation_tokens_total{=:.{, =a} NaN\n",
        f'vllm:generation_tokens_total{{model_name="{"m" * 5000}"}} 5\n',
    ],
)
def test_pages_that_cannot_be_read(text: str) -> None:
    """What is no page of metrics, or has a broken sample of a name that we know, is refused."""
    with pytest.raises(ValueError, match=r"."):
        read_page(text, "m")


@given(st.text(alphabet='{}"\\,= \t1-e+._#a:N\n', max_size=30))
def test_no_page_breaks_the_reader(rest: str) -> None:
    """Whatever stands behind a known name is a number or a ValueError, and never a number that is none."""
    try:
        found = read_page(f"vllm:generation_tokens_total{rest}", "m")
    except ValueError:
        return
    assert all(math.isfinite(value) for value in found.values.values())


def sample(time: float, **values: float) -> Sample:
    """A sample in the midst of a run."""
    return Sample(time, Phase.DURING, values)


def test_deltas() -> None:
    """A counter's rise is its last value less its first; what is missing at first counts from 0; gauges have none."""
    found = deltas([sample(1, prompt_tokens=5, running=3), sample(2, prompt_tokens=9, finished=2, running=0)])
    assert found == {"prompt_tokens": 4, "finished": 2}


@pytest.mark.parametrize(
    "course",
    [
        [5, 9, 2],
        [5, 0, 7],
        [100, 200, 100, 200],
    ],
)
def test_a_counter_that_goes_back(course: list[float]) -> None:
    """A counter never goes down but when its server is started anew, or another one answers: no rise is told then."""
    assert deltas([sample(at, prompt_tokens=value) for at, value in enumerate(course)]) is None


@given(st.lists(st.integers(0, 50), min_size=1))
def test_the_rise_is_the_sum_of_the_steps(steps: list[int]) -> None:
    """However often a counter is read in between, its rise is the same."""
    totals = [sum(steps[: at + 1]) for at in range(len(steps))]
    found = deltas([sample(at, finished=total, waiting=at % 2) for at, total in enumerate(totals)])
    assert found == {"finished": sum(steps[1:])}


def test_samples_of_a_file() -> None:
    """Lines of the file come back as they were; where the model is told apart, its own counts stand, from nothing on."""
    first = Sample(1.0, Phase.BEFORE, {"finished": 40.0})
    last = Sample(2.0, Phase.AFTER, {"finished": 47.0}, {"finished": 5.0})
    page: dict[str, Any] = {"page": {"url": "http://h/metrics", "server": "vLLM", "families": []}}
    lines = [page, first.line(), {"time": 1.5, "note": "late"}, last.line()]
    schema = Draft202012Validator({**catalog.schema("bundle"), "$ref": "#/$defs/server_metrics"})
    assert all(schema.is_valid(line) for line in lines)
    assert samples_of([page, first.line()]) == [first]
    assert samples_of(lines) == [Sample(1.0, Phase.BEFORE, {}), Sample(2.0, Phase.AFTER, {"finished": 5.0})]


def test_the_schema_names_every_quantity() -> None:
    """The bundle's schema and the quantities that are written are the same list."""
    names = catalog.schema("bundle")["$defs"]["server_values"]["propertyNames"]["enum"]
    assert names == [quantity.value for quantity in Quantity]
    assert set(names) >= GAUGES
