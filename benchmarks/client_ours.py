"""What a load run does, without Locust around it: requests made by the workload, sent, judged, and recorded in a file."""

import dataclasses
import tempfile
import time
from pathlib import Path

import gevent
from pinned import Seen, Work, work

from streamgauge.contract.contract import load_contracts
from streamgauge.load.client import Sent, StreamClient
from streamgauge.load.lengths import Lengths
from streamgauge.load.mix import Part
from streamgauge.load.recording import RecordFile
from streamgauge.load.workload import Workload
from streamgauge.metrics.record import Judged, Outcome
from streamgauge.target import Target

JUDGED_ALL = {"ends": 0, "10%": 10, "all": 1}
"""Of so many answers one is judged event by event; of none for 0."""


def run(asked: Work, folder: Path) -> Seen:
    """Do it."""
    contract = load_contracts(["openai-chat"])[0]
    operation = contract.operations[0]
    target = Target("paced", asked.url, contract, model="paced", key=None)
    workload = Workload(
        target,
        [Part(operation, stream=True)],
        prompt_tokens=Lengths.constant(64),
        max_tokens=Lengths.constant(asked.tokens),
        seed=0,
    )
    records = RecordFile(folder, "0", target.redactor)
    client = StreamClient(asked.url, {"content-type": "application/json"})
    every = JUDGED_ALL[asked.how]
    seen = Seen()

    def on_record(sent: Sent) -> None:
        record = sent.record
        records.write(record)
        seen.events += len(record.token_times)
        seen.failed += record.outcome is not Outcome.OK
        if asked.pace is not None:
            seen.requests[record.id] = [record.dispatched, *record.token_times]
            seen.lag_us.append(record.first_lag_us)

    def user(number: int) -> None:
        gevent.sleep(number * asked.spread_ms / asked.streams / 1000)
        count = 0
        while (not asked.rounds or count < asked.rounds) and (not asked.seconds or time.monotonic() < until):
            request = workload.request(f"{number}-{count}")
            if asked.pace is not None:
                request = dataclasses.replace(request, body=asked.body(request.id, request.body))
            judged = Judged.ALL if every and (number + count) % every == 0 else Judged.ENDS
            client.send(request, judged=judged, on_record=on_record)
            count += 1

    client.open(asked.streams)
    until = time.monotonic() + asked.seconds
    before = time.process_time()
    gevent.joinall([gevent.spawn(user, number) for number in range(asked.streams)], raise_error=True)
    seen.cpu_s = time.process_time() - before
    return seen


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        run(work(), Path(scratch)).tell()
