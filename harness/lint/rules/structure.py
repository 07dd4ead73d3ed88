"""Rules about how the document as a whole is built."""

import re
from collections import Counter
from collections.abc import Iterator

from streamgauge.lint.grammar import kind_of
from streamgauge.lint.rule import LintLevel, Place, Rule, declare, rule
from streamgauge.lint.subject import Subject

__all__ = ["UNREADABLE", "VERSION"]

UNREADABLE = declare(
    Rule(
        "spec.unreadable",
        LintLevel.ERROR,
        "the text cannot be read as YAML or JSON",
        "Nothing can be said about a document that no reader takes; a key given twice is read differently by each of them.",
        "Mend the syntax; give every key once.",
        "YAML 1.2.2, section 3.2.1.1 (keys are unique); RFC 8259, section 4",
    )
)
VERSION = declare(
    Rule(
        "spec.version",
        LintLevel.ERROR,
        "not a version of OpenAPI that streamgauge reads",
        "Versions differ in what a keyword means. A document of another version would be judged by the wrong rules.",
        "Convert Swagger 2.0 to OpenAPI 3 first; write `openapi: 3.0.x` or `3.1.x` at the top.",
        "OAS 3.1, section 4.8.1 (openapi is required)",
    )
)


@rule(
    "malformed",
    LintLevel.ERROR,
    "something else stands where the specification wants an object, a map or a list",
    why="Readers of the document fail here, or skip what stands there without a word.",
    mend="Write the object that the specification asks for in this place.",
    source="OAS 3.1, section 4.8",
)
def _malformed(subject: Subject) -> Iterator[Place]:
    for path, kind, value in subject.malformed:
        yield Place(path, f"has to be a {kind}, not {kind_of(value)}")


REQUIRED: dict[str, tuple[str, ...]] = {
    "document": ("info",),
    "info": ("title", "version"),
    "server": ("url",),
    "response": ("description",),
    "request body": ("content",),
    "parameter": ("name", "in"),
    "security scheme": ("type",),
}


@rule(
    "required-field",
    LintLevel.ERROR,
    "a field that OpenAPI requires is missing",
    why="The document is invalid: strict readers refuse the whole of it for this.",
    mend="Add the field.",
    source="OAS 3.1, section 4.8: the fields marked REQUIRED",
)
def _required_field(subject: Subject) -> Iterator[Place]:
    for kind, names in REQUIRED.items():
        for node in subject.nodes(kind):
            for name in names:
                if name not in node.value and "$ref" not in node.value:
                    yield Place(node.path, f"this {kind} object lacks `{name}`")
    for node in subject.nodes("operation") if subject.old else ():
        if "responses" not in node.value:
            yield Place(node.path, "this operation object lacks `responses`")


@rule(
    "no-paths",
    LintLevel.ERROR,
    "the document has no operations",
    why="There is nothing that a client could call or a tool could test.",
    mend="Describe the operations under `paths`.",
    source="OAS 3.1, section 4.8.1 (paths, webhooks or components is required; 3.0: paths)",
)
def _no_paths(subject: Subject) -> Iterator[Place]:
    known = subject.data.keys() & {"webhooks", "components"} and not subject.old
    if not subject.data.get("paths") and not known:
        yield Place(("paths",), "there are no `paths`")


@rule(
    "no-family",
    LintLevel.INFO,
    "no operation is one of chat completions or completions",
    why="`streamgauge check` judges these two families only; it finds them by POST paths that end in /chat/completions "
    "or /completions, and where there is none, by the fields of a request.",
    mend="Nothing, unless the document describes such an endpoint under another path: then a profile can say so.",
    source="streamgauge: operations are recognised by family",
)
def _no_family(subject: Subject) -> Iterator[Place]:
    if not any(endpoint.family for endpoint in subject.endpoints):
        yield Place(
            ("paths",), "no path ends in /chat/completions or /completions, and no request has the fields of one"
        )


@rule(
    "path-parameter",
    LintLevel.ERROR,
    "path template and path parameters do not fit",
    why="A client cannot fill a placeholder that nobody describes, nor place a parameter that the path lacks.",
    mend="Give one parameter with `in: path` and `required: true` for each placeholder in braces.",
    source="OAS 3.1, section 4.8.8 and 4.8.12.1 (in: path; required MUST be true)",
)
def _path_parameter(subject: Subject) -> Iterator[Place]:
    for endpoint in subject.endpoints:
        wanted = set(re.findall(r"{([^{}]+)}", endpoint.template))
        given = {}
        lists = (endpoint.node.path[:-1], endpoint.node.path)
        for path in ((*above, "parameters") for above in lists):
            listed = subject.at(path)
            for index in range(len(listed) if isinstance(listed, list) else 0):
                node = subject.followed((*path, index), "parameter")
                if not node.value:
                    return  # a reference that leads nowhere: said elsewhere
                if node.value.get("in") == "path":
                    given[str(node.value.get("name"))] = node
        for name in sorted(wanted - given.keys()):
            yield Place(endpoint.node.path, f"{endpoint.name}: nothing describes `{{{name}}}`")
        for name, node in given.items():
            if name not in wanted:
                yield Place(node.path, f"{endpoint.name} has no placeholder `{{{name}}}`")
            elif node.value.get("required") is not True:
                yield Place(node.path, f"path parameter `{name}` has to be `required: true`")


@rule(
    "operation-id-missing",
    LintLevel.INFO,
    "an operation has no operationId",
    why="Generators make up a name for it, each another one, and links cannot point to it.",
    mend="Give a unique operationId.",
    source="OAS 3.1, section 4.8.10 (operationId)",
)
def _operation_id_missing(subject: Subject) -> Iterator[Place]:
    for endpoint in subject.endpoints:
        if not endpoint.node.value.get("operationId"):
            yield Place(endpoint.node.path, "the operation has no `operationId`")


@rule(
    "operation-id-duplicate",
    LintLevel.ERROR,
    "an operationId stands for several operations",
    why="Generated clients lose one of them: the name is that of a function.",
    mend="Give each operation an id of its own.",
    source="OAS 3.1, section 4.8.10 (the id MUST be unique)",
)
def _operation_id_duplicate(subject: Subject) -> Iterator[Place]:
    named = [
        (str(node.value["operationId"]), node) for node in subject.nodes("operation") if "operationId" in node.value
    ]
    counts = Counter(name for name, _ in named)
    for name, node in named:
        if counts[name] > 1:
            yield Place((*node.path, "operationId"), f"`{name}` stands for {counts[name]} operations")
