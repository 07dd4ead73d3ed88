"""
One request before all others, and a plain diagnosis when it fails: reachable, TLS, key, path, model.

Where no model is named, the endpoint's model list is asked first.
"""

import asyncio
import dataclasses
import json
from collections.abc import Sequence

from streamgauge.contract.contract import Operation
from streamgauge.contract.plain import plain_request
from streamgauge.errors import CannotTellError, ConfigError, StreamgaugeError, UnreachableError
from streamgauge.target import Target
from streamgauge.text import one_line
from streamgauge.wire.exchange import Ending, Exchange
from streamgauge.wire.recorder import Limits, Outgoing, Recorder

__all__ = ["preflight"]

_REACH: dict[Ending, str] = {
    Ending.REFUSED: "Nothing listens there: is the server up, and is the port right?",
    Ending.DNS: "The host name is not known: is it spelled right?",
    Ending.PROXY: "The proxy (--proxy-from-env) opened no way there: does it allow it, and is its password right?",
    Ending.TOO_LARGE: "The answer never ends, or its header does not: is this an endpoint of the API?",
    Ending.TIMEOUT_CONNECT: "No connection came about: is a firewall in between?",
    Ending.TIMEOUT_IDLE: "The connection stands, but nothing answers: is the model still loading?",
    Ending.TIMEOUT_TOTAL: "The answer never ended.",
    Ending.MALFORMED_HTTP: "What answers does not speak HTTP/1.1: is the port right?",
}


_TLS: dict[str, str] = {
    "certificate required": "TLS failed: the server wants a client certificate: --client-cert.",
    "alert": "TLS failed: the server turned us away; does it want a client certificate (--client-cert), or another one?",
    "mismatch": "TLS failed: the certificate is for another host: is the base URL spelled as in the certificate?",
    "expired": "TLS failed: the certificate has expired, or is this machine's clock wrong? (knowing the risk: --insecure)",
    "verify failed": "TLS failed: nobody vouches for the certificate; --ca-file says whom to trust (at your risk: --insecure).",
}
"""What OpenSSL says, in lower case → what to do about it."""

_TLS_OTHERWISE = "TLS failed: is https right here?"


def preflight(targets: Sequence[Target], limits: Limits | None = None) -> tuple[list[Target], list[str]]:
    """
    Make sure that every target answers, and find its model where none is named.

    Returns:
        The targets with their models, and what the user should know.

    Raises:
        UnreachableError: a target does not answer.
        ConfigError: key, path or model are wrong.
        CannotTellError: the target answers, but with failures.
    """
    return asyncio.run(_preflight(targets, limits or Limits(concurrency=1)))


async def _preflight(targets: Sequence[Target], limits: Limits) -> tuple[list[Target], list[str]]:
    ready, notes = [], []
    for named in targets:
        notes += [f"{named.name}: {note}" for note in named.contract.notes]
        if named.insecure:
            notes.append(f"{named.name}: TLS certificates are NOT verified (--insecure)")
        if named.proxy is not None:
            notes.append(f"{named.name}: requests go through the PROXY {named.proxy.url} (--proxy-from-env)")
        async with Recorder(named, limits=limits, process="preflight") as recorder:
            target = named
            if not named.model:
                target = dataclasses.replace(named, model=_only(await _models(named, recorder, needed=True), named))
                notes.append(f"{target.name}: no model named; took the only one that is served, {target.model}")
            operation = target.contract.operations[0]
            exchange = await recorder.send(_request(target, operation))
            if exchange.status != 200:
                models = (
                    await _models(target, recorder, needed=False) if exchange.status in (400, 403, 404, 422) else []
                )
                _diagnose(target, operation, exchange, models)
        ready.append(target)
    return ready, notes


def _request(target: Target, operation: Operation) -> Outgoing:
    body = plain_request(operation, target.model, max_tokens=1)
    return Outgoing(
        target.url(operation),
        json.dumps(body).encode(),
        target.credential,
        operation=operation.name,
        probe="preflight",
    )


async def _models(target: Target, recorder: Recorder, *, needed: bool) -> list[str]:
    for url in target.models_urls:
        exchange = await recorder.send(Outgoing(url, b"", target.credential, method="GET", probe="models"))
        if needed:
            _require_reachable(target, url, exchange)
        if needed and exchange.status == 401:
            raise ConfigError(_said(exchange), where=url, hint=_key_hint(target))
        listed = exchange.json.value if exchange.status == 200 else None
        data = listed.get("data") if isinstance(listed, dict) else None
        if isinstance(data, list):
            return [item["id"] for item in data if isinstance(item, dict) and isinstance(item.get("id"), str)]
    return []


