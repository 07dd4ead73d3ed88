"""
Other people's clients, each in an environment of its own: how to call them, and where they write what they have measured.

`nox -s peers` installs them; a benchmark takes `--peer NAME=FOLDER`, the folder being that of their programs. They get a
tokenizer that knows the 256 bytes, so that none has to be fetched.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinned import Done, FailedError, pinned, quantile

__all__ = ["PEERS", "Figures", "Peer", "peers_of"]

PROMPT_TOKENS = 64

Figures = dict[str, float]
"""What a client reports, in ms: `ttft p50`, `ttft p99`, `gap p50`, `gap p99`; what it does not report is left out."""


@dataclass(frozen=True)
class Run:
    """One run of a peer: whom it asks, how much, and a folder with a `tokenizer` for what it writes."""

    url: str
    streams: int
    requests: int
    tokens: int
    folder: Path


@dataclass(frozen=True)
class Kind:
    """
    A peer.

    Attributes:
        package: what to install.
        title: as tables call it.
        program: the file in its environment.
        about: events per second that it takes, to choose how much to ask.
        arguments: of a run.
        read: the figures that it left.
    """

    package: str
    title: str
    program: str
    about: int
    arguments: Callable[[Run], Sequence[str]]
    read: Callable[[Path], Figures]


def _aiperf(run: Run) -> list[str]:
    return [
        *("profile", "--model", "paced", "--url", run.url, "--endpoint-type", "chat", "--streaming"),
        *("--concurrency", str(run.streams), "--request-count", str(run.requests), "--use-server-token-count"),
        *("--isl", str(PROMPT_TOKENS), "--osl", str(run.tokens), "--tokenizer", str(run.folder / "tokenizer")),
        *("--artifact-dir", str(run.folder), "--ui", "none", "--export-level", "summary"),
    ]


def _read_aiperf(folder: Path) -> Figures:
    told = json.loads(next(folder.rglob("profile_export_aiperf.json")).read_text("utf-8"))
    names = {"ttft": "time_to_first_token", "gap": "inter_chunk_latency"}
    return {f"{short} {p}": told[name][p] for short, name in names.items() if name in told for p in ("p50", "p99")}


def _guidellm(run: Run) -> list[str]:
    data = f"kind=synthetic_text,prompt_tokens={PROMPT_TOKENS},output_tokens={run.tokens}"
    return [
        *("run", "--backend", f"kind=openai_http,target={run.url},model=paced,request_format=/v1/chat/completions"),
        *(
            "--profile",
            f"kind=concurrent,streams={run.streams}",
            "--constraint",
            f"kind=max_requests,count={run.requests}",
        ),
        *("--tokenizer", f"kind=hf_auto,model={run.folder / 'tokenizer'}", "--data", data),
        *("--output", f"kind=json,path={run.folder / 'guidellm.json'}", "--disable-console"),
    ]


def _read_guidellm(folder: Path) -> Figures:
    metrics = json.loads((folder / "guidellm.json").read_text("utf-8"))["benchmarks"][0]["metrics"]
    ttft = metrics["time_to_first_token_ms"]["successful"]["percentiles"]
    return {"ttft p50": ttft["p50"], "ttft p99": ttft["p99"]}  # what it calls ITL is a mean of each request


def _vllm(run: Run) -> list[str]:
    return [
        *("bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--base-url", run.url),
        *("--model", "paced", "--tokenizer", str(run.folder / "tokenizer"), "--dataset-name", "random"),
        *("--random-input-len", str(PROMPT_TOKENS), "--random-output-len", str(run.tokens), "--disable-tqdm"),
        *("--num-prompts", str(run.requests), "--max-concurrency", str(run.streams), "--ready-check-timeout-sec", "0"),
        *("--save-result", "--save-detailed", "--result-dir", str(run.folder), "--result-filename", "vllm.json"),
    ]


def _read_vllm(folder: Path) -> Figures:
    told = json.loads((folder / "vllm.json").read_text("utf-8"))
    return _figures(told["ttfts"], [gap for gaps in told["itls"] for gap in gaps])


_RUST = """
import importlib.util, pathlib, sys
sys.path.append(str(pathlib.Path(importlib.util.find_spec("sglang").origin).parent / "srt" / "rust_extensions"))
import _bench
_bench.run_argv(["sglang-bench", *sys.argv[1:]])
"""
"""SGLang's client in Rust, without SGLang around it, which would want a whole inference stack."""


