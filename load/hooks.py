"""
Our load as listeners of Locust's events, in each of its processes.

Importing this module imports Locust, which patches the socket module: only Locust's own processes do.
"""

import functools
import gc
import json
import os
import signal
import sys
import weakref
from collections.abc import Callable
from typing import Any

import gevent
from locust import argument_parser, events

from streamgauge.errors import StreamgaugeError
from streamgauge.load.arguments import add_arguments
from streamgauge.load.command import PARENT_VARIABLE
from streamgauge.load.distribution import BEGIN, END, NEWS, SHARE, WorkerCrew
from streamgauge.load.member import Member
from streamgauge.load.plan import DRAIN_S
from streamgauge.load.sender import Sender
from streamgauge.outcomes import ExitCode
from streamgauge.text import one_line

__all__ = ["sender_of"]

_LONGEST_LINE = 1000
_PAGE = "/streamgauge"

_members: "weakref.WeakKeyDictionary[Any, Member]" = weakref.WeakKeyDictionary()


def sender_of(environment: Any) -> Sender | None:
    """What sends in this process; None where it has no share of the run."""
    return _members[environment].sender


def _add_arguments(parser: Any) -> None:
    add_arguments(parser)
    parser.set_defaults(stop_timeout=float(DRAIN_S))


def _on_init(environment: Any, web_ui: Any, **_: Any) -> None:
    if PARENT_VARIABLE in os.environ:
        gevent.spawn(_end_with_parent, os.getppid())
    # Python would raise it in whichever greenlet runs: a user's, whose request it then cuts off.
    gevent.signal_handler(signal.SIGINT, _interrupt)
    member = _members[environment] = Member(environment)
    if not member.sends:
        member.runner.register_message(NEWS, _on_news)
    elif not member.steers:
        # Locust asks for it, 0.2 s of argparse, whenever users are spawned: in the middle of the run.
        argument_parser.default_args_dict = functools.cache(argument_parser.default_args_dict)
        argument_parser.default_args_dict()
        member.runner.register_message(SHARE, _on_share)
        member.runner.register_message(BEGIN, _on_begin)
        member.runner.register_message(END, _on_end)
    if web_ui is not None:
        _add_page(web_ui, member)
    environment.events.quitting.add_listener(lambda environment, **_: member.quit())
    try:
        member.make_ready()  # a worker may yet get other options from its master
    except StreamgaugeError as problem:
        if member.steers and member.options.headless:
            sys.stderr.write(f"streamgauge: {one_line(str(problem), _LONGEST_LINE)}\n")
            sys.exit(ExitCode.USAGE)


def _add_page(web_ui: Any, member: Member) -> None:
    def page() -> tuple[str, int, dict[str, str]]:
        return json.dumps(member.counts.summary()), 200, {"content-type": "application/json"}

    web_ui.app.add_url_rule(_PAGE, view_func=web_ui.auth_required_if_enabled(page))


def _on_test_start(environment: Any, **_: Any) -> None:
    member = _members[environment]
    try:
        member.start()
    except (StreamgaugeError, OSError) as problem:
        said = one_line(str(problem), _LONGEST_LINE)
        sys.stderr.write(f"streamgauge: {said}\n")
        if member.steers:
            environment.process_exit_code = ExitCode.USAGE
            gevent.spawn(member.end_run)
        else:
            member.tell_master(said)


def _on_test_stopping(environment: Any, **_: Any) -> None:
    _members[environment].end()


def _on_test_stop(environment: Any, **_: Any) -> None:
    _members[environment].close()


def _on_quit(**_: Any) -> None:
    # The interpreter would go through all of Locust once more before it ends, and take longer than a short run.
    gc.freeze()


def _on_share(environment: Any, msg: Any) -> None:
    _members[environment].share(msg.data)


def _on_begin(environment: Any, msg: Any) -> None:
    if (sender := sender_of(environment)) is not None:
        sender.begin(msg.data["epoch"])


def _on_end(environment: Any, msg: Any) -> None:
    if (sender := sender_of(environment)) is not None:
        sender.stop()
        if msg.data["now"]:
            gevent.spawn(sender.cut_off)


def _on_news(environment: Any, msg: Any) -> None:
    conductor = _members[environment].conductor
    if conductor is not None and isinstance(conductor.crew, WorkerCrew):
        conductor.crew.news(msg.node_id, msg.data)


def _on_report_to_master(client_id: str, data: dict[str, Any]) -> None:
    for member in _members.values():
        data["streamgauge"] = member.counts.line()


def _on_worker_report(client_id: str, data: dict[str, Any]) -> None:
    for member in _members.values():
        crew = member.conductor.crew if member.conductor else None
        if isinstance(crew, WorkerCrew) and "streamgauge" in data:
            crew.report(client_id, data["streamgauge"])


def _interrupt() -> None:
    gevent.get_hub().handle_system_error(KeyboardInterrupt, KeyboardInterrupt())


def _end_with_parent(parent: int) -> None:
    """End this process when its parent is gone: nobody else would."""
    while os.getppid() == parent:
        gevent.sleep(0.5)
    os.kill(os.getpid(), signal.SIGKILL)


_LISTENERS: dict[str, Callable[..., None]] = {
    "init_command_line_parser": _add_arguments,
    "init": _on_init,
    "test_start": _on_test_start,
    "test_stopping": _on_test_stopping,
    "test_stop": _on_test_stop,
    "quit": _on_quit,
    "report_to_master": _on_report_to_master,
    "worker_report": _on_worker_report,
}

for _hook, _listener in _LISTENERS.items():
    getattr(events, _hook).add_listener(_listener)