def _only(models: list[str], target: Target) -> str:
    if len(models) == 1:
        return models[0]
    listed = f"It serves: {_listed(models)}." if models else f"It lists none at {' or '.join(target.models_urls)}."
    raise ConfigError(f"no model named for {target.name}", hint=f"{listed} Name one: --model NAME.")


def _listed(models: list[str]) -> str:
    shown = ", ".join(one_line(model, 80) for model in models[:20])
    return shown + (f" and {len(models) - 20} more" if len(models) > 20 else "")


def _said(exchange: Exchange) -> str:
    body = one_line(exchange.response.body[:2000].decode("utf-8", "replace"), 300)
    status = f"{exchange.status} {one_line(exchange.response.reason, 80)}".strip()
    return f"{status}: {body}" if body else status


def _key_hint(target: Target) -> str:
    key = (
        "The key was refused: is it the right one (STREAMGAUGE_API_KEY or --api-key-file)?"
        if target.key
        else "A key is needed: set STREAMGAUGE_API_KEY or give --api-key-file."
    )
    auth = target.contract.profile.auth
    form = auth.header if auth.scheme == "raw" else f"{auth.header}: {auth.scheme}"
    return f"{key} The profile {target.contract.profile.name} sends it as {form}."


def _reach_hint(target: Target, exchange: Exchange) -> str:
    """Why the target may not have answered, by how the exchange ended."""
    if target.proxy is not None and exchange.ending in (Ending.REFUSED, Ending.DNS, Ending.TIMEOUT_CONNECT):
        return f"The proxy {target.proxy.url} (--proxy-from-env) does not answer: is it up, and its address right?"
    if exchange.ending is Ending.TLS:
        hint = next((hint for word, hint in _TLS.items() if word in exchange.detail.lower()), _TLS_OTHERWISE)
    else:
        hint = _REACH.get(exchange.ending, "The connection was closed without an answer: is a proxy in between?")
    if exchange.ending in (Ending.CLOSED, Ending.RESET) and exchange.request.url.startswith("https:"):
        hint += " Or does it want a client certificate (--client-cert)?" if target.client_cert is None else ""
    elif exchange.ending in (Ending.CLOSED, Ending.RESET, Ending.MALFORMED_HTTP):
        hint += " Or does it speak TLS (https:// in place of http://)?"
    if target.proxy is not None and exchange.ending is not Ending.PROXY:
        hint += f" Requests go through the proxy {target.proxy.url}."
    return hint


def _require_reachable(target: Target, url: str, exchange: Exchange) -> None:
    if exchange.status == 0:
        hint = _reach_hint(target, exchange)
        raise UnreachableError(f"no answer ({exchange.ending}: {one_line(exchange.detail, 200)})", where=url, hint=hint)


def _diagnose(target: Target, operation: Operation, exchange: Exchange, models: list[str]) -> None:
    """
    Raise what the user has to know.

    A status that is not 200 is no fault of the server by itself: it is the checks' business to say so. But without one good
    answer there is nothing to judge.
    """
    url = target.url(operation)
    _require_reachable(target, url, exchange)
    status, what = exchange.status, _said(exchange)
    served = f" The endpoint serves: {_listed(models)}." if models else ""
    if status in (401, 403) and not (status == 403 and models):
        raise ConfigError(what, where=url, hint=_key_hint(target))
    if models and target.model not in models and status in (400, 403, 404, 422):
        raise ConfigError(what, where=url, hint=f"The model {target.model} is not served there.{served}")
    if 300 <= status < 400:
        there = one_line(exchange.response.header("location") or "nowhere", 200)
        raise ConfigError(what, where=url, hint=f"It redirects to {there}; give the base URL that answers itself.")
    if status in (404, 405):
        raise ConfigError(what, where=url, hint=f"The path may be wrong: --path sets it.{served}")
    if exchange.rate_limited:
        raise CannotTellError(
            what,
            where=url,
            hint="The endpoint limits the rate; its Retry-After was waited for. Try again later.",
        )
    error: type[StreamgaugeError] = CannotTellError if status >= 500 else ConfigError
    hint = "The server fails on the plainest request." if status >= 500 else f"The plainest request is refused.{served}"
    raise error(what, where=url, hint=hint)
