"""What is asked: request bodies, each reproducible from a seed and the request's id."""

import random
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import orjson

from streamgauge.contract.contract import CHAT, Operation
from streamgauge.contract.plain import prompt_member
from streamgauge.contract.profile import Profile
from streamgauge.errors import UsageError
from streamgauge.load.dataset import Prompt, position
from streamgauge.load.lengths import Lengths
from streamgauge.load.mix import Part
from streamgauge.load.request import LoadRequest
from streamgauge.target import Target

__all__ = ["Workload"]

_TEXT = (
    "river stone garden winter music paper window silver market bridge summer letter forest engine candle ocean "
    "valley ticket hammer orange doctor harbor basket mirror planet ribbon saddle temple umbrella village wagon "
    "yellow anchor butter copper dragon eagle farmer guitar hunter island jacket kitchen ladder meadow needle "
    "oyster pencil quarter rabbit"
)
_WORDS = _TEXT.split()
"""Common words: about one token each in most vocabularies."""

_POOL = 1 << 14
"""So many words are drawn once; a prompt is a piece of them, from anywhere: drawing each word takes half of a request's time."""

_INSTRUCTION = ("Tell", "a", "long", "story", "in", "which", "all", "of", "these", "words", "occur.")


class _Form:
    """What the requests of one part of the mix have in common."""

    def __init__(self, part: Part, target: Target) -> None:
        self.operation = part.operation
        self.stream = part.stream
        self.url = target.url(part.operation)
        self.full = _full_length(part.operation, target.contract.profile)
        self.members: dict[str, Any] = {"stream": True} if part.stream else {}
        if part.stream and _knows(part.operation, "stream_options"):
            self.members["stream_options"] = {"include_usage": True}


def _knows(operation: Operation, name: str) -> bool:
    """Whether the document knows the property, or names none at all: a server may refuse others."""
    return name in operation.properties or not operation.properties


def _full_length(operation: Operation, profile: Profile) -> str:
    """The property that makes answers as long as their limit: known to the document, and not unsupported; else empty."""
    known = [name for name in ("ignore_eos", "min_tokens") if _knows(operation, name)]
    return next((name for name in known if not profile.unsupported([name])), "")


class Workload:
    """
    Builds the requests of a run.

    Every prompt begins with a number of its own, so that no prefix cache can answer for the model; on purpose, the same
    words come before it (`shared_prefix`). Made prompts go on with words drawn at random, those of a dataset as they
    are. Where the document knows `ignore_eos` (or else `min_tokens`) and the profile does not call it unsupported, it is
    set: answers are as long as their limit then, and runs can be compared. Temperature is left to the server, as most
    clients leave it.

    Args:
        target: whom to ask.
        mix: what for; drawn by weight.
        prompt_tokens: words in a made prompt, each about one token; the number in front takes some more.
        max_tokens: limit of each answer, unless its line of the dataset has one.
        seed: the same seed, id and index give the same body.
        shared_prefix: words in front of every prompt, the same for all.
        prompts: in place of made ones; none for made ones.

    Raises:
        UsageError: a prompt has messages, and an operation of the mix takes none.
    """

    def __init__(
        self,
        target: Target,
        mix: Sequence[Part],
        *,
        prompt_tokens: Lengths,
        max_tokens: Lengths,
        seed: int,
        shared_prefix: int = 0,
        prompts: Sequence[Prompt] = (),
    ) -> None:
        self._target = target
        self._prompt_tokens = prompt_tokens
        self._max_tokens = max_tokens
        self._seed = seed
        self._prompts = prompts
        self._forms = [_Form(part, target) for part in mix]
        self._weights = list(accumulate(part.weight for part in mix))
        self._source = random.Random()  # noqa: S311 - reproducible words, no secret
        self._source.seed(f"{seed}/prefix")
        self._prefix = "".join(f"{word} " for word in self._source.choices(_WORDS, k=shared_prefix))
        self._words = self._source.choices(_WORDS, k=_POOL)
        for prompt in prompts:
            if prompt.messages and not all(part.operation.family == CHAT for part in mix):
                raise UsageError(
                    f"line {prompt.line} of the prompts has messages, and not every operation of the mix is a chat",
                    hint='Give {"prompt": "..."} without "system", or leave the other operations out.',
                )

    def request(self, id: str, index: int | None = None) -> LoadRequest:
        """
        The request of this id.

        Args:
            id: unique in the run.
            index: number of the request in the whole run, from 0: prompts of a dataset are taken without repetition by
                it. Without it they are drawn at random, with repetition.
        """
        source = self._source
        source.seed(f"{self._seed}/{id}")
        forms = self._forms
        form = forms[0] if len(forms) == 1 else source.choices(forms, cum_weights=self._weights)[0]
        head = f"{self._prefix}{source.getrandbits(48):012x}"
        limit = self._max_tokens.draw(source)
        if self._prompts:
            count = len(self._prompts)
            prompt = self._prompts[source.randrange(count) if index is None else position(count, index, self._seed)]
            limit = prompt.max_tokens or limit
            asked = _given(form.operation, prompt, head)
        else:
            asked = prompt_member(form.operation, self._made(head))
        body: dict[str, Any] = {"model": self._target.model, **asked, "max_tokens": limit, **form.members}
        if form.full:
            body[form.full] = True if form.full == "ignore_eos" else limit
        return LoadRequest(id, self._target.name, form.operation, form.url, orjson.dumps(body), form.stream, limit)

    def _made(self, head: str) -> str:
        room = self._prompt_tokens.draw(self._source) - 1
        instruction = _INSTRUCTION if room >= 2 * len(_INSTRUCTION) else ()
        count = max(room - len(instruction), 0)
        start = self._source.randrange(len(self._words) - min(count, _POOL // 2))
        words = self._words[start : start + count]
        words += self._source.choices(_WORDS, k=count - len(words))  # of very long prompts
        return " ".join((head, *words, *instruction))


def _given(operation: Operation, prompt: Prompt, head: str) -> dict[str, Any]:
    """A prompt of the dataset with `head` at its very beginning."""
    if not prompt.messages:
        return prompt_member(operation, f"{head} {prompt.text}")
    first, *others = prompt.messages
    content = first["content"]
    headed = f"{head} {content}" if isinstance(content, str) else [{"type": "text", "text": head}, *content]
    return {"messages": [{**first, "content": headed}, *others]}
