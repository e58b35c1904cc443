"""`constrain extract` end to end with a fake engine: records, errors, resuming, whole lines."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from constrain.cli import _runtime
from constrain.cli._errors import CliError
from constrain.cli._output import LineWriter
from constrain.cli.main import main

SCHEMA = {
    "type": "object",
    "properties": {
        "word": {"type": "string", "description": "the word", "maxLength": 20},
        "kind": {"enum": ["a", "b"]},
    },
    "required": ["word"],
}


class FakeEngine:
    """Answers each prompt with its last word; special words make it fail in each possible way."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.systems: list[str | None] = []
        self.seeds: list[int | None] = []

    def generate_batch(self, batch, sampling, on_tokens):
        prompts = [messages[-1]["content"] for messages in batch]
        self.batches.append(prompts)
        self.seeds.append(sampling.seed)
        self.systems += [m[0]["content"] if m[0]["role"] == "system" else None for m in batch]
        if any("EXPLODE" in prompt for prompt in prompts):
            raise RuntimeError("the prompt is too long\nmore")
        return [self.answer(prompt, sampling, on_tokens) for prompt in prompts]

    def answer(self, prompt, sampling, on_tokens):
        on_tokens(3)
        text = json.dumps({"word": prompt.split()[-1].strip('{}"')}, ensure_ascii=False)
        if "ENDLESS" in prompt:
            return SimpleNamespace(
                text=text[:-3], token_ids=[1] * 3, finish_reason="length", is_complete=False
            )
        if "NOWHERE" in prompt:
            return SimpleNamespace(text="{", token_ids=[1], finish_reason="dead_end")
        if "JUST" in prompt:
            return SimpleNamespace(
                text=text, token_ids=[1] * 512, finish_reason="length", is_complete=True
            )
        if "INVALID" in prompt:
            text = '{"word": '
        if "BIG" in prompt:
            text = '{\n "word":1e999 }'
        return SimpleNamespace(text=text, token_ids=[1] * 3, finish_reason="stop")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("schema.json").write_text(json.dumps(SCHEMA))
    return tmp_path


@pytest.fixture
def engine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    fake = FakeEngine()
    monkeypatch.setattr(_runtime, "open_engine", lambda name, spec: fake)
    return fake


def write_records(path: str, values: list[object]) -> None:
    Path(path).write_text("".join(json.dumps(value) + "\n" for value in values))


def lines_of(path: str | Path) -> list[dict]:
    text = Path(path).read_text()
    assert text == "" or text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def extract(*argv: str) -> int:
    return main(["extract", *argv, "--schema", "schema.json"])


def test_jsonl_to_standard_output(engine, capfd):
    write_records("in.jsonl", [{"id": "T-1", "text": "red"}, {"text": "grün"}])
    assert extract("in.jsonl", "--prompt", "say {text}") == 0
    captured = capfd.readouterr()
    first, second = (json.loads(line) for line in captured.out.splitlines())
    assert first["record"] == 1
    assert first["file"] == "in.jsonl"
    assert first["id"] == "T-1"
    assert first["data"] == {"word": "red"}
    assert second["data"] == {"word": "grün"}
    assert "id" not in second
    assert "2 of 2 records, 0 failed, 6 tokens" in captured.err


def test_default_prompt_shows_the_record_and_the_shape(engine):
    write_records("in.jsonl", [{"text": "red"}])
    assert extract("in.jsonl", "-o", "out.jsonl") == 0
    (prompt,) = engine.batches[0]
    assert prompt == "text: red"
    assert '"word": the word,\n  "kind": "a" | "b"\n}' in (engine.systems[0] or "")


def test_batches_keep_the_order_and_seeds_follow_positions(engine):
    write_records("in.jsonl", [{"text": f"w{n}"} for n in range(7)])
    argv = ["in.jsonl", "-o", "out.jsonl", "--prompt", "{text}", "--batch-size", "3"]
    assert extract(*argv, "--seed", "10") == 0
    assert [len(batch) for batch in engine.batches] == [3, 3, 1]
    assert engine.seeds == [10, 13, 16]
    assert [line["data"]["word"] for line in lines_of("out.jsonl")] == [f"w{n}" for n in range(7)]


