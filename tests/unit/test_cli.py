"""The command line: parsing, exit codes, messages, `generate` and `check`, without a model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from constrain.cli import _runtime
from constrain.cli._errors import CliError
from constrain.cli._json import JsonInputError, decode_utf8, parse_json, tidy_json
from constrain.cli._outline import outline
from constrain.cli._template import Template, TemplateFieldError
from constrain.cli.main import main

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}},
    "required": ["name"],
}


class FakeEngine:
    """Answers with fixed pieces and remembers what it was asked."""

    def __init__(self, pieces: list[str], finish_reason: str = "stop") -> None:
        self.pieces = pieces
        self.finish_reason = finish_reason
        self.is_complete = False
        self.messages: list[dict[str, str]] = []
        self.sampling: _runtime.Sampling | None = None

    def generate(self, messages, sampling, on_text):
        self.messages = messages
        self.sampling = sampling
        for piece in self.pieces:
            if on_text is not None:
                on_text(piece)
        return SimpleNamespace(
            text="".join(self.pieces),
            token_ids=[1] * sampling.max_tokens,
            finish_reason=self.finish_reason,
            is_complete=self.is_complete,
        )


@pytest.fixture
def schema_file(tmp_path: Path) -> str:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    fake = FakeEngine(['{"name": ', '"Bär', '"}'])
    monkeypatch.setattr(_runtime, "open_engine", lambda name, spec: fake)
    return fake


def test_help_lists_commands_and_exit_codes(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for word in ("generate", "extract", "check", "exit codes", "examples"):
        assert word in out


@pytest.mark.parametrize("command", ["generate", "extract", "check", "explain", "grammars"])
def test_each_command_has_help_with_examples(command, capsys):
    assert main([command, "--help"]) == 0
    assert "examples:" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("constrain ")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "required"),
        (["nonsense"], "nonsense"),
        (["generate", "hi"], "no constraint is given"),
        (["generate", "hi", "--regex", "a", "--choice", "b"], "exclude each other"),
        (["generate", "hi", "--regex", "a", "--temperature", "-1"], "--temperature"),
        (["generate", "hi", "--regex", "a", "--temperature", "nan"], "--temperature"),
        (["generate", "hi", "--regex", "a", "--top-p", "1.5"], "--top-p"),
        (["generate", "hi", "--regex", "a", "--top-k", "0"], "--top-k"),
        (["generate", "hi", "--regex", "a", "--max-tokens", "0"], "--max-tokens"),
        (["generate", "hi", "--model-class", "no_colon"], "MODULE:CLASS"),
        (["extract", "a.jsonl"], "no constraint is given"),
        (["generate", "hi", "--regex", "a", "--grammar", "json"], "exclude each other"),
        (["generate", "hi", "--grammar", "csv", "--set", "header"], "KEY=VALUE"),
        (["generate", "hi", "--grammar", "csv", "--set", "a=1", "--set", "a=2"], "given twice"),
        (["generate", "hi", "--gbnf", "x", "--set", "a=1"], "--set goes with"),
        (["generate", "hi", "--grammar", "json", "--start", "x"], "--start goes with"),
        (["check"], "nothing to check"),
        (["check", "a.json", "--grammar", "json"], "exclude each other"),
        (["check", "--grammar", "json", "--draft", "7"], "--draft goes with"),
        (["check", "a.json", "--start", "x"], "--start goes with"),
        (["grammars", "--about"], "needs the name"),
        (["grammars", "nothing"], "no grammar 'nothing'"),
    ],
)
def test_usage_errors_exit_2(argv, message, capsys):
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_generate_streams_pieces(engine, schema_file, capfdbinary):
    assert main(["generate", "Who?", "--schema", schema_file, "--seed", "3"]) == 0
    assert capfdbinary.readouterr().out == '{"name": "Bär"}\n'.encode()
    assert engine.messages == [{"role": "user", "content": "Who?"}]
    assert engine.sampling == _runtime.Sampling(1.0, None, None, 3, 512)


def test_generate_no_stream_and_system(engine, schema_file, capfdbinary):
    argv = ["generate", "Who?", "--schema", schema_file, "--no-stream", "--system", "Be brief."]
    assert main(argv) == 0
    assert capfdbinary.readouterr().out == '{"name": "Bär"}\n'.encode()
    assert engine.messages[0] == {"role": "system", "content": "Be brief."}


def test_generate_cut_off_is_exit_1(engine, schema_file, capfd):
    engine.finish_reason = "length"
    assert main(["generate", "Who?", "--schema", schema_file, "--max-tokens", "5"]) == 1
    captured = capfd.readouterr()
    assert captured.err == (
        "constrain: error: the output was cut off after 5 tokens; raise --max-tokens\n"
    )
    # The last token that was allowed has closed the object: nothing is missing.
    engine.is_complete = True
    assert main(["generate", "Who?", "--schema", schema_file, "--max-tokens", "5"]) == 0
    # A text that matches already might have gone on.
    engine.pieces = ["yes"]
    assert main(["generate", "Who?", "--regex", "yes(ss)?", "--max-tokens", "5"]) == 1


def test_generate_at_a_dead_end_is_exit_1(engine, capfd):
    engine.finish_reason = "dead_end"
    assert main(["generate", "Who?", "--regex", "[a-z]+"]) == 1
    assert "no token of the model continues the output" in capfd.readouterr().err


@pytest.mark.parametrize("options", [["--regex", "[a-z]+"], ["--choice", "yes", "--choice", "no"]])
def test_generate_with_text_constraints(engine, options, capfd):
    engine.pieces = ["yes"]
    assert main(["generate", "Blue?", *options]) == 0
    assert capfd.readouterr().out == "yes\n"


def test_generate_with_bad_regex_is_exit_3(engine, capfd):
    assert main(["generate", "Blue?", "--regex", "a("]) == 3
    assert capfd.readouterr().err.startswith("constrain: error: --regex: ")


def test_model_class_is_found_in_the_current_folder(engine, tmp_path, monkeypatch, capfd):
    (tmp_path / "zoo_models.py").write_text(
        "import pydantic\nclass Animal(pydantic.BaseModel):\n    name: str\n    legs: int = 4\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["generate", "?", "--model-class", "zoo_models:Animal"]) == 0
    engine.pieces = ['{"name": "cat", "legs": "many"}']
    assert main(["generate", "?", "--model-class", "zoo_models:Animal"]) == 1
    assert "zoo_models:Animal" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module_here:A", "cannot import no_such_module_here"),
        ("json:NoSuchClass", "the module json has no NoSuchClass"),
        ("json:loads.x", "has no loads.x"),
    ],
)
def test_model_class_that_is_missing(name, message, capfd):
    assert main(["generate", "?", "--model-class", name]) == 3
    assert message in capfd.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"type": "object",\n  oops}', "line 2, column 3"),
        (b"", "line 1, column 1"),
        (b'{"minimum": NaN}', "line 1, column 13: NaN is not JSON"),
        (b'{"type": "string", "type": "null"}', "the key 'type' occurs twice"),
        (b'{"title": "caf\xe9"}', "byte 0xe9 at byte offset 14 is not UTF-8"),
        (b"\xff\xfe{\x00}\x00", "it looks like UTF-16"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"minimum": ' + b"9" * 5000 + b"}", "a number of 5000 digits is too long"),
        (b'{"type": 5}', "/type"),
        (b'{"type": "strnig"}', "/type"),
        (b'{"properties": {"a": {"pattern": "("}}}', "/properties/a/pattern"),
        (b"[]", "schema"),
    ],
)
@pytest.mark.parametrize("command", ["generate", "check"])
def test_bad_schema_names_the_place(command, content, message, tmp_path, engine, capfd):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    argv = ["check", str(path)] if command == "check" else ["generate", "?", "--schema", str(path)]
    assert main(argv) in (1, 3)
    error = capfd.readouterr().err
    assert error.startswith(f"constrain: error: {path}: ")
    assert message in error
    assert "Traceback" not in error


def test_missing_and_unreadable_schema(tmp_path, capfd):
    assert main(["check", str(tmp_path / "absent.json")]) == 3
    assert "absent.json: No such file or directory" in capfd.readouterr().err
    assert main(["check", str(tmp_path)]) == 3
    assert "Is a directory" in capfd.readouterr().err


def test_byte_order_mark_is_accepted(tmp_path, capfd):
    path = tmp_path / "bom.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(SCHEMA).encode())
    assert main(["check", str(path)]) == 0


def test_check_reports(schema_file, capsys):
    assert main(["check", schema_file]) == 0
    assert f"{schema_file}: ok" in capsys.readouterr().out
    assert main(["check", schema_file, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert report["schema"] == schema_file
    assert report["size"]["formulas"] > 2


def _file(folder, schema):
    path = folder / "schema.json"
    path.write_text(json.dumps(schema))
    return str(path)


def test_check_finds_errors(tmp_path, capsys):
    text = {"type": "string", "minLength": 5, "maxLength": 3}
    path = _file(tmp_path, {"type": "object", "properties": {"a": text}})
    assert main(["check", path]) == 1
    out = capsys.readouterr().out
    assert out.startswith(f"{path}: 1 error")
    assert "/properties/a: no value satisfies this" in out
    assert main(["check", path, "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert report["report"]["severities"]["error"] == 1
    assert report["report"]["findings"][0]["code"] == "contradiction"


def test_check_an_unsatisfiable_schema(tmp_path, capsys):
    path = _file(tmp_path, {"type": "integer", "minimum": 3, "maximum": 2})
    assert main(["check", path]) == 1
    assert "minimum 3 and maximum 2" in capsys.readouterr().out


def test_check_strict_fails_on_warnings(tmp_path, capsys):
    path = _file(tmp_path, {"type": "integer", "minimun": 3})
    assert main(["check", path]) == 0
    assert "did you mean 'minimum'?" in capsys.readouterr().out
    assert main(["check", path, "--strict"]) == 1
    assert main(["check", _file(tmp_path, {"type": "integer"}), "--strict"]) == 0


def test_check_takes_policies(tmp_path, capsys):
    path = _file(tmp_path, {"type": "string", "format": "date", "maxLength": 4})
    assert main(["check", path]) == 1
    assert main(["check", path, "--formats", "ignore"]) == 0
    path = _file(tmp_path, {"exclusiveMinimum": True, "minimum": 1, "type": "integer"})
    assert main(["check", path, "--strict"]) == 1
    assert main(["check", path, "--strict", "--draft", "4"]) == 0
    path = _file(tmp_path, {"contentEncoding": "base64", "const": "?"})
    assert main(["check", path]) == 0
    assert main(["check", path, "--content", "assert"]) == 1
    capsys.readouterr()


def test_check_error_as_json(tmp_path, capsys):
    path = tmp_path / "bad.json"
    path.write_text('{"properties": {"a": {"type": 5}}}')
    assert main(["check", str(path), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert report["error"]["kind"] == "SchemaError"
    assert report["error"]["pointer"] == "/properties/a/type"


def test_interrupt_is_130(monkeypatch, schema_file, capfd):
    def interrupted(name, spec):
        raise KeyboardInterrupt

    monkeypatch.setattr(_runtime, "open_engine", interrupted)
    assert main(["generate", "?", "--schema", schema_file]) == 130
    assert capfd.readouterr().err == "constrain: interrupted\n"


def test_a_defect_is_a_sentence_and_debug_shows_the_traceback(monkeypatch, schema_file, capfd):
    def broken(name, spec):
        raise KeyError("x")

    monkeypatch.setattr(_runtime, "open_engine", broken)
    assert main(["generate", "?", "--schema", schema_file]) == 70
    error = capfd.readouterr().err
    assert error.startswith("constrain: error: internal error: KeyError")
    assert "Traceback" not in error
    monkeypatch.setenv("CONSTRAIN_DEBUG", "1")
    assert main(["generate", "?", "--schema", schema_file]) == 70
    assert "Traceback" in capfd.readouterr().err


_FAKE_GENERATE = """
import sys
from types import SimpleNamespace
from constrain.cli import _runtime
from constrain.cli.main import main
class Engine:
    def generate(self, messages, sampling, on_text):
        for _ in range(2000):
            on_text("x" * 1000)
        return SimpleNamespace(text="", token_ids=[], finish_reason="stop")
