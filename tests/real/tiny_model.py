"""
Make a tiny Llama model of random weights as a GGUF file: `tiny_model.py FILE` (needs numpy and gguf).

The weights are random but fixed by a seed, about 0.4 million of them. One hidden dimension keeps the same value through
all layers, so the output layer can bias single tokens: what is not printable ASCII never comes up, and the end-of-turn
token comes up now and then. So replies are valid UTF-8 and end by themselves after some 30 tokens.
"""

import itertools
import math
import re
import sys
from collections import Counter

import gguf
import numpy as np

HIDDEN, HEADS, INTERMEDIATE, LAYERS, CONTEXT = 128, 2, 256, 2, 2048
MERGES = 300
TOKENS_PER_REPLY = 60
SPECIALS = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<pad>"]
BOS, END_OF_TURN = 1, 4
ANCHOR = 6.0  # value of the hidden dimension that never changes
NEVER = -40.0

CORPUS = (
    "A stream of tokens flows from the server to the client, one event after the other, until it is done. The gauge shows "
    "how fast the water runs: first the delay before the first drop, then the time between two drops. When the model stops, "
    "it says why: stop, or length. What is the capital of France? The capital of France is Paris. Count from one to five: "
    'one, two, three, four, five. {"name": "value", "city": "Paris", "items": [1, 2, 3]} A contract is a promise that somebody '
    "can check; a check is a question with one right answer."
)

TEMPLATE = (
    "{%- for m in messages %}{{- '<|im_start|>' + m.role + '\\n' }}"
    "{%- if m.content is string %}{{- m.content }}{%- elif m.content %}"
    "{%- for p in m.content %}{{- p.text }}{%- endfor %}{%- endif %}{{- '<|im_end|>\\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"
)


def byte_letters() -> dict[int, str]:
    """GPT-2's alphabet: a printable character for each byte."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    odd = (chr(256 + number) for number in range(256))
    return {byte: chr(byte) if byte in printable else next(odd) for byte in range(256)}


def learn() -> tuple[list[str], list[tuple[str, str]]]:
    """Vocabulary and merges of a byte-level BPE, learnt from the corpus."""
    letters = byte_letters()
    words = Counter(
        tuple(letters[byte] for byte in word.encode())
        for word in re.findall(r" ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+", CORPUS)
    )
    merges: list[tuple[str, str]] = []
    for _ in range(MERGES):
        pairs: Counter[tuple[str, str]] = Counter()
        for word, count in words.items():
            for pair in itertools.pairwise(word):
                pairs[pair] += count
        best = min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)
        if best is None or pairs[best] < 2:
            break
        merges.append(best)
        joined: Counter[tuple[str, ...]] = Counter()
        for word, count in words.items():
            joined[merge(word, best)] += count
        words = joined
    vocabulary = [*SPECIALS, *letters.values(), *(left + right for left, right in merges)]
    vocabulary += [f"<|extra_{number}|>" for number in range(-len(vocabulary) % 64)]
    return vocabulary, merges


def merge(word: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    """The word with every occurrence of the pair joined."""
    joined: list[str] = []
    position = 0
    while position < len(word):
        together = word[position : position + 2] == pair
        joined.append("".join(pair) if together else word[position])
        position += 2 if together else 1
    return tuple(joined)


def is_special(token: str) -> bool:
    """Whether a token stands for no text."""
    return token in SPECIALS or token.startswith("<|extra_")


def weights(vocabulary: list[str]) -> dict[str, np.ndarray]:
    """All tensors, by their names in a GGUF file."""
    generator = np.random.default_rng(20261129)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return generator.standard_normal((rows, columns)).astype(np.float32) * np.float32(0.6 / math.sqrt(columns))

    embedding = generator.standard_normal((len(vocabulary), HIDDEN)).astype(np.float32)
    embedding[:, 0] = ANCHOR
    tensors = {"token_embd.weight": embedding, "output_norm.weight": np.ones(HIDDEN, np.float32)}
    for layer in range(LAYERS):
        block = {name: matrix(HIDDEN, HIDDEN) for name in ("attn_q", "attn_k", "attn_v", "attn_output")}
        block |= {name: matrix(INTERMEDIATE, HIDDEN) for name in ("ffn_gate", "ffn_up")}
        block["ffn_down"] = matrix(HIDDEN, INTERMEDIATE)
        for written in ("attn_output", "ffn_down"):
            block[written][0] = 0  # nothing is added to the anchor
        block |= {name: np.ones(HIDDEN, np.float32) for name in ("attn_norm", "ffn_norm")}
        tensors |= {f"blk.{layer}.{name}.weight": tensor for name, tensor in block.items()}
    head = generator.standard_normal((len(vocabulary), HIDDEN)).astype(np.float32) * np.float32(1.5 / math.sqrt(HIDDEN))
    head[:, 0] = 0
    anchor = ANCHOR / math.sqrt((ANCHOR**2 + HIDDEN) / HIDDEN)  # roughly what it is after the last norm
    bytes_of = {letter: byte for byte, letter in byte_letters().items()}
    plain = [
        not is_special(token) and all(bytes_of[letter] in (10, *range(32, 127)) for letter in token)
        for token in vocabulary
    ]
    for number, good in enumerate(plain):
        if not good:
            head[number, 0] = NEVER / anchor
    # The exponentials of the good tokens' logits add up to about their number times exp(1.5^2 / 2).
    head[END_OF_TURN] = 0
    head[END_OF_TURN, 0] = math.log(sum(plain) * math.exp(1.125) / TOKENS_PER_REPLY) / anchor
    tensors["output.weight"] = head
    return tensors


def write(path: str) -> None:
    """Write the model."""
    vocabulary, merges = learn()
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INTERMEDIATE)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_key_length(HIDDEN // HEADS)
    writer.add_value_length(HIDDEN // HEADS)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(vocabulary))
    writer.add_file_type(0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(vocabulary)
    kinds = gguf.TokenType
    writer.add_token_types([int(kinds.CONTROL if is_special(token) else kinds.NORMAL) for token in vocabulary])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(BOS)
    writer.add_eos_token_id(END_OF_TURN)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    for name, tensor in weights(vocabulary).items():
        writer.add_tensor(name, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])