def test_csv_tsv_and_text(engine):
    Path("a.csv").write_bytes('\ufeffid,text\n1,"red,\nwith a"\n2,blue\n'.encode())
    Path("b.tsv").write_text("id\ttext\n3\tgreen\n")
    Path("c.txt").write_text("one text\nof two lines")
    assert extract("a.csv", "b.tsv", "-o", "out.jsonl", "--prompt", "{id} {text}") == 0
    assert engine.batches == [["1 red,\nwith a", "2 blue", "3 green"]]
    assert extract("c.txt", "-o", "text.jsonl", "--prompt", "say {record}") == 0
    assert engine.batches[-1] == ["say one text\nof two lines"]


def test_failing_records_are_written_and_do_not_stop_the_run(engine):
    Path("in.jsonl").write_bytes(
        b'{"text": "fine"}\n'
        b"[1, 2]\n"
        b'{"text": oops}\n'
        b'\n{"text": "caf\xe9"}\n'
        b'{"other": "x"}\n'
        b'{"text": "EXPLODE"}\n'
        b'{"text": "ENDLESS words"}\n'
        b'{"text": "INVALID"}\n'
        b'{"text": "a", "text": "b"}\n'
        b'{"text": "NOWHERE"}\n'
        b'{"text": "JUST in time"}\n'
        b'{"text": "BIG number"}'
    )
    assert extract("in.jsonl", "-o", "out.jsonl", "--prompt", "{text}") == 1
    lines = lines_of("out.jsonl")
    assert [line["record"] for line in lines] == list(range(1, 13))
    errors = [line.get("error", {}) for line in lines]
    assert [error.get("kind") for error in errors] == [
        None,
        "record",
        "record",
        "record",
        "record",
        "generation",
        "max_tokens",
        "validation",
        "record",
        "dead_end",
        None,
        None,
    ]
    assert errors[1]["message"] == "line 2: a record must be a JSON object, not an array"
    assert errors[2]["message"].startswith("line 3, column 10: ")
    assert errors[3]["message"] == "line 5: byte 0xe9 at byte offset 53 is not UTF-8"
    assert "the prompt names the field 'text'" in errors[4]["message"]
    assert errors[5]["message"] == "RuntimeError: the prompt is too long"
    assert errors[6]["message"] == (
        "the output was cut off after 3 tokens, where the model's context is full"
    )
    assert lines[6]["text"] == '{"word": "word'
    assert all(("data" in line) != ("error" in line) for line in lines)
    assert '"data": {"word": 1e999}}' in Path("out.jsonl").read_text()


def test_a_table_row_of_the_wrong_width_is_a_failed_record(engine):
    Path("a.csv").write_text("id,text\n1,red\n2\n3,blue\n")
    assert extract("a.csv", "-o", "out.jsonl", "--prompt", "{text}") == 1
    lines = lines_of("out.jsonl")
    assert [("error" in line) for line in lines] == [False, True, False]
    assert lines[1]["error"]["message"] == "line 3: the row has 1 field, the header 2"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"id,text\n1,caf\xe9\n", "a.csv, line 2: byte 0xe9 at byte offset 13"),
        ("a.csv", b"id,id\n1,2\n", "a.csv, line 1: the header names 'id' twice"),
        ("a.csv", b"id,,x\n1,2,3\n", "a.csv, line 1: column 2 of the header has no name"),
        ("a.csv", b'id,text\n1,"ab"c\n', "a.csv, line 2: "),
        ("a.csv", b'id,text\n1,"open\n', "a.csv, line 2: "),
    ],
)
def test_a_table_that_cannot_be_read_stops_before_the_model(
    name, content, message, folder, monkeypatch, capfd
):
    monkeypatch.setattr(_runtime, "open_engine", lambda *_: pytest.fail("a model was loaded"))
    Path(name).write_bytes(content)
    assert extract(name, "-o", "out.jsonl") == 3
    error = capfd.readouterr().err
    assert error.startswith("constrain: error: ")
    assert message in error
    assert not Path("out.jsonl").exists()


def test_missing_inputs_and_unknown_formats(folder, engine, capfd):
    assert extract("absent.jsonl") == 3
    assert "cannot read absent.jsonl: No such file or directory" in capfd.readouterr().err
    Path("a.xyz").write_text("x")
    assert extract("a.xyz") == 2
    assert "--input-format" in capfd.readouterr().err
    assert extract("a.xyz", "--input-format", "text") == 0
    assert extract("a.xyz", "./a.xyz", "--input-format", "text") == 2
    Path("sub.txt").mkdir()
    assert extract("sub.txt") == 3
    assert "Is a directory" in capfd.readouterr().err


