"""Where targets come from: flags, then the environment, then streamgauge.yaml."""

import traceback
from pathlib import Path
from typing import Any

import pytest

from streamgauge import catalog
from streamgauge.config import TargetFlags, resolve_targets
from streamgauge.errors import ConfigError, StreamgaugeError
from streamgauge.target import Target

URL = "http://127.0.0.1:8000"
KEY = "sk-5ecret-0123456789"
FLAGS = TargetFlags(base_url=URL, spec=("seekr-chat",))
FILE = """\
targets:
  prod:
    base_url: https://file.example/v1
    spec: seekr-chat
    model: from-file
    api_key: ${PROD_KEY}
    headers: {X-Team: "team ${TEAM}"}
    paths: {seekr-chat: /v1/chat/completions}
  both:
    base_url: https://both.example
    spec: [seekr-chat, deepinfra-completions]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A configuration with two targets."""
    path = tmp_path / "streamgauge.yaml"
    path.write_text(FILE)
    return path


def refusal(flags: TargetFlags, environment: dict[str, str] | None = None) -> StreamgaugeError:
    """What resolving raises; never does it show the key, not even in a traceback with its causes."""
    with pytest.raises(StreamgaugeError) as caught:
        resolve_targets(flags, environment or {})
    shown = [str(caught.value), repr(caught.value), *traceback.format_exception(caught.value)]
    assert not any(KEY in text for text in shown)
    return caught.value


def resolved(flags: TargetFlags, environment: dict[str, str] | None = None) -> Target:
    """The only target that the flags mean."""
    (target,) = resolve_targets(flags, environment or {})
    return target


def flags(**more: Any) -> TargetFlags:
    """Flags that name an address and a document, and these."""
    return TargetFlags(**{"base_url": URL, "spec": ("seekr-chat",), **more})


def test_flags_alone() -> None:
    """An address and a document make a target that is named after the profile."""
    target = resolved(FLAGS)
    assert (target.name, target.base_url, target.model, target.key) == ("seekr", URL, "", None)
    assert [operation.name for operation in target.contract.operations] == ["seekr-chat"]


def test_documents_that_refer_to_files_beside_them(tmp_path: Path) -> None:
    """Only where the user allows it, by flag or in the file; `own.yaml` is no bundled name, so the profile is openai."""
    body = "{content: {application/json: {schema: {$ref: 'part.yaml#/S'}}}}"
    own = tmp_path / "own.yaml"
    own.write_text(f"openapi: 3.1.0\npaths: {{/completions: {{post: {{requestBody: {body}, responses: {{}}}}}}}}\n")
    (tmp_path / "part.yaml").write_text("S: {type: object, required: [prompt]}\n")
    assert "--remote-refs" in refusal(flags(spec=(str(own),))).hint
    config = tmp_path / "streamgauge.yaml"
    config.write_text(f"targets: {{own: {{base_url: {URL}, spec: {own}, remote_refs: true}}}}\n")
    for given in (flags(spec=(str(own),), remote_refs=True), TargetFlags(target="own", config=config)):
        assert resolved(given).contract.operations[0].required == ("prompt",)


def test_file(file: Path) -> None:
    """A target of the file, its secrets taken from the environment."""
    target = resolved(TargetFlags(target="prod", config=file), {"PROD_KEY": KEY, "TEAM": "red"})
    assert (target.name, target.model, target.key) == ("prod", "from-file", KEY)
    assert target.headers == {"X-Team": "team red"}
    assert target.url(target.contract.operations[0]) == "https://file.example/v1/chat/completions"


def test_environment_over_file(file: Path) -> None:
    """The environment replaces what the file says, and an unset ${VARIABLE} for a key that is not needed is no matter."""
    environment = {
        "STREAMGAUGE_MODEL": "from-env",
        "STREAMGAUGE_API_KEY": KEY,
        "TEAM": "x",
        "STREAMGAUGE_TARGET": "prod",
    }
    target = resolved(TargetFlags(config=file), environment)
    assert (target.name, target.model, target.key) == ("prod", "from-env", KEY)


