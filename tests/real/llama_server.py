"""Run llama.cpp's own HTTP server, from the xllamacpp wheel, until told to stop: `llama_server.py MODEL PORT [KEY]`."""

import os
import signal
import sys
from types import FrameType

import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.port = int(sys.argv[2])
parameters.hostnames = ["127.0.0.1"]
parameters.model_alias = ["tiny"]
parameters.n_ctx = 8192
parameters.n_parallel = 4
parameters.use_jinja = True
parameters.endpoint_metrics = True
parameters.api_keys = sys.argv[3:]
server = xllamacpp.Server(parameters)


def stop(number: int, frame: FrameType | None) -> None:
    """End at once: the server's threads know no other way."""
    os._exit(0)


for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, stop)
while True:
    signal.pause()