def test_model_class_validates(engine, folder, monkeypatch):
    Path("shapes_models.py").write_text(
        "import pydantic\n"
        "class W(pydantic.BaseModel):\n"
        "    word: str\n"
        "    @pydantic.field_validator('word')\n"
        "    @classmethod\n"
        "    def no_x(cls, value):\n"
        "        if 'x' in value:\n"
        "            raise ValueError('has an x')\n"
        "        return value\n"
    )
    monkeypatch.setattr(sys, "path", [*sys.path])
    write_records("in.jsonl", [{"text": "box"}, {"text": "cat"}])
    argv = ["extract", "in.jsonl", "--model-class", "shapes_models:W", "--prompt", "{text}"]
    assert main([*argv, "-o", "out.jsonl"]) == 1
    lines = lines_of("out.jsonl")
    assert lines[0]["error"]["kind"] == "validation"
    assert "has an x" in lines[0]["error"]["message"]
    assert lines[1]["data"] == {"word": "cat"}


def test_an_existing_output_is_not_touched_without_being_told(engine, capfd):
    write_records("in.jsonl", [{"text": "red"}])
    Path("out.jsonl").write_text("precious\n")
    assert extract("in.jsonl", "-o", "out.jsonl") == 3
    assert "--resume" in capfd.readouterr().err
    assert extract("in.jsonl", "-o", "out.jsonl", "--resume") == 3
    assert "not a line that `constrain extract` wrote" in capfd.readouterr().err
    assert Path("out.jsonl").read_text() == "precious\n"
    Path("out.jsonl").write_text("precious without an end of line")
    assert extract("in.jsonl", "-o", "out.jsonl", "--resume") == 3
    assert Path("out.jsonl").read_text() == "precious without an end of line"
    assert extract("in.jsonl", "-o", "out.jsonl", "--overwrite") == 0
    assert len(lines_of("out.jsonl")) == 1
    assert extract("in.jsonl", "--resume") == 2
    assert extract("in.jsonl", "-o", "in.jsonl", "--overwrite") == 2
    assert lines_of("in.jsonl") == [{"text": "red"}]


def test_overwriting_waits_for_the_model(folder, monkeypatch):
    def unknown(name, spec):
        raise CliError("cannot load the model nope")

    monkeypatch.setattr(_runtime, "open_engine", unknown)
    write_records("in.jsonl", [{"text": "red"}])
    Path("out.jsonl").write_text("old\n")
    assert extract("in.jsonl", "-o", "out.jsonl", "--overwrite") == 3
    assert Path("out.jsonl").read_text() == "old\n"
    assert extract("in.jsonl", "-o", "new.jsonl") == 3
    assert not Path("new.jsonl").exists()


def test_resume_after_a_cut_at_every_byte(engine):
    write_records("in.jsonl", [{"text": f"w{n}é"} for n in range(4)])
    argv = ["in.jsonl", "-o", "out.jsonl", "--prompt", "{text}", "--batch-size", "2", "--quiet"]
    assert extract(*argv) == 0
    whole = Path("out.jsonl").read_bytes()
    step = 7  # every seventh byte, and all bytes around the ends of lines
    ends = [i for i, byte in enumerate(whole) if byte == 10]
    cuts = set(range(0, len(whole) + 1, step)) | {e + d for e in ends for d in (-1, 0, 1)}
    for cut in sorted(cuts):
        Path("out.jsonl").write_bytes(whole[:cut])
        engine.batches.clear()
        assert extract(*argv, "--resume") == 0
        assert Path("out.jsonl").read_bytes() == whole, cut
        done = whole[:cut].count(b"\n")
        assert sum(len(batch) for batch in engine.batches) == 4 - done


