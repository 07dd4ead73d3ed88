"""The pseudo-model: what it answers, token by token, is a function of the request and, where it samples, of chance."""

import dataclasses
import hashlib
from dataclasses import dataclass

from streamgauge.reference.decoding import Taker
from streamgauge.reference.odds import Flow, Odds, expected
from streamgauge.reference.parameters import Parameters
from streamgauge.reference.stops import first_stop, repeats
from streamgauge.reference.tokens import END, SPECIAL, encode, text_of
from streamgauge.reference.tools import Call

__all__ = ["Choice", "Piece", "generate"]


@dataclass(frozen=True, slots=True)
class Piece:
    """
    What one token adds to the visible text.

    Attributes:
        step: position of the token among the generated ones, from 0: it decides when the piece is due.
        token: id of the token.
        text: the token's text, shorter where a stop string begins inside of it.
        odds: of the tokens at its place.
        call: which of the choice's calls it belongs to, where the choice calls tools.
    """

    step: int
    token: int
    text: str
    odds: Odds
    call: int = 0


@dataclass(frozen=True, slots=True)
class Choice:
    """
    One answer.

    Attributes:
        index: its position in the reply.
        prompt: index of the prompt that it continues.
        reasoning: what it thinks first; no stop string ends that.
        pieces: the visible text, or the arguments of the calls.
        tokens: every token generated, the reasoning and those that a stop took away again included.
        stop_reason: the stop string or token that ended it, if one did.
        calls: the tool calls that it makes in the place of text, if it makes any.
        score: mean log-probability of its tokens.
    """

    index: int
    prompt: int
    reasoning: tuple[Piece, ...]
    pieces: tuple[Piece, ...]
    tokens: tuple[int, ...]
    finish_reason: str
    stop_reason: str | int | None
    calls: tuple[Call, ...] = ()
    score: float = 0.0

    @property
    def generated(self) -> int:
        """Number of tokens generated."""
        return len(self.tokens)

    @property
    def text(self) -> str:
        """What is generated behind the reasoning, without what `echo` puts before it."""
        return "".join(piece.text for piece in self.pieces)

    def arguments(self, call: int) -> str:
        """Of one of its calls as far as they were made."""
        return "".join(piece.text for piece in self.pieces if piece.call == call)


def generate(parameters: Parameters, unique: str) -> tuple[list[Choice], int]:
    """
    Every choice of a request: `n` for each prompt, in the prompts' order.

    Args:
        parameters: the request.
        unique: what chance is drawn from where the request gives no seed.

    Returns:
        The choices, and how many tokens were generated for others that are not shown (`best_of`).
    """
    shown, unshown = [], 0
    for prompt in range(len(parameters.prompts)):
        speaker = _Speaker(parameters, prompt, unique)
        if parameters.decoding.greedy and not parameters.decoding.beams:
            made = [speaker.choice(0)] * parameters.best_of
        else:
            made = [speaker.choice(position) for position in range(parameters.best_of)]
        if parameters.best_of > parameters.n:
            made.sort(key=lambda choice: -choice.score)
        unshown += sum(choice.generated for choice in made[parameters.n :])
        shown += made[: parameters.n]
    return [dataclasses.replace(choice, index=index) for index, choice in enumerate(shown)], unshown


@dataclass(frozen=True, slots=True)
class _Said:
    """Tokens with their odds, and why there are no more."""

    tokens: list[int]
    odds: list[Odds]
    finish_reason: str
    stop: int | None = None


