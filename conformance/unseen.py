"""Properties of requests of which no black box can tell whether they are honoured, and why."""

__all__ = ["UNSEEN", "unseen"]

UNSEEN: dict[str, str] = {
    "model": "names whom to ask: request.model-missing, request.model-unknown and response.model judge it",
    "messages": "the conversation itself: what is in it has laws of its own",
    "messages[].role": "how a template words a role is the model's own affair; request.invalid judges unknown ones",
    "messages[].refusal": "what an assistant had refused is for the model to read, and few templates show it",
    "messages[].tool_calls": "what is in it has laws of its own",
    "messages[].tool_calls[].id": "ties a result to its call, and many templates leave it out",
    "messages[].tool_call_id": "ties a result to its call, and many templates leave it out",
    "messages[].content[].image_url": "what a model sees in a picture is its own affair",
    "messages[].content[].input_audio": "what a model hears is its own affair",
    "messages[].content[].video_url": "what a model sees in a film is its own affair",
    "messages[].content[].file": "what a model reads in a file is its own affair",
    "documents": "whether a model's template makes use of documents is not told",
    "user": "names an end user to the vendor's own accounts",
    "store": "what a server keeps, an answer does not tell",
    "metadata": "kept with a stored answer, which an answer does not tell",
    "priority": "shows in the order of requests that wait for each other only, and 0 changes nothing",
    "service_tier": "shows in waiting times under load only, and no answer has to name the class",
    "fail_fast": "shows only while the model has no free capacity",
    "request_id": "the document does not say that an answer of this operation tells it",
    "echo": "the document does not say what of a conversation an answer repeats",
    "prompt_cache_key": "a server may forget at any time what it had cached",
    "prompt_cache_options": "a server may forget at any time what it had cached",
    "add_special_tokens": "a vocabulary without special tokens reads a prompt the same either way",
    "cache_salt": "keeps caches of strangers apart: only time tells, and not surely",
    "kv_transfer_params": "for engines that share their work; odd values have stopped engines, so none is sent",
    "vllm_xargs": "for extensions of the vendor's own",
    "mm_processor_kwargs": "for the processing of pictures and sound, which is the model's own affair",
    "media_io_kwargs": "for the reading of pictures and sound, which is the server's own affair",
    "best_of": "the choices that were made and left out are not shown, and no document says that usage counts them",
    "length_penalty": "only ranks what a beam search found, and what it left out is not shown",
    "spaces_between_special_tokens": "most tokenizers have no space there in the first place",
    "data": "what a model sees in a picture is its own affair",
    "response_format.json_schema.name": "labels the schema, if anywhere, where only the model reads it",
    "response_format.json_schema.description": "for the model to read, which may make of it what it will",
    "tools[].function.description": "for the model to read, which may make of it what it will",
    "tools[].function.defer_loading": "decides when the model gets to see the tool, and no answer tells",
    "tools[].defer_loading": "decides when the model gets to see the tool, and no answer tells",
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