_runtime.open_engine = lambda name, spec: Engine()
sys.exit(main(["generate", "?", "--choice", "x"]))
"""


_NO_SPACE = b"constrain: error: cannot write to standard output: No space left on device\n"


def test_broken_pipe_is_quiet():
    process = subprocess.Popen(
        [sys.executable, "-c", _FAKE_GENERATE], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(30) == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_full_disk_is_a_sentence():
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", _FAKE_GENERATE], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 3
    assert done.stderr == _NO_SPACE


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_full_disk_for_a_report(schema_file):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "constrain.cli", "check", schema_file],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 3
    assert done.stderr == _NO_SPACE


def test_the_command_imports_no_heavy_module():
    code = (
        "import sys, constrain.cli.main as m; m.build_parser(); "
        "print([n for n in ('torch', 'transformers', 'pydantic', 'rich', 'jsonschema') "
        "if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_tidy_json_keeps_numbers_and_spells_strings_plainly():
    text = '{"\\u0061" :1e999 ,\n "b, \\" :":[ 1.10 ,\t"x\\\\"]}'
    assert tidy_json('"\\u00e9\\n\\ud83d\\ude00"') == '"é\\n😀"'
    assert tidy_json(text) == '{"a": 1e999, "b, \\" :": [1.10, "x\\\\"]}'
    assert tidy_json("[]") == "[]"


def test_parse_json_places():
    with pytest.raises(JsonInputError, match="line 7, column 5: "):
        parse_json('{"a": 1,\n    oops}', 6)
    with pytest.raises(JsonInputError, match="column 15: -Infinity is not JSON"):
        parse_json('["-Infinity", -Infinity]')


def test_decode_utf8_counts_from_the_start_of_the_file():
    with pytest.raises(JsonInputError, match="byte offset 102"):
        decode_utf8(b"ab\xff", 100)
    assert decode_utf8(b"\xef\xbb\xbfa") == "a"


def test_outline_shows_every_key():
    schema = {
        "properties": {
            "kind": {"enum": ["a", 1, None], "description": "what it is"},
            "when": {"$ref": "#/$defs/d~1t"},
            "list": {"items": {"properties": {"x": {"type": ["string", "null"]}, "y": True}}},
            "either": {"anyOf": [{"type": "string"}, {"const": 5}, {"type": "string"}]},
            "self": {"$ref": "#"},
        },
        "$defs": {"d/t": {"type": "string", "description": "a day"}},
    }
    lines = outline(schema).splitlines()
    assert lines[1] == '  "kind": "a" | 1 | null (what it is),'
    assert lines[2] == '  "when": a day,'
    assert lines[3] == '  "list": [{"x": string | null, "y": any}, ...],'
    assert lines[4] == '  "either": string | 5,'
    assert lines[5].startswith('  "self": {"kind": ')
    assert outline(True) == ""
    assert outline({"$ref": "#/nowhere"}) == ""
    assert outline({"enum": list(range(20))}).endswith("11 | ...")


def test_template():
    record = {"a": "x", "b": {"c": [1, "é"]}, "schema": "mine"}
    extras = {"schema": "theirs", "outline": "- f"}
    text = Template("{a} {b.c} {{a}} {schema} {outline} {record}").render(record, extras)
    assert text == 'x [1, "é"] {a} mine - f a: x\nb: {"c": [1, "é"]}\nschema: mine'
    assert Template("{record}").render("plain {text}", extras) == "plain {text}"
    assert Template("{a.__class__}").fields == ["a.__class__"]
    for name in ("{zz}", "{a.__class__}", "{b.d}"):
        with pytest.raises(TemplateFieldError, match="the record lacks"):
            Template(name).render(record, extras)
    for lone in ("a {} b", "a { b", "a } b", "{a{b}}"):
        with pytest.raises(CliError, match="brace"):
            Template(lone)


def test_generate_with_grammars(engine, tmp_path, capfd):
    lark = tmp_path / "g.lark"
    (tmp_path / "parts.lark").write_text("NUM: /[0-9]/", encoding="utf-8")
    lark.write_text("%import parts.NUM\nmain: NUM+", encoding="utf-8")
    gbnf = tmp_path / "g.gbnf"
    gbnf.write_text('root ::= "a"\nother ::= "b"', encoding="utf-8")
    for options in (
        ["--lark", str(lark), "--start", "main"],
        ["--gbnf", str(gbnf)],
        ["--gbnf", str(gbnf), "--start", "other"],
        ["--grammar", "semver"],
        ["--grammar", "csv", "--set", 'header=["a", "b"]', "--set", "delimiter=;"],
    ):
        assert main(["generate", "?", *options]) == 0
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"constrain: warning: {gbnf}: ")
    assert "other" in lines[0]


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("--gbnf", 'root ::= "a"\nb ::= c', "FILE:2:7: the rule 'c' is used but not defined"),
        ("--lark", 'start: "a" b', "FILE:1:12: "),
        ("--lark", 'start: "a"\nx: (', "FILE:2:"),
        ("--gbnf", 'root ::= "a" root', "FILE:1:1: "),
        ("--lark", b"start: \xff", "FILE: byte 0xff at byte offset 7"),
    ],
)
def test_errors_in_grammars_name_file_line_and_column(
    option, text, message, tmp_path, engine, capfd
):
    path = tmp_path / "grammar.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for argv, code in (
        (["generate", "?", option, str(path)], 3),
        (["check", option, str(path)], 1),
    ):
        if isinstance(text, bytes):
            code = 3
        assert main(argv) == code
        assert message.replace("FILE", str(path)) in capfd.readouterr().err
    assert main(["check", option, str(tmp_path / "missing")]) == 3
    assert "cannot read the grammar" in capfd.readouterr().err


def test_check_reports_on_grammars(tmp_path, capfd):
    path = tmp_path / "g.gbnf"
    path.write_text('root ::= "a"+', encoding="utf-8")
    assert main(["check", "--gbnf", str(path)]) == 0
    assert f"{path}: ok" in capfd.readouterr().out
    assert main(["check", "--grammar", "iso8601", "--json"]) == 0
    shown = json.loads(capfd.readouterr().out)
    assert shown["ok"] is True
    assert shown["size"]["states"] > 50
    path.write_text('root ::= "a"\nb ::= "c"', encoding="utf-8")
    assert main(["check", "--gbnf", str(path)]) == 0
    assert "1 warning\n" in capfd.readouterr().out
    assert main(["check", "--gbnf", str(path), "--strict", "--json"]) == 1
    assert "'b'" in json.loads(capfd.readouterr().out)["warnings"][0]
    path.write_text('root ::= "a" root', encoding="utf-8")
    assert main(["check", "--gbnf", str(path), "--json"]) == 1
    assert json.loads(capfd.readouterr().out)["error"]["kind"] == "EmptyGrammarError"


def test_grammars_are_listed_and_shown(capsys):
    assert main(["grammars"]) == 0
    out = capsys.readouterr().out
    assert "\niso8601 " in out
    assert len(out.splitlines()) >= 13
    assert main(["grammars", "sql", "--about"]) == 0
    assert "Leaves out" in capsys.readouterr().out
    assert main(["grammars", "csv", "--set", 'header=["a", "b"]']) == 0
    assert '"a,b"' in capsys.readouterr().out
    assert main(["grammars", "--json"]) == 0
    assert {"name", "format", "parameters"} < json.loads(capsys.readouterr().out)[0].keys()
    assert main(["grammars", "csv"]) == 2
    assert "needs the parameter 'header'" in capsys.readouterr().err