def test_resume_detects_what_has_changed(engine, capfd):
    write_records("in.jsonl", [{"text": "red"}, {"text": "blue"}])
    argv = ["in.jsonl", "-o", "out.jsonl", "--prompt", "{text}"]
    assert extract(*argv) == 0
    before = Path("out.jsonl").read_bytes()
    write_records("in.jsonl", [{"text": "red"}, {"text": "green"}])
    assert extract(*argv, "--resume") == 3
    assert "in.jsonl, line 2 has changed since line 2" in capfd.readouterr().err
    write_records("in.jsonl", [{"text": "red"}])
    assert extract(*argv, "--resume") == 3
    assert "record 2 of in.jsonl is not among the inputs" in capfd.readouterr().err
    write_records("in.jsonl", [{"text": "red"}, {"text": "blue"}, {"text": "new"}])
    assert extract(*argv[:-1], "other {text}", "--resume") == 3
    assert "another schema, prompt or model" in capfd.readouterr().err
    assert Path("out.jsonl").read_bytes() == before
    Path("out.jsonl").write_bytes(before + before)
    assert extract(*argv, "--resume") == 3
    assert "was written before" in capfd.readouterr().err
    Path("out.jsonl").write_bytes(before)
    assert extract(*argv, "--resume") == 0
    assert [line["record"] for line in lines_of("out.jsonl")] == [1, 2, 3]


def test_resume_keeps_the_exit_code_of_failed_records(engine):
    write_records("in.jsonl", [{"text": "ENDLESS"}, {"text": "blue"}])
    argv = ["in.jsonl", "-o", "out.jsonl", "--prompt", "{text}"]
    assert extract(*argv) == 1
    engine.batches.clear()
    assert extract(*argv, "--resume") == 1
    assert engine.batches == []


def test_two_writers_exclude_each_other(engine, capfd):
    write_records("in.jsonl", [{"text": "red"}])
    with open("out.jsonl", "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert extract("in.jsonl", "-o", "out.jsonl") == 3
    assert "another process is writing to out.jsonl" in capfd.readouterr().err


def test_an_interrupt_leaves_whole_lines_and_says_how_to_go_on(engine, monkeypatch, capfd):
    write_records("in.jsonl", [{"text": f"w{n}"} for n in range(4)])
    answer = engine.answer

    def interrupted(prompt, sampling, on_tokens):
        if prompt == "w3":
            raise KeyboardInterrupt
        return answer(prompt, sampling, on_tokens)

    monkeypatch.setattr(engine, "answer", interrupted)
    argv = ["in.jsonl", "-o", "out.jsonl", "--prompt", "{text}", "--batch-size", "2"]
    assert extract(*argv) == 130
    assert "--resume" in capfd.readouterr().err
    assert [line["record"] for line in lines_of("out.jsonl")] == [1, 2]
    monkeypatch.setattr(engine, "answer", answer)
    assert extract(*argv, "--resume") == 0
    assert [line["data"]["word"] for line in lines_of("out.jsonl")] == ["w0", "w1", "w2", "w3"]


def test_the_writer_cuts_back_a_line_that_did_not_fit(tmp_path, monkeypatch):
    path = tmp_path / "out"
    with open(path, "wb") as file:
        writer = LineWriter(file.fileno(), "out")
        writer.write("first")
        real = os.write
        parts = iter([3, None])

        def short(descriptor: int, data: bytes) -> int:
            size = next(parts)
            if size is None:
                raise OSError(28, "No space left on device")
            return real(descriptor, data[:size])

        monkeypatch.setattr(os, "write", short)
        with pytest.raises(CliError, match="cannot write to out: No space left on device"):
            writer.write("second")
        monkeypatch.setattr(os, "write", real)
        assert path.read_bytes() == b"first\n"
        writer.write("third")
    assert path.read_bytes() == b"first\nthird\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_full_disk(engine, capfd):
    write_records("in.jsonl", [{"text": "red"}])
    assert extract("in.jsonl", "-o", "/dev/full") == 3
    assert "cannot write to /dev/full: No space left on device" in capfd.readouterr().err


_SLOW = """
import sys, time
sys.path.insert(0, sys.argv.pop(1))
from types import SimpleNamespace
from constrain.cli import _runtime
from constrain.cli.main import main
class Engine:
    def generate_batch(self, batch, sampling, on_tokens):
        time.sleep(0.01)
        return [SimpleNamespace(text='{"word": "%s"}' % ("x" * 2000), token_ids=[1],
                                finish_reason="stop") for _ in batch]
_runtime.open_engine = lambda name, spec: Engine()
sys.exit(main(sys.argv[1:]))
"""
ROOT = str(Path(__file__).resolve().parents[2])
ARGV = ["extract", "in.jsonl", "-o", "out.jsonl", "--schema", "schema.json", "--batch-size", "1"]


def start(*argv: str, **options) -> subprocess.Popen:
    command = [sys.executable, "-c", _SLOW, ROOT, *argv]
    return subprocess.Popen(command, stderr=subprocess.PIPE, **options)


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_killed_run_resumes_without_repeating_or_losing(signal_number, folder):
    write_records("in.jsonl", [{"text": f"w{n}"} for n in range(60)])
    process = start(*ARGV)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if Path("out.jsonl").exists() and Path("out.jsonl").stat().st_size > 8_000:
            break
        time.sleep(0.005)
    process.send_signal(signal_number)
    _, error = process.communicate(timeout=30)
    expected = 130 if signal_number == signal.SIGINT else -signal_number
    assert process.returncode == expected
    assert b"Traceback" not in error
    written = Path("out.jsonl").read_bytes().count(b"\n")
    assert 0 < written < 60
    again = start(*ARGV, "--resume")
    again.communicate(timeout=60)
    assert again.returncode == 0
    assert [line["record"] for line in lines_of("out.jsonl")] == list(range(1, 61))


def test_a_file_size_limit_leaves_whole_lines(folder):
    """RLIMIT_FSIZE makes the system take a part of a line, as a disk that fills up does."""
    write_records("in.jsonl", [{"text": f"w{n}"} for n in range(5)])

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))

    process = start(*ARGV, preexec_fn=limit)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 3
    assert b"constrain: error: cannot write to out.jsonl: File too large" in error
    assert [line["record"] for line in lines_of("out.jsonl")] == [1, 2]
    again = start(*ARGV, "--resume")
    again.communicate(timeout=60)
    assert [line["record"] for line in lines_of("out.jsonl")] == [1, 2, 3, 4, 5]