class _Speaker:
    """Makes the choices for one prompt."""

    def __init__(self, parameters: Parameters, prompt: int, unique: str) -> None:
        self._parameters = parameters
        self._index = prompt
        self._prompt = parameters.prompts[prompt]
        self._length = parameters.lengths[prompt]
        self._unique = unique
        self._seed = _number(parameters.model, self._prompt.text, self._prompt.suffix)

    def choice(self, position: int) -> Choice:
        """One of the choices; where nothing is sampled they are all alike."""
        parameters = self._parameters
        draws = _Draws(_number(str(self._seed), str(position), parameters.seed or self._unique))
        thought = min(parameters.reasoning, self._length)
        scripted = bool(parameters.calls or parameters.script)
        said = self._free(draws, position, thought if scripted else self._length)
        pieces = self._pieces(said)
        if parameters.calls:
            return self._calling(pieces, said)
        if parameters.script:
            greedy = parameters.decoding.greedy and not parameters.decoding.beams
            script = parameters.script(str(self._seed if greedy else draws.whole()))
            said = self._scripted(said, script)
            pieces = self._pieces(said)
        return self._stopped(pieces[:thought], pieces[thought:], said)

    def _free(self, draws: "_Draws", position: int, length: int) -> _Said:
        """Words that follow no rule but the odds, up to `length`."""
        parameters, decoding = self._parameters, self._parameters.decoding
        flow = Flow(self._seed)
        taker = Taker(decoding, lambda: self._prompt.ids, draws.next, position)
        cycle = self._prompt.repeated
        natural = parameters.natural[self._index]
        tokens: list[int] = []
        kept: list[Odds] = []
        for step in range(length):
            odds = flow.next(ends=step >= natural, again=cycle[step % len(cycle)] if cycle else None)
            token = taker.take(odds)
            tokens.append(token)
            kept.append(odds)
            if token == END and not decoding.endless:
                return _Said(tokens, kept, "stop")
            if token in parameters.stop_ids and step >= parameters.min_tokens:
                return _Said(tokens, kept, "stop", token)
            if parameters.repetition and repeats(tokens, *parameters.repetition):
                return _Said(tokens, kept, "stop")
        return _Said(tokens, kept, "length")

    def _scripted(self, said: _Said, script: str) -> _Said:
        """A text that is laid down, behind what was thought; white space fills up JSON to a least number of tokens."""
        script_tokens = self._filled(len(said.tokens), encode(script), script[:1] in ("{", "["))
        tokens = [*said.tokens, *script_tokens][: self._length]
        complete = len(tokens) == len(said.tokens) + len(script_tokens)
        odds = [*said.odds, *map(expected, tokens[len(said.tokens) :])]
        return _Said(tokens, odds, "stop" if complete else "length")

    def _filled(self, before: int, tokens: tuple[int, ...], fill: bool) -> tuple[int, ...]:
        missing = self._parameters.min_tokens - before - len(tokens) if fill else 0
        return tokens + encode(" ") * missing

    def _pieces(self, said: _Said) -> list[Piece]:
        """The tokens' texts; what ended the text has none unless that is wanted."""
        parameters = self._parameters
        pieces = [
            Piece(step, token, text_of(token), odds)
            for step, (token, odds) in enumerate(zip(said.tokens, said.odds, strict=True))
        ]
        if pieces and not parameters.skip_special:
            pieces = [
                dataclasses.replace(piece, text=SPECIAL[piece.token]) if piece.token in SPECIAL else piece
                for piece in pieces
            ]
        hidden = said.stop is not None and not parameters.include_stop
        ended = said.finish_reason == "stop" and said.tokens and said.tokens[-1] == END and parameters.skip_special
        return pieces[:-1] if hidden or ended else pieces

    def _stopped(self, reasoning: list[Piece], pieces: list[Piece], said: _Said) -> Choice:
        """The choice, cut at the first stop string."""
        parameters = self._parameters
        found = None
        if parameters.stops:
            waits = parameters.min_tokens - len(reasoning)
            found = first_stop([piece.text for piece in pieces], parameters.stops, waits)
        if found is None:
            return self._made(reasoning, pieces, said.tokens, said.finish_reason, said.stop, said.odds)
        count = len(reasoning) + found.count
        length = found.at + len(found.stop) if parameters.include_stop else found.at
        return self._made(reasoning, _cut(pieces, length), said.tokens[:count], "stop", found.stop, said.odds)

    def _calling(self, reasoning: list[Piece], said: _Said) -> Choice:
        """A choice that calls tools; stop strings are about text."""
        calls = self._parameters.calls
        pieces = list(reasoning)
        tokens, odds, room = list(said.tokens), list(said.odds), self._length
        complete = True
        for number, call in enumerate(calls):
            arguments = encode(call.arguments)
            if number == len(calls) - 1:
                arguments = self._filled(len(tokens), arguments, True)
            cut = arguments[: room - len(tokens)]
            complete = complete and len(cut) == len(arguments)
            for token in cut:
                odds.append(expected(token))
                pieces.append(Piece(len(tokens), token, text_of(token), odds[-1], number))
                tokens.append(token)
        made = pieces[len(reasoning) :]
        begun = max((piece.call for piece in made), default=-1) + 1
        finish = calls[0].finish_reason if complete else "length"
        return self._made(reasoning, made, tokens, finish, None, odds, calls[:begun])

    def _made(
        self,
        reasoning: list[Piece],
        pieces: list[Piece],
        tokens: list[int],
        finish_reason: str,
        stop_reason: str | int | None,
        odds: list[Odds],
        calls: tuple[Call, ...] = (),
    ) -> Choice:
        score = 0.0
        if self._parameters.best_of > self._parameters.n and tokens:
            score = sum(each.of(token) for each, token in zip(odds, tokens, strict=False)) / len(tokens)
        return Choice(
            0, self._index, tuple(reasoning), tuple(pieces), tuple(tokens), finish_reason, stop_reason, calls, score
        )


class _Draws:
    """Chance that a seed fixes."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def next(self) -> float:
        """A number from 0 to 1, 1 excluded."""
        return (self.whole() >> 11) / 2**53

    def whole(self) -> int:
        """A number of 64 bits."""
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        # The low bits of such a number repeat soon.
        return self._state ^ (self._state >> 33)


def _number(*seed: str) -> int:
    digest = hashlib.blake2b("\0".join(seed).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _cut(pieces: list[Piece], length: int) -> list[Piece]:
    """The pieces of the first `length` characters."""
    kept = []
    for piece in pieces:
        text = piece.text[:length]
        if not text:
            break
        kept.append(dataclasses.replace(piece, text=text))
        length -= len(text)
    return kept
