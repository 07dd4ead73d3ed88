"""What a document says, taken apart into statements with a place each."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from streamgauge import catalog
from streamgauge.contract.contract import load_contracts
from streamgauge.contract.document import Document
from streamgauge.contract.families import operations_of
from streamgauge.contract.source import Reach, Source
from streamgauge.contract.statements import Statement, sentences, statements_of
from streamgauge.errors import DocumentError
from streamgauge.yamlfile import load_yaml

SENTENCES: dict[str, list[str]] = {
    "One. Two! Three?": ["One.", "Two!", "Three?"],
    "Without an end": ["Without an end"],
    "By modality (e.g. `image`). Null for none.": ["By modality (e.g. `image`).", "Null for none."],
    "See e.g. Rust, i.e. Cargo, etc. Then more.": ["See e.g. Rust, i.e. Cargo, etc. Then more."],
    "Ends with `data: [DONE]. Or`. Next.": ["Ends with `data: [DONE]. Or`.", "Next."],
    "In brackets (one. Two). Next.": ["In brackets (one. Two).", "Next."],
    "Since v4.44. 0 turns it off.": ["Since v4.44.", "0 turns it off."],
    "Folded\n  over lines. Next.": ["Folded over lines.", "Next."],
    "A paragraph\n\nanother": ["A paragraph", "another"],
    "One of:\n- the first\n* the second. Of two\n2. the third": [
        "One of:",
        "- the first",
        "* the second.",
        "Of two",
        "2. the third",
    ],
    "Right. `code` begins it.": ["Right.", "`code` begins it."],
    "lower. case goes on.": ["lower. case goes on."],
    "": [],
}


@pytest.mark.parametrize("text", SENTENCES)
def test_sentences(text: str) -> None:
    """A sentence ends at its stop, at a blank line and at an item of a list; not in code, brackets or abbreviations."""
    assert sentences(text) == SENTENCES[text]


@given(st.text(alphabet="aA0.!? `()-\n*e,g"))
def test_no_word_is_lost(text: str) -> None:
    """The sentences in a row are the text."""
    assert " ".join(sentences(text)).split() == text.split()


DOCUMENT = """
openapi: 3.1.0
info: {title: T, version: '1'}
security:
  - key: []
  - {}
paths:
  /v1/completions:
    post:
      summary: Continue a text
      description: A first one. A second one.
      parameters:
        - $ref: '#/components/parameters/Trace'
      requestBody:
        required: true
        content:
          application/json:
            schema: {$ref: '#/components/schemas/Ask'}
      responses:
        '200':
          description: The answer.
          headers:
            X-Id: {description: Who asked., schema: {type: string}}
          content:
            application/json:
              schema: {}
            text/event-stream:
              schema:
                allOf: [{$ref: '#/components/schemas/Usage'}]
                description: A stream.
        4XX:
          description: Refused.
components:
  parameters:
    Trace: {name: x-trace, in: header, schema: {type: string, maxLength: 9}}
  securitySchemes:
    key: {type: http, scheme: bearer, description: The key.}
  schemas:
    Ask:
      type: object
      required: [prompt]
      additionalProperties: false
      properties:
        prompt: {type: string, title: no promise, example: none either, x-own: nor this}
        best:
          description: How good.
          anyOf: [{type: integer, minimum: 1}, {enum: [low, 2]}, {type: 'null'}]
          default: null
        usage: {$ref: '#/components/schemas/Usage', description: Own words.}
        again: {type: array, items: {$ref: '#/components/schemas/Ask'}}
        default: {const: 3, default: 3}
    Usage:
      type: object
      properties:
        tokens: {type: integer, description: How many. Never less.}
