"""`constrain call` without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from constrain.cli import _runtime
from constrain.cli.main import main
from constrain.tools.agent import Reply
from constrain.tools.named_formats import get_format
from constrain.tools.render import render_message

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "parameters": {"properties": {"at": {"type": "string"}}, "required": ["at"]},
        },
    },
    {"name": "wait", "input_schema": {"type": "object", "properties": {}}},
]
MODULE = '''
import json

def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b

def _hidden() -> None:
    pass

TOOLS = [add]
NOTHING = 3
'''


class FakeChat:
    def __init__(self, *replies: Reply | str) -> None:
        self.format = get_format("hermes")
        self.replies = list(replies)
        self.asked: list[tuple[Any, Any, Any, bool]] = []
        self.options: dict[str, Any] = {}

    def reply(self, messages: Any, tools: Any, tool_choice: Any, parallel: bool) -> Reply:
        self.asked.append((list(messages), [tool.name for tool in tools], tool_choice, parallel))
        found = self.replies.pop(0)
        return Reply(found) if isinstance(found, str) else found


def call(name: str, **arguments: Any) -> str:
    return render_message(get_format("hermes"), [(name, arguments)])


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> FakeChat:
    fake = FakeChat()

    def opened(name: str | None, sampling: Any, **options: Any) -> FakeChat:
        fake.options = {"model": name, "sampling": sampling, **options}
        return fake

    monkeypatch.setattr(_runtime, "open_chat", opened)
    return fake


@pytest.fixture
def tools_file(tmp_path: Path) -> str:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(TOOLS))
    return str(path)


@pytest.fixture
def module_file(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    path = tmp_path / f"tools_{abs(hash(request.node.name))}.py"
    path.write_text(MODULE)
    return str(path)


def test_calls_are_lines_of_json(
    chat: FakeChat, tools_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.replies = ["Let me see.\n" + call("look", at="Öl")]
    assert main(["call", "Where?", "--tools", tools_file, "--system", "Be brief."]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Let me see.",
        '{"name": "look", "arguments": {"at": "Öl"}}',
    ]
    messages, names, choice, parallel = chat.asked[0]
    assert [one["content"] for one in messages] == ["Be brief.", "Where?"]
    assert (names, choice, parallel) == (["look", "wait"], "auto", True)
    assert chat.options["format"] == "auto"
    assert chat.options["sampling"].temperature == 0.0


def test_choices_and_options(
    chat: FakeChat, tools_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.replies = [call("wait")]
    options = ["--tool-choice", "wait", "--tool-choice", "look", "--no-parallel", "--json"]
    options += ["--format", "hermes", "--reasoning", "optional", "--declared-order"]
    assert main(["call", "Go.", "--tools", tools_file, *options]) == 0
    message = json.loads(capsys.readouterr().out)
    assert message["tool_calls"][0]["function"] == {"name": "wait", "arguments": "{}"}
    assert chat.asked[0][2:] == (["wait", "look"], False)
    assert chat.options["reasoning"] == "optional"
    assert chat.options["arguments_order"] == "declared"


def test_run_calls_the_functions(
    chat: FakeChat, module_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.replies = [call("add", a=2, b=3), "It is 5."]
    options = ["--run", "--tool-choice", "required"]
    assert main(["call", "Add.", "--tools", module_file, *options]) == 0
    assert capsys.readouterr().out.splitlines() == [
        '{"name": "add", "arguments": {"a": 2, "b": 3}, "result": "5"}',
        "It is 5.",
    ]
    assert [one[2] for one in chat.asked] == ["required", "auto"]
    chat.replies = [call("add", a=1)] * 2
    assert (
        main(["call", "Add.", "--tools", f"{module_file}:TOOLS", "--run", "--max-turns", "2"]) == 1
    )
    assert "no answer after 2 messages" in capsys.readouterr().err


def test_a_message_that_is_cut_off(
    chat: FakeChat, tools_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.replies = [Reply("Let me", complete=False)]
    assert main(["call", "Go.", "--tools", tools_file]) == 1
    assert "cut off" in capsys.readouterr().err


def test_answers_of_a_schema(
    chat: FakeChat, tools_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schema = tmp_path / "answer.json"
    schema.write_text('{"type": "object", "properties": {"no": {"type": "string"}}}')
    chat.replies = ['{"no": "<tool_call>"}']
    assert main(["call", "Go.", "--tools", tools_file, "--answer-schema", str(schema)]) == 0
    assert json.loads(capsys.readouterr().out) == {"no": "<tool_call>"}
    assert chat.options["answer"] == json.loads(schema.read_text())


@pytest.mark.parametrize(
    ("tools", "options", "message", "code"),
    [
        ("missing.json", [], "cannot read the schema", 3),
        ("missing.py", [], "no such file", 3),
        ("no_such_module_here", [], "cannot import no_such_module_here", 3),
        ("MODULE:NOTHING", [], "expected a list of tools, found int", 3),
        ("MODULE:MISSING", [], "has no MISSING", 3),
        ("FILE", ["--tool-choice", "jump"], "unknown function 'jump'", 3),
        ("FILE", ["--format", "morse"], "there is no format 'morse'", 3),
        ("FILE", ["--run"], "look is only described", 2),
        ("FILE", ["--max-turns", "0"], "less than 1", 2),
    ],
)
def test_bad_input(
    tools: str,
    options: list[str],
    message: str,
    code: int,
    chat: FakeChat,
    tools_file: str,
    module_file: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = tools.replace("FILE", tools_file).replace("MODULE", module_file)
    assert main(["call", "Go.", "--tools", name, *options]) == code
    assert message in capsys.readouterr().err
    assert chat.asked == []


def test_tools_that_are_none(
    chat: FakeChat, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "tools.json"
    path.write_text('[{"description": "no name"}]')
    assert main(["call", "Go.", "--tools", str(path)]) == 3
    assert "a tool needs a name" in capsys.readouterr().err
    path.write_text('[{"name": "x", "parameters": {"type": "array"}}]')
    assert main(["call", "Go.", "--tools", str(path)]) == 3
    assert "must be of type object" in capsys.readouterr().err