def test_flags_over_environment(file: Path, tmp_path: Path) -> None:
    """Flags replace what environment and file say."""
    key_file = tmp_path / "key"
    key_file.write_text(f"{KEY}\n")
    environment = {
        "STREAMGAUGE_MODEL": "from-env",
        "STREAMGAUGE_API_KEY": "another-key-from-env",
        "STREAMGAUGE_SPEC": "seekr-completions",
        "STREAMGAUGE_BASE_URL": "http://env.example",
        "STREAMGAUGE_PROFILE": "deepinfra",
        "TEAM": "x",
    }
    given = TargetFlags(
        target="prod", config=file, model="from-flag", api_key_file=key_file, spec=("seekr-chat",), profile="seekr"
    )
    target = resolved(given, environment)
    assert (target.model, target.key, target.contract.profile.name) == ("from-flag", KEY, "seekr")
    assert target.base_url == "https://file.example/v1"


def test_environment_alone() -> None:
    """Everything can come from the environment; several documents are separated by commas."""
    environment = {
        "STREAMGAUGE_BASE_URL": URL,
        "STREAMGAUGE_SPEC": "seekr-chat, seekr-completions",
        "STREAMGAUGE_API_KEY": f" {KEY}\n",
    }
    target = resolved(TargetFlags(), environment)
    assert len(target.contract.operations) == 2
    assert target.key == KEY


def test_flag_of_an_address_beats_a_target_of_the_environment(file: Path) -> None:
    """Whoever gives an address does not mean the target that the environment names."""
    given = TargetFlags(base_url=URL, spec=("seekr-chat",), config=file)
    assert resolved(given, {"STREAMGAUGE_TARGET": "prod"}).base_url == URL


def test_two_profiles_make_two_targets(file: Path) -> None:
    """Documents of two vendors at one address are two targets."""
    found = resolve_targets(TargetFlags(target="both", config=file), {})
    assert [target.name for target in found] == ["both-seekr", "both-deepinfra"]
    found = resolve_targets(flags(spec=("seekr-chat", "deepinfra-completions")), {})
    assert [target.name for target in found] == ["seekr", "deepinfra"]


@pytest.mark.parametrize("spec", catalog.DOCUMENTS)
def test_the_servers_of_a_document_are_never_asked(spec: str) -> None:
    """The host that a document names under `servers` is nobody's default."""
    with pytest.raises(ConfigError):
        resolve_targets(TargetFlags(spec=(spec,)), {})
    target = resolved(flags(spec=(spec,)))
    assert all(target.url(operation).startswith(f"{URL}/") for operation in target.contract.operations)
    assert "seekr.com" not in "".join(target.url(operation) for operation in target.contract.operations)


def test_nothing_named() -> None:
    """Without a target there is an error that says how to name one."""
    assert "--base-url" in refusal(TargetFlags()).hint
    assert not TargetFlags().names_a_target
    assert "seekr-chat" in refusal(TargetFlags(base_url=URL)).hint


def test_unknown_target_lists_the_names(file: Path) -> None:
    """An unknown name comes with those there are, and their place."""
    problem = refusal(TargetFlags(target="pord", config=file))
    assert "prod, both" in problem.hint
    assert problem.where == f"{file}:1:1"


def test_no_file(tmp_path: Path) -> None:
    """A missing file is named."""
    assert "none.yaml" in refusal(TargetFlags(target="prod", config=tmp_path / "none.yaml")).what


BROKEN = {
    "no-targets": ("{}", "1:1"),
    "empty": ("", ""),
    "no-mapping": ("targets: [1]", "1:1"),
    "targets-empty": ("targets: {}", "1:1"),
    "unknown-member": ("targets:\n  prod:\n    base_url: x\n    spec: y\n    modle: z\n", "2:3"),
    "no-spec": ("targets:\n  prod:\n    base_url: x\n", "2:3"),
    "spec-number": ("targets:\n  prod:\n    base_url: x\n    spec: 5\n", "4:5"),
    "path-relative": ("targets:\n  prod:\n    base_url: x\n    spec: y\n    paths: {a: b}\n", "5:13"),
    "insecure-text": ("targets:\n  prod:\n    base_url: x\n    spec: y\n    insecure: 'yes'\n", "5:5"),
    "bad-name": ("targets:\n  'a b': {base_url: x, spec: y}\n", "1:1"),
    "broken-yaml": ("targets: {\n", "2:1"),
    "twice": ("targets:\n  a: {base_url: x, spec: y}\n  a: {base_url: x, spec: y}\n", "3:3"),
}