def test_a_size_limit_on_redirected_standard_output_leaves_whole_lines(folder):
    write_records("in.jsonl", [{"text": f"w{n}"} for n in range(5)])

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, 5_000))

    with open("redirected.jsonl", "wb") as out:
        argv = ["extract", "in.jsonl", "--schema", "schema.json"]
        process = start(*argv, preexec_fn=limit, stdout=out)
        process.communicate(timeout=60)
    assert process.returncode == 3
    assert [line["record"] for line in lines_of("redirected.jsonl")] == [1, 2]


def test_broken_pipe_is_quiet(folder):
    write_records("in.jsonl", [{"text": f"w{n}"} for n in range(500)])
    process = start("extract", "in.jsonl", "--schema", "schema.json", stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    _, error = process.communicate(timeout=60)
    assert process.returncode == 141
    assert error == b""


def test_standard_input_and_output_as_a_pipe(folder):
    process = start(
        "extract", "-", "--schema", "schema.json", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    out, error = process.communicate(b'{"text": "red"}\n{"text": "blue"}', timeout=60)
    assert process.returncode == 0
    assert [json.loads(line)["record"] for line in out.splitlines()] == [1, 2]
    assert b"2 of 2 records, 0 failed" in error


def test_a_terminal_gets_a_bar_and_no_control_codes_reach_the_output(folder):
    import pty

    write_records("in.jsonl", [{"text": f"w{n}"} for n in range(3)])
    main_end, terminal = pty.openpty()
    command = [sys.executable, "-c", _SLOW, ROOT, *ARGV]
    process = subprocess.Popen(command, stderr=terminal, env={**os.environ, "TERM": "xterm"})
    os.close(terminal)
    shown = b""
    while True:
        try:
            piece = os.read(main_end, 4096)
        except OSError:  # how a Linux terminal says that its other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(main_end)
    assert process.wait(60) == 0
    assert b"tokens/s" in shown
    assert b"3/3 records" in shown
    assert [line["record"] for line in lines_of("out.jsonl")] == [1, 2, 3]
    assert b"\x1b" not in Path("out.jsonl").read_bytes()


def test_quiet_says_nothing(engine, capfd):
    write_records("in.jsonl", [{"text": "red"}])
    assert extract("in.jsonl", "-o", "out.jsonl", "--quiet") == 0
    assert capfd.readouterr().err == ""
