"""For each rule of `lint` a wrong and a right fragment, and the document that they are put into."""

import copy
from dataclasses import dataclass
from typing import Any

import yaml

__all__ = ["CASES", "Case", "document_of"]

BASE = """
openapi: 3.1.0
info: {title: Example, version: '1'}
security: [{bearer: []}]
paths:
  /v1/chat/completions:
    post:
      operationId: chat
      requestBody:
        content:
          application/json:
            schema:
              type: object
              required: [model, messages]
              properties:
                model: {type: string}
                messages: {type: array, minItems: 1, items: {type: object}}
      responses:
        '200':
          description: The answer.
          content:
            application/json:
              schema: {type: object}
        default:
          description: The reason.
          content:
            application/json:
              schema: {type: object}
components:
  securitySchemes:
    bearer: {type: http, scheme: bearer}
"""
"""A document that breaks no rule."""

PLACES: dict[str, tuple[str, ...]] = {
    "document": (),
    "path item": ("paths", "/v1/chat/completions"),
    "operation": ("paths", "/v1/chat/completions", "post"),
    "responses": ("paths", "/v1/chat/completions", "post", "responses"),
    "answer": ("paths", "/v1/chat/completions", "post", "responses", "200", "content"),
    "request": ("paths", "/v1/chat/completions", "post", "requestBody", "content", "application/json", "schema"),
    "properties": (
        *("paths", "/v1/chat/completions", "post", "requestBody", "content", "application/json", "schema"),
        "properties",
    ),
}
"""Where a fragment is merged into the base; a member that is null there is removed."""


@dataclass(frozen=True)
class Case:
    """What breaks a rule and what keeps it: YAML that is merged into the base, or the whole text."""

    where: str
    wrong: str
    right: str
    version: str = "3.1.0"


def document_of(case: Case, fragment: str) -> str:
    """The whole document with the fragment in its place."""
    if case.where == "text":
        return fragment
    document = yaml.safe_load(BASE)
    document["openapi"] = case.version
    target = document
    for step in PLACES[case.where]:
        target = target[step]
    _merge(target, copy.deepcopy(yaml.safe_load(fragment)))
    return yaml.safe_dump(document, sort_keys=False)


def _merge(target: dict[str, Any], fragment: dict[str, Any]) -> None:
    for key, value in fragment.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = value


def _chat(choice: str, *, media: str = "application/json", required: str = "[object]", more: str = "") -> str:
    """A fragment for `answer`: an object with choices."""
    return f"""
{media}:
  schema:
    type: object
    required: {required}
    properties:
      object: {{const: chat.completion}}
      choices: {{type: array, items: {{type: object, properties: {choice}}}}}
      {more}
"""


