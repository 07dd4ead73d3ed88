"""`streamgauge serve`: the reference endpoint in the foreground."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streamgauge.errors import UsageError

if TYPE_CHECKING:
    from streamgauge.reference.settings import Settings

__all__ = ["command"]

_HELP = """
Serve the reference endpoint until Ctrl-C.

It answers the operations of the bundled documents (OpenAI-compatible and Seekr chat and text completions,
DeepInfra text completions) with deterministic words, exactly as the documents demand and in each profile's
dialect, at the pace that you set. Use it to try streamgauge without a model, to test a client of your own,
or to see what a right answer looks like.

The key is read from --api-key-file, else from STREAMGAUGE_API_KEY, else it is the public
"streamgauge-reference-key".

\b
Examples:
  streamgauge serve
      every document on http://127.0.0.1:8000, as fast as possible
  streamgauge serve --ttft-ms 200 --itl-ms 20
      the first token after 200 ms, then 50 tokens per second
  streamgauge serve --slots 8 --prefill-tokens-per-s 4000 --step-ms 20 --step-ms-per-stream 2
      a simulated accelerator: each step takes 20 ms and 2 ms for each answer in progress, and makes one token of
      every one; prompts add to the step that takes them in; the ninth request waits. So its capacity is known:
      a request of P prompt tokens and N tokens costs N * (20 / 8 + 2) ms + P / 4 ms
  streamgauge serve --profile deepinfra --port 0 --model my-model
      one vendor's document, on a free port, with a model name of your own
  streamgauge serve --profile mine.yaml
      the documents that your own profile names, in its dialect
  streamgauge serve --fault sse.no-done@0.3 --fault chunk.role-missing,after=10
      wrong on purpose: three streams in ten lack [DONE], and behind the tenth chat stream no delta names a role

Besides the operations there are a list of models beside them, GET /health and GET /metrics (vLLM's names).
"""


@click.command("serve", help=_HELP)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 picks a free one.",
)
@click.option(
    "--profile",
    "profiles",
    multiple=True,
    metavar="NAME|PATH",
    help="Serve this profile's documents only; repeatable. [default: all bundled ones]",
)
@click.option(
    "--ttft-ms",
    type=click.FloatRange(0, 3_600_000),
    default=0.0,
    show_default=True,
    help="Milliseconds from the request to the first token.",
)
@click.option(
    "--itl-ms",
    type=click.FloatRange(0, 3_600_000),
    default=0.0,
    show_default=True,
    help="Milliseconds from one token to the next.",
)
@click.option(
    "--slots",
    type=click.IntRange(0, 100_000),
    default=0,
    show_default=True,
    help="How many answers are generated at a time, while other requests wait; 0 for no bound.",
)
@click.option(
    "--kv-tokens",
    type=click.IntRange(0, 10**9),
    default=0,
    show_default=True,
    help="How many tokens those may come to (prompts and greatest lengths), while other requests wait; 0 for no bound.",
)
@click.option("--queue", type=click.IntRange(0, 10**6), help="How many may wait; others get 429. [default: no bound]")
@click.option(
    "--prefill-tokens-per-s",
    type=click.FloatRange(0, 1e9),
    default=0.0,
    show_default=True,
    help="Simulated accelerator: prompt tokens taken in per second; 0 if prompts take no time.",
)
@click.option(
    "--step-ms",
    type=click.FloatRange(0, 3_600_000),
    default=0.0,
    show_default=True,
    help="Simulated accelerator: milliseconds of a step, which makes one token of every answer in progress.",
)
@click.option(
    "--step-ms-per-stream",
    type=click.FloatRange(0, 3_600_000),
    default=0.0,
    show_default=True,
    help="Simulated accelerator: milliseconds that each answer in progress adds to a step.",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="How many processes serve side by side. Each draws and counts its faults for itself; they share no slots, queue or "
    "accelerator, so not together with those.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="Name of a model that exists; repeatable. [default: streamgauge-reference]",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[@PROBABILITY][,after=N]",
    help="Do this wrong; repeatable. `streamgauge list faults` shows every name.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the draws that a fault's probability needs.")
@click.option(
    "--api-key-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that holds the key on its first line.",
)
@click.option("--until-stdin-closes", is_flag=True, hidden=True, help="Stop when standard input ends as well.")
def command(
    host: str,
    port: int,
    profiles: tuple[str, ...],
    ttft_ms: float,
    itl_ms: float,
    slots: int,
    kv_tokens: int,
    queue: int | None,
    prefill_tokens_per_s: float,
    step_ms: float,
    step_ms_per_stream: float,
    processes: int,
    models: tuple[str, ...],
    faults: tuple[str, ...],
    seed: int,
    api_key_file: Path | None,
    until_stdin_closes: bool,
) -> None:
    """Run the endpoint in this process."""
    from streamgauge.reference.foreground import run
    from streamgauge.reference.settings import DEFAULT_MODEL, Settings

    settings = Settings(
        key=_key(api_key_file),
        models=models or (DEFAULT_MODEL,),
        profiles=profiles,
        ttft_ms=ttft_ms,
        itl_ms=itl_ms,
        faults=faults,
        seed=seed,
        slots=slots,
        kv_tokens=kv_tokens,
        queue=queue,
        processes=processes,
        prefill_tokens_per_s=prefill_tokens_per_s,
        step_ms=step_ms,
        step_ms_per_stream=step_ms_per_stream,
    )
    _require_one_pace(settings)
    _require_names(settings)
    run(settings, host, port, until_stdin_closes=until_stdin_closes)


def _key(file: Path | None) -> str:
    from streamgauge.reference.settings import DEFAULT_KEY

    if file is None:
        return os.environ.get("STREAMGAUGE_API_KEY") or DEFAULT_KEY
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise UsageError(f"cannot be read: {reason}", where=f"--api-key-file {file}") from None
    if not lines or not lines[0].strip():
        raise UsageError("holds no key on its first line", where=f"--api-key-file {file}")
    return lines[0].strip()


def _require_one_pace(settings: "Settings") -> None:
    if settings.accelerated and (settings.ttft_ms or settings.itl_ms):
        raise UsageError(
            "the pace is either fixed or that of a simulated accelerator",
            where="--ttft-ms, --itl-ms",
            hint="Leave them out, or --prefill-tokens-per-s, --step-ms and --step-ms-per-stream.",
        )
    if settings.processes > 1 and settings.shares:
        raise UsageError(
            "several processes share no slots, cache, queue or accelerator",
            where=f"--processes {settings.processes}",
            hint="Leave out --slots, --kv-tokens, --queue and the accelerator's options, or serve by one process.",
        )


def _require_names(settings: "Settings") -> None:
    from streamgauge.contract.profile import load_profile

    for name in settings.profiles:
        if not load_profile(name).documents:
            hint = "Name bundled documents, or paths, under `documents`."
            raise UsageError("the profile names no documents to serve", where=f"--profile {name}", hint=hint)
    for name in settings.models:
        if not name.isprintable() or not name:
            raise UsageError("a model's name must be printable text", where="--model")