@pytest.mark.parametrize(("text", "place"), BROKEN.values(), ids=BROKEN)
def test_broken_files(tmp_path: Path, text: str, place: str) -> None:
    """What breaks the schema is refused with file, line and column."""
    path = tmp_path / "c.yaml"
    path.write_text(text)
    assert refusal(TargetFlags(target="prod", config=path)).where == (f"{path}:{place}" if place else str(path))


LEAKS = {
    "api-key": f"targets:\n  prod:\n    base_url: x\n    spec: y\n    api_key: {KEY}\n",
    "api-key-list": f"targets:\n  prod:\n    base_url: x\n    spec: y\n    api_key: [{KEY}]\n",
    "half-reference": f"targets:\n  prod:\n    base_url: x\n    spec: y\n    api_key: ${{A}}{KEY}\n",
    "targets-list": f"targets:\n- name: prod\n  api_key: {KEY}\n",
    "target-text": f"targets:\n  prod: {KEY}\n",
    "headers-text": f"targets:\n  prod:\n    base_url: x\n    spec: y\n    headers: 'Authorization: {KEY}'\n",
    "header-list": f"targets:\n  prod:\n    base_url: x\n    spec: y\n    headers: {{Authorization: [{KEY}]}}\n",
    "spec-mapping": f"targets:\n  prod:\n    base_url: x\n    spec: {{api_key: {KEY}}}\n",
    "path": f"targets:\n  prod:\n    base_url: x\n    spec: y\n    paths: {{a: {KEY}}}\n",
    "whole-file": f"- {KEY}\n",
}


@pytest.mark.parametrize("text", LEAKS.values(), ids=LEAKS)
def test_a_key_written_into_the_file_is_never_printed(tmp_path: Path, text: str) -> None:
    """A complaint about the file does not repeat what stands there: it may be a key."""
    path = tmp_path / "c.yaml"
    path.write_text(text)
    problem = refusal(TargetFlags(target="prod", config=path))
    assert problem.where.startswith(str(path))


def test_plain_key_says_what_to_write(tmp_path: Path) -> None:
    """A key in plain text is refused with the form that is allowed."""
    path = tmp_path / "c.yaml"
    path.write_text(LEAKS["api-key"])
    problem = refusal(TargetFlags(target="prod", config=path))
    assert "${VARIABLE}" in problem.what
    assert problem.where == f"{path}:5:5"


@pytest.mark.parametrize("environment", [{"TEAM": "x"}, {"PROD_KEY": "", "TEAM": "x"}, {"PROD_KEY": KEY}])
def test_unset_variables(file: Path, environment: dict[str, str]) -> None:
    """A reference to a variable that is not set, or empty, is refused by its name and place."""
    problem = refusal(TargetFlags(target="prod", config=file), environment)
    name, line = ("TEAM", 7) if environment.get("PROD_KEY") else ("PROD_KEY", 6)
    assert name in problem.what
    assert problem.where.startswith(f"{file}:{line}:")


@pytest.mark.parametrize(
    "member",
    ["model: ${X}", "ca_file: a/${X}", "paths: {seekr-chat: '/${X}'}", "profile: ${X}"],
)
def test_references_are_for_secrets_only(tmp_path: Path, member: str) -> None:
    """${VARIABLE} elsewhere than in secrets is refused, however deep."""
    path = tmp_path / "c.yaml"
    path.write_text(f"targets:\n  prod:\n    base_url: {URL}\n    spec: seekr-chat\n    {member}\n")
    problem = refusal(TargetFlags(target="prod", config=path), {"X": "y"})
    assert "secrets" in problem.what
    assert problem.where.startswith(f"{path}:5:")


def test_path_for_one_operation() -> None:
    """With one operation, --path is its path."""
    target = resolved(flags(path=("/v1/chat/completions",)))
    assert target.url(target.contract.operations[0]) == f"{URL}/v1/chat/completions"