CASES: dict[str, Case] = {
    # -- structure
    "spec.unreadable": Case("text", "openapi: 3.1.0\nopenapi: 3.1.0\n", BASE),
    "spec.version": Case("text", "swagger: '2.0'\npaths: {}\n", BASE),
    "spec.malformed": Case("responses", "'404': fine", "'404': {description: No such model., content: {}}"),
    "spec.required-field": Case("document", "info: {title: Example}", "info: {title: Example, version: '1'}"),
    "spec.no-paths": Case("document", "{paths: {}, components: null, security: null}", "{}"),
    "spec.no-family": Case("document", "paths: {/v1/models: {}}", "{}"),
    "spec.path-parameter": Case(
        "document",
        "paths: {'/models/{id}': {get: {operationId: model, responses: {}}}}",
        "paths: {'/models/{id}': {get: {operationId: model, responses: {}, "
        "parameters: [{name: id, in: path, required: true, schema: {type: string}}]}}}",
    ),
    "spec.operation-id-missing": Case("operation", "operationId: null", "operationId: chat"),
    "spec.operation-id-duplicate": Case(
        "path item", "get: {operationId: chat, responses: {}}", "get: {operationId: chats, responses: {}}"
    ),
    # -- references
    "spec.ref-dangling": Case(
        "properties",
        "user: {$ref: '#/components/schemas/User'}",
        "user: {$ref: '#/components/securitySchemes/bearer'}",
    ),
    "spec.ref-remote": Case("properties", "user: {$ref: 'user.yaml#/User'}", "user: {type: string}"),
    "spec.ref-circular": Case(
        "document",
        "components: {schemas: {A: {$ref: '#/components/schemas/A'}}}",
        "components: {schemas: {A: {$ref: '#/components/schemas/B'}, B: {type: string}}}",
    ),
    "spec.ref-siblings": Case(
        "properties",
        "user: {$ref: '#/components/securitySchemes/bearer', maxLength: 5}",
        "user: {allOf: [{$ref: '#/components/securitySchemes/bearer'}], maxLength: 5}",
        "3.0.3",
    ),
    "spec.component-unused": Case(
        "document",
        "components: {schemas: {A: {properties: {a: {$ref: '#/components/schemas/A'}}}}}",
        "components: {schemas: {A: {properties: {b: {$ref: '#/components/schemas/B'}}}, "
        "B: {properties: {a: {$ref: '#/components/schemas/A'}}}}}",
    ),
    "spec.recursion-endless": Case(
        "document",
        "components: {schemas: {A: {type: object, required: [a], properties: {a: {$ref: '#/components/schemas/A'}}}}}",
        "components: {schemas: {A: {type: object, required: [a], "
        "properties: {a: {anyOf: [{$ref: '#/components/schemas/A'}, {type: 'null'}]}}}}}",
    ),
    # -- keywords
    "spec.keyword-invalid": Case("properties", "user: {type: strnig}", "user: {type: string}"),
    "spec.keyword-unknown": Case(
        "properties", "user: {type: string, maxlength: 5}", "user: {type: string, maxLength: 5}"
    ),
    "spec.keyword-version": Case("properties", "user: {const: a}", "user: {enum: [a]}", "3.0.3"),
    "spec.nullable-in-31": Case("properties", "user: {type: string, nullable: true}", "user: {type: [string, 'null']}"),
    "spec.nullable-without-type": Case(
        "properties", "user: {enum: [a, null], nullable: true}", "user: {type: string, nullable: true}", "3.0.3"
    ),
    "spec.int64-overflow": Case(
        "properties",
        "seed: {type: integer, maximum: 9223372036854776000}",
        "seed: {type: integer, minimum: -9223372036854775808, maximum: 9223372036854775807}",
    ),
    "spec.bounds-contradict": Case(
        "properties",
        "user: {type: string, minLength: 9, maxLength: 5}",
        "user: {type: string, minLength: 5, maxLength: 5}",
    ),
    "spec.pattern-invalid": Case(
        "properties", "user: {type: string, pattern: '[a-'}", "user: {type: string, pattern: '[a-z]'}"
    ),
    "spec.pattern-dialect": Case(
        "properties", r"user: {type: string, pattern: '\A\p{Lu}'}", "user: {type: string, pattern: '^[A-Z]+$'}"
    ),
    # -- values
    "spec.default-invalid": Case(
        "properties", "user: {type: string, default: 5}", "user: {type: [string, 'null'], default: null}"
    ),
    "spec.example-invalid": Case("properties", "user: {type: string, example: 5}", "user: {type: string, example: a}"),
    "spec.enum-invalid": Case(
        "properties", "user: {type: string, enum: [a, null]}", "user: {type: [string, 'null'], enum: [a, null]}"
    ),
    "spec.required-unknown": Case("request", "required: [model, messages, usr]", "required: [model, messages]"),
    "spec.required-impossible": Case(
        "properties",
        "user: {type: object, additionalProperties: false, required: [a], properties: {b: {type: string}}}",
        "user: {type: object, additionalProperties: false, required: [b], properties: {b: {type: string}}}",
    ),
    "spec.const-optional": Case(
        "properties",
        "tool: {type: object, properties: {type: {const: function}}}",
        "tool: {type: object, properties: {type: {const: function}}, required: [type]}",
    ),
    "spec.schema-anything": Case("properties", "format: {title: Format}", "format: {type: object}"),
    "spec.integer-unbounded": Case("properties", "top_k: {type: integer}", "top_k: {type: integer, minimum: 0}"),
    "spec.additional-properties": Case("request", "additionalProperties: true", "additionalProperties: false"),
    "spec.deprecated-unexplained": Case(
        "properties",
        "user: {type: string, deprecated: true}",
        "user: {type: string, deprecated: true, description: Use `safety_identifier`.}",
    ),
    # -- unions
    "spec.union-overlap": Case(
        "properties",
        "stop: {oneOf: [{type: integer}, {type: number}]}",
        "stop: {oneOf: [{type: number}, {type: string}]}",
    ),
    "spec.discriminator-optional": Case(
        "properties",
        "part: {anyOf: [{properties: {type: {const: text}}}, {properties: {type: {const: image}}}]}",
        "part: {anyOf: [{properties: {type: {const: text}}, required: [type]}, "
        "{properties: {type: {const: image}}, required: [type]}]}",
    ),
    # -- answers
    "spec.no-success": Case("responses", "{'200': null, default: null, '400': {description: No.}}", "{}"),
    "spec.success-unknown": Case(
        "answer", "application/json: {schema: {}}", "application/json: {schema: {type: object}}"
    ),
    "spec.stream-no-item-schema": Case(
        "answer", "text/event-stream: {schema: {type: object}}", "text/event-stream: {schema: {type: string}}"
    ),
    "spec.stream-in-prose": Case("properties", "stream: {type: boolean}", "streams: {type: boolean}"),
    "spec.no-error-answer": Case("responses", "default: null", "{}"),
    "spec.error-no-body": Case("responses", "'429': {description: Too many.}", "{}"),
    "spec.errors-differ": Case(
        "responses",
        "{'400': {description: a, content: {application/json: {schema: {type: object}}}}, "
        "'429': {description: b, content: {application/json: {schema: {type: string}}}}}",
        "{'400': {description: a, content: {application/json: {schema: {type: object}}}}, "
        "'429': {description: b, content: {application/json: {schema: {type: object}}}}}",
    ),
    "spec.error-inline": Case(
        "responses",
        "{'400': {description: a, content: {application/json: {schema: {type: object}}}}, "
        "'429': {description: b, content: {application/json: {schema: {type: object}}}}}",
        "{'400': {description: a, content: {application/json: {schema: {type: object}}}}}",
    ),
    "spec.error-union": Case(
        "responses",
        "'400': {description: a, content: {application/json: {schema: {oneOf: [{type: object}, {type: string}]}}}}",
        "'400': {description: a, content: {application/json: {schema: {type: object}}}}",
    ),
    "spec.statuses-undocumented": Case("responses", "{default: null, '400': {description: a}}", "{}"),
    # -- security
    "spec.key-without-bearer": Case(
        "document",
        "components: {securitySchemes: {bearer: {type: apiKey, in: header, name: Authorization}}}",
        "components: {securitySchemes: {bearer: {type: http, scheme: bearer}}}",
    ),
    "spec.security-unknown": Case("operation", "security: [{token: []}]", "security: [{bearer: []}]"),
    "spec.key-as-parameter": Case(
        "operation",
        "parameters: [{name: x-api-key, in: header, schema: {type: string}}]",
        "parameters: [{name: x-request-id, in: header, schema: {type: string}}]",
    ),
    "spec.parameter-ignored": Case(
        "operation",
        "parameters: [{name: Accept, in: header, schema: {type: string}}]",
        "parameters: [{name: Accept-Language, in: header, schema: {type: string}}]",
    ),
    "spec.no-security": Case("document", "security: null", "security: []"),
    "spec.security-mismatch": Case(
        "operation",
        "{security: [], responses: {'200': {description: a}, '401': {description: b}}}",
        "{security: [{bearer: []}], responses: {'200': {description: a}, '401': {description: b}}}",
    ),
    "spec.server-real-host": Case(
        "document", "servers: [{url: 'https://flow.seekr.com'}]", "servers: [{url: 'http://127.0.0.1:8000'}]"
    ),
    # -- openai
    "spec.model-optional": Case("request", "required: [messages]", "required: [model, messages]"),
    "spec.input-optional": Case("request", "required: [model]", "required: [model, messages]"),
    "spec.range-missing": Case("properties", "n: {type: integer}", "n: {type: integer, minimum: 1}"),
    "spec.messages-may-be-empty": Case("properties", "messages: {type: array}", "messages: {type: array, minItems: 1}"),
    "spec.default-contradicts-openai": Case(
        "properties",
        "{tools: {type: array}, tool_choice: {type: string, default: none}}",
        "{tools: {type: array}, tool_choice: {type: string, default: auto}}",
    ),
    "spec.object-weak": Case("answer", _chat("{}", required="[choices]"), _chat("{}")),
    "spec.usage-empty": Case(
        "answer",
        _chat("{}", more="usage: {type: object, properties: {total_tokens: {type: integer}}}"),
        _chat(
            "{}", more="usage: {type: object, properties: {total_tokens: {type: integer}}, required: [total_tokens]}"
        ),
    ),
    "spec.values-open": Case(
        "answer",
        _chat("{finish_reason: {type: string}}"),
        _chat("{finish_reason: {type: string, enum: [stop, length]}}"),
    ),
    "spec.error-code-integer": Case(
        "responses",
        "'400': {description: a, content: {application/json: {schema: {type: object, properties: "
        "{error: {type: object, properties: {code: {type: integer}}}}}}}}",
        "'400': {description: a, content: {application/json: {schema: {type: object, properties: "
        "{error: {type: object, properties: {code: {type: [string, 'null']}}}}}}}}",
    ),
    # -- prose
    "spec.text-lost-words": Case(
        "properties",
        "user: {type: string, description: 'Lines, where each `` is an object.'}",
        "user: {type: string, description: 'Lines, where each ``chunk`` is an object.'}",
    ),
    "spec.required-in-prose": Case(
        "operation",
        "{requestBody: {content: {application/json: {schema: {properties: {model: {type: string}}}}}}, "
        "responses: {'400': {description: '`model` missing.'}}}",
        "{requestBody: {content: {application/json: {schema: {properties: {model: {type: string}}, required: [model]}}}}, "
        "responses: {'400': {description: '`model` missing.'}}}",
    ),
    "spec.bound-in-prose": Case(
        "properties",
        "count: {type: integer, description: Must be >= 2.}",
        "count: {type: integer, minimum: 2, description: Must be >= 2.}",
    ),
    "spec.default-against-prose": Case(
        "properties",
        "count: {type: integer, default: 0, description: Must be >= 2.}",
        "count: {type: integer, default: 2, description: Must be >= 2.}",
    ),
    "spec.prose-rule": Case(
        "properties",
        "ids: {type: array, description: Requires `logprobs` to be set.}",
        "ids: {type: array, description: Ids of tokens.}",
    ),
    "spec.text-contradicts-schema": Case(
        "properties",
        "prompt: {anyOf: [{type: string}, {type: array}], description: A single string is currently supported.}",
        "prompt: {type: string, description: A single string is currently supported.}",
    ),
}
"""Rule → what breaks it and what keeps it."""