def _sglang(run: Run) -> list[str]:
    return [
        *("-c", _RUST, "--backend", "sglang-oai-chat", "--base-url", run.url, "--model", "paced"),
        *("--tokenizer", str(run.folder / "tokenizer"), "--dataset-name", "random-ids", "--random-range-ratio", "1"),
        *("--random-input-len", str(PROMPT_TOKENS), "--random-output-len", str(run.tokens), "--disable-tqdm"),
        *("--num-prompts", str(run.requests), "--max-concurrency", str(run.streams), "--warmup-requests", "0"),
        *("--output-details", "--output-file", str(run.folder / "sglang.jsonl")),
    ]


def _read_sglang(folder: Path) -> Figures:
    told = json.loads((folder / "sglang.jsonl").read_text("utf-8").splitlines()[-1])
    return _figures(told["ttfts"], [gap for gaps in told["itls"] for gap in gaps])


def _figures(ttfts: Sequence[float], gaps: Sequence[float]) -> Figures:
    """From seconds."""
    named = {"ttft": ttfts, "gap": gaps}
    return {f"{name} p{p}": quantile(values, p / 100) * 1000 for name, values in named.items() for p in (50, 99)}


PEERS = {
    "aiperf": Kind("aiperf", "AIPerf", "aiperf", 16_000, _aiperf, _read_aiperf),
    "guidellm": Kind("guidellm", "GuideLLM", "guidellm", 13_000, _guidellm, _read_guidellm),
    "vllm": Kind("vllm", "vLLM bench serve", "vllm", 120_000, _vllm, _read_vllm),
    "sglang": Kind("sglang", "SGLang, its client in Rust", "python", 380_000, _sglang, _read_sglang),
}


@dataclass(frozen=True)
class Peer:
    """
    A peer that is installed.

    Attributes:
        kind: which.
        programs: the folder of its environment's programs.
    """

    kind: Kind
    programs: Path

    def run(self, url: str, *, streams: int, requests: int, tokens: int, watch: bool = False) -> tuple[Done, Figures]:
        """
        Let it measure, on the client's core.

        Raises:
            FailedError: it fails, or leaves no figures.
        """
        with tempfile.TemporaryDirectory() as folder:
            run = Run(url, streams, requests, tokens, Path(folder))
            write_tokenizer(run.folder / "tokenizer")
            command = [str(self.programs / self.kind.program), *self.kind.arguments(run)]
            quiet = {"VLLM_NO_USAGE_STATS": "1", "NO_COLOR": "1"}
            done = pinned(command, folder=run.folder, watch=watch, **quiet)
            try:
                return done, self.kind.read(run.folder)
            except (OSError, LookupError, ValueError, StopIteration) as problem:
                raise FailedError(f"{self.kind.title} left no figures: {problem!r}") from None


def peers_of(given: Sequence[str]) -> list[Peer]:
    """The peers of `NAME=FOLDER`; those that do not start are left out, with a word."""
    found = []
    for text in given:
        name, _, folder = text.partition("=")
        if name not in PEERS:
            raise SystemExit(f"no peer is called {name}; there are: {', '.join(PEERS)}")
        peer = Peer(PEERS[name], Path(folder))
        if (peer.programs / peer.kind.program).exists():
            found.append(peer)
        else:
            print(f"{peer.kind.title}: not installed in {folder}, left out")
    return found


def write_tokenizer(folder: Path) -> None:
    """A tokenizer in Hugging Face's form that knows each byte and nothing more."""
    folder.mkdir()
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]  # of GPT-2's table; the others are moved up
    others = [byte for byte in range(256) if byte not in shown]
    vocabulary = {chr(byte): byte for byte in shown} | {chr(256 + at): byte for at, byte in enumerate(others)}
    bytewise = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    told: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [{"id": 256, "content": "<|end|>", **special}],
        "pre_tokenizer": bytewise,
        "decoder": bytewise,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }
    absent = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor"))
    (folder / "tokenizer.json").write_text(json.dumps(told | absent), "utf-8")
    template = "{% for message in messages %}{{ message.content }}{% endfor %}"
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 100_000, "chat_template": template}
    ends = {"eos_token": "<|end|>", "pad_token": "<|end|>", "bos_token": "<|end|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | ends), "utf-8")
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "vocab_size": 257}), "utf-8")