def test_path_by_name() -> None:
    """With several operations, --path names the one it is for; the others keep theirs."""
    target = resolved(flags(spec=("seekr-chat", "seekr-completions"), path=("seekr-chat=/x",)))
    assert [target.url(operation) for operation in target.contract.operations] == [
        f"{URL}/x",
        f"{URL}/v1/inference/completions",
    ]


@pytest.mark.parametrize(
    ("specs", "path", "said"),
    [
        (("seekr-chat", "seekr-completions"), "/x", "OPERATION=PATH"),
        (("seekr-chat",), "x", "begins with /"),
        (("seekr-chat",), "nobody=/x", "nobody"),
        (("seekr-chat",), "seekr-chat=x", "begins with /"),
        (("seekr-chat",), "/a\nb", "control"),
    ],
)
def test_broken_paths(specs: tuple[str, ...], path: str, said: str) -> None:
    """A --path that fits nothing is refused with what would."""
    given = flags(spec=specs, path=(path,))
    try:
        target = resolved(given)
    except ConfigError as problem:
        assert said in str(problem)
    else:
        with pytest.raises(ConfigError, match=said):
            target.url(target.contract.operations[0])


def test_headers() -> None:
    """--header takes NAME=VALUE, the value with further equals signs or from the environment."""
    target = resolved(flags(header=("X-A=b=c", "X-Key=${K}", "X-Empty=")), {"K": KEY})
    assert target.headers == {"X-A": "b=c", "X-Key": KEY, "X-Empty": ""}
    assert KEY not in repr(target)


@pytest.mark.parametrize(
    "header", [KEY, f"Authorization: {KEY}", f"={KEY}", f"X Y={KEY}", f"X={KEY}\r\nZ: 1", "X=${NO}"]
)
def test_broken_headers(header: str) -> None:
    """A header in any other form is refused without being printed."""
    assert refusal(flags(header=(header,))).where == "--header"


@pytest.mark.parametrize("text", [b"", b" \n", f"{KEY}\nmore".encode(), b"\xff\xfe", f"{KEY}\x01".encode()])
def test_broken_key_files(tmp_path: Path, text: bytes) -> None:
    """A key file holds one line of text: anything else is refused by the file's name."""
    path = tmp_path / "key"
    path.write_bytes(text)
    assert refusal(flags(api_key_file=path)).where == str(path)


def test_missing_key_file(tmp_path: Path) -> None:
    """A key file that is not there is named."""
    assert refusal(flags(api_key_file=tmp_path / "none")).where.endswith("none")


def test_key_that_no_header_can_carry() -> None:
    """A key with a line break inside is refused before anything is sent."""
    assert refusal(FLAGS, {"STREAMGAUGE_API_KEY": f"{KEY}\r\nX: y"}).where == "STREAMGAUGE_API_KEY"


@pytest.mark.parametrize(
    "flag", [{}, {"client_cert": "mine.pem"}, {"client_cert": "mine.pem", "client_key": "mine.key"}]
)
def test_client_certificates(tmp_path: Path, flag: dict[str, str]) -> None:
    """A certificate given by flag does not go with the file's key; without one, both are the file's."""
    path = tmp_path / "c.yaml"
    path.write_text(f"targets: {{a: {{base_url: {URL}, spec: seekr-chat, client_cert: c.pem, client_key: c.key}}}}")
    found = resolved(TargetFlags(target="a", config=path, **flag))
    expected = ("c.pem", "c.key") if not flag else ("mine.pem", flag.get("client_key"))
    assert (found.client_cert, found.client_key) == expected


@pytest.mark.parametrize("asked", [False, True])
def test_proxies_of_the_environment(tmp_path: Path, asked: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By flag or by file, never by itself."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:3128")
    monkeypatch.delenv("http_proxy", raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    path = tmp_path / "c.yaml"
    path.write_text(f"targets: {{a: {{base_url: {URL}, spec: seekr-chat, proxy_from_env: {str(asked).lower()}}}}}")
    for target in (resolved(flags(proxy_from_env=asked)), resolved(TargetFlags(target="a", config=path))):
        assert (target.proxy.url if target.proxy else None) == ("http://127.0.0.1:3128" if asked else None)