"""

R = "/requestBody/content/application~1json/schema"
S = "/responses/200/content/text~1event-stream/schema"

EXPECTED = [
    ("/summary#1", "sentence", "Continue a text"),
    ("/description#1", "sentence", "A first one."),
    ("/description#2", "sentence", "A second one."),
    ("/security", "security", "key or no key"),
    ("/security/key", "security", "http, bearer"),
    ("/security/key/description#1", "sentence", "The key."),
    ("/parameters/0", "header", "header x-trace, optional"),
    ("/parameters/0/schema", "schema", "string; maxLength: 9"),
    ("/requestBody", "body", "required: true"),
    ("/requestBody/content/application~1json", "media type", "application/json"),
    (R, "schema", "object; required: prompt; additionalProperties: false"),
    (f"{R}/properties/prompt", "schema", "string"),
    (f"{R}/properties/best", "schema", "anyOf: (integer; minimum: 1) | enum: low, 2 | null; default: null"),
    (f"{R}/properties/best/description#1", "sentence", "How good."),
    (f"{R}/properties/usage/description#1", "sentence", "Own words."),
    (f"{R}/properties/usage", "schema", "object"),
    (f"{R}/properties/usage/properties/tokens", "schema", "integer"),
    (f"{R}/properties/usage/properties/tokens/description#1", "sentence", "How many."),
    (f"{R}/properties/usage/properties/tokens/description#2", "sentence", "Never less."),
    (f"{R}/properties/again", "schema", "array; items: Ask"),
    (f"{R}/properties/default", "schema", "const: 3"),
    (f"{R}/properties/default/default", "default", "default: 3"),
    ("/responses/200", "response", "status 200"),
    ("/responses/200/description#1", "sentence", "The answer."),
    ("/responses/200/headers/X-Id", "header", "X-Id"),
    ("/responses/200/headers/X-Id/description#1", "sentence", "Who asked."),
    ("/responses/200/headers/X-Id/schema", "schema", "string"),
    ("/responses/200/content/application~1json", "media type", "application/json"),
    ("/responses/200/content/application~1json/schema", "schema", "anything"),
    ("/responses/200/content/text~1event-stream", "media type", "text/event-stream"),
    (S, "schema", "allOf: Usage"),
    (f"{S}/description#1", "sentence", "A stream."),
    ("/responses/4XX", "response", "status 4XX"),
    ("/responses/4XX/description#1", "sentence", "Refused."),
]


def read(text: str) -> list[Statement]:
    """The statements of the only operation of a document."""
    located = load_yaml(text, name="a.yaml", error=DocumentError)
    document = Document(Source("a", "a.yaml", "", text.encode()), located, Reach())
    (operation,) = operations_of(document, {})
    return statements_of(operation)


def test_every_place_is_named_once() -> None:
    """In the document's order; a schema that is used twice, or within itself, by the first way that leads to it."""
    assert [(each.at, each.kind, each.text) for each in read(DOCUMENT)] == EXPECTED


@pytest.mark.parametrize("name", catalog.DOCUMENTS)
def test_no_two_statements_share_a_place(name: str) -> None:
    """A place names a statement, in each bundled document."""
    (contract,) = load_contracts([name])
    (operation,) = contract.operations
    places = [each.at for each in statements_of(operation)]

    assert len(places) == len(set(places))


def texts(node: Any) -> set[str]:
    """Every description and summary of a part of a document that an operation can lead to, by its words."""
    found = set()
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("description", "summary") and isinstance(value, str):
                found.add(" ".join(value.split()))
            elif key not in ("example", "examples"):
                found |= texts(value)
    elif isinstance(node, list):
        found = set().union(*map(texts, node))
    return found


@pytest.mark.parametrize("name", catalog.DOCUMENTS)
def test_no_description_is_overlooked(name: str) -> None:
    """Each description of a bundled document, but that of the whole and of its servers, is among the sentences."""
    data = yaml.safe_load(catalog.document_text(name))
    (contract,) = load_contracts([name])
    (operation,) = contract.operations
    said: dict[str, list[str]] = {}
    for each in statements_of(operation):
        if each.kind == "sentence":
            said.setdefault(each.at.partition("#")[0], []).append(each.text)

    assert texts(data["paths"]) | texts(data["components"]) == {" ".join(words) for words in said.values()}
