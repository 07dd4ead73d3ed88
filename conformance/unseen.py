"""Properties of requests of which no black box can tell whether they are honoured, and why."""

__all__ = ["UNSEEN", "unseen"]

UNSEEN: dict[str, str] = {
    "model": "names whom to ask: request.model-missing, request.model-unknown and response.model judge it",
    "user": "names an end user to the vendor's own accounts",
    "store": "what a server keeps, an answer does not tell",
    "metadata": "kept with a stored answer, which an answer does not tell",
    "priority": "shows in the order of requests that wait for each other only, and 0 changes nothing",
    "service_tier": "shows in waiting times under load only, and no answer has to name the class",
    "fail_fast": "shows only while the model has no free capacity",
    "request_id": "no document says that an answer of this operation tells it",
    "prompt_cache_key": "a server may forget at any time what it had cached",
    "prompt_cache_options": "a server may forget at any time what it had cached",
    "cache_salt": "keeps caches of strangers apart: only time tells, and not surely",
    "kv_transfer_params": "for engines that share their work; odd values have stopped engines, so none is sent",
    "vllm_xargs": "for extensions of the vendor's own",
    "mm_processor_kwargs": "for the processing of pictures and sound, which is the model's own affair",
    "media_io_kwargs": "for the reading of pictures and sound, which is the server's own affair",
    "data": "what a model sees in a picture is its own affair",
}
"""
Path of the property (`streamgauge.contract.paths`) → the reason.

A property below one of these has the same reason, unless it has its own or a law.
"""


def unseen(path: str) -> str | None:
    """The reason for a property, or for what it is a part of; None where it can be seen."""
    while path:
        if path in UNSEEN:
            return UNSEEN[path]
        path = path.rpartition(".")[0].removesuffix("[]")
    return None
