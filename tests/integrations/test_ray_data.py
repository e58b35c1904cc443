"""Extraction on Ray Data with two workers, one of which is killed; needs Ray.

In an environment with Ray: ``python -m pytest tests/integrations/test_ray_data.py``.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")

from constrain.cli import extract as command  # noqa: E402
from constrain.cli import main as cli  # noqa: E402
from constrain.errors import ConstrainError  # noqa: E402
from constrain.integrations import ray_data  # noqa: E402
from constrain.integrations.ray_data import Extractor, vllm_config, vllm_row  # noqa: E402
from tests.integrations.engines.random_engine import open_engine  # noqa: E402

SCHEMA = {
    "type": "object",
    "properties": {
        "word": {"type": "string", "pattern": "^[a-z]{1,8}$"},
        "kind": {"enum": ["a", "b", "c"]},
    },
    "required": ["word", "kind"],
}
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def pids(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A local Ray with four CPUs; the folder where workers leave their process ids."""
    folder = tmp_path_factory.mktemp("pids")
    # the workers need the tests, but not the package's folder in the place of the package
    importable = tmp_path_factory.mktemp("path")
    (importable / "tests").symlink_to(ROOT / "tests")
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(importable)]))
    variables = {
        "PYTHONPATH": path,
        "RANDOM_ENGINE_PIDS": str(folder),
        "RANDOM_ENGINE_SECONDS": "0.02",
    }
    ray.init(
        num_cpus=4,
        include_dashboard=False,
        log_to_driver=False,
        runtime_env={"env_vars": variables},
    )
    yield folder
    ray.shutdown()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("schema.json").write_text(json.dumps(SCHEMA))
    original = ray_data.extract_lines

    def with_engine(*arguments: Any, **options: Any) -> Any:
        return original(*arguments, engine=open_engine, **options)

    monkeypatch.setattr(ray_data, "extract_lines", with_engine)
    return tmp_path


def records(count: int, special: dict[int, str] | None = None) -> None:
    rows = [{"id": n, "text": (special or {}).get(n, f"record {n}")} for n in range(count)]
    Path("in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]


ARGV = ["extract", "in.jsonl", "--schema", "schema.json", "-o", "out.jsonl", "--workers", "2"]


def assert_valid(value: Any) -> None:
    assert set(value) == {"word", "kind"}
    assert value["word"].isascii()
    assert 1 <= len(value["word"]) <= 8
    assert value["kind"] in "abc"


def test_a_worker_is_killed(
    pids: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """200 records, one worker of two killed in the middle: every record is there once."""
    records(200, {17: "STOP", 101: "FAIL here"})
    for old in pids.iterdir():
        old.unlink()
    killed: list[int] = []
    write = command._write

    def watching(found: Any, *arguments: Any, **options: Any) -> None:
        def watched() -> Iterator[Any]:
            for number, line in enumerate(found):
                if number == 60:
                    workers = [int(file.name) for file in pids.iterdir()]
                    assert len(workers) == 2
                    os.kill(workers[0], signal.SIGKILL)
                    killed.append(workers[0])
                yield line

        write(watched(), *arguments, **options)

    monkeypatch.setattr(command, "_write", watching)
    assert cli.main([*ARGV, "--batch-size", "4"]) == 1  # two records fail
    assert len(killed) == 1
    assert len(list(pids.iterdir())) == 3  # the worker was started again
    found = lines()
    assert sorted(line["record"] for line in found) == list(range(1, 201))
    failed = {line["id"]: line["error"]["kind"] for line in found if "error" in line}
    assert failed == {17: "max_tokens", 101: "generation"}
    for line in found:
        if "data" in line:
            assert_valid(line["data"])
    error = capsys.readouterr().err
    assert "200 of 200 records, 2 failed" in error
    assert " 0 tokens" not in error


def test_a_record_that_kills_every_worker_ends_the_run(
    pids: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was written stays; without that record, --resume finishes the run."""
    monkeypatch.setattr(ray_data, "_RESTARTS", 1)
    records(40, {25: "KILL"})
    start = time.monotonic()
    assert cli.main([*ARGV, "--batch-size", "2"]) == 3
    assert time.monotonic() - start < 120
    error = capsys.readouterr().err
    assert "the workers failed" in error
    assert "--resume" in error
    before = lines() if Path("out.jsonl").exists() else []
    assert len(before) < 40
    assert all("data" in line for line in before)
    # the same digest would be needed for the record: only those before it are kept
    records(40, {25: "KILL"})
    monkeypatch.setattr(ray_data, "_LineExtractor", _Forgiving)
    assert cli.main([*ARGV, "--batch-size", "2", "--resume"]) == 1
    found = lines()
    assert found[: len(before)] == before
    assert sorted(line["record"] for line in found) == list(range(1, 41))
    assert [line["id"] for line in found if "error" in line] == [25]


class _Forgiving(ray_data._LineExtractor):
    """Reports the record that kills."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        engine = self._engine
        one = engine._one

        def spared(prompt: str, sampling: Any) -> Any:
            if "KILL" in prompt:
                raise RuntimeError("spared")
            return one(prompt, sampling)

        engine._one = spared


def test_resume(pids: Path, folder: Path) -> None:
    """An output that stops anywhere is finished, with the lines of another order."""
    records(30)
    assert cli.main([*ARGV, "--batch-size", "4", "--quiet"]) == 0
    whole = Path("out.jsonl").read_text().splitlines()
    Path("out.jsonl").write_text("\n".join(whole[10:20]) + "\n" + whole[3][:30])
    assert cli.main([*ARGV, "--batch-size", "4", "--quiet", "--resume"]) == 0
    assert Path("out.jsonl").read_text().splitlines()[:10] == whole[10:20]
    assert sorted(line["record"] for line in lines()) == list(range(1, 31))
    # and by the command without workers, which takes it for its own
    assert cli.main([*ARGV[:-2], "--quiet", "--resume"]) == 0


def test_seeds_do_not_depend_on_workers(pids: Path, folder: Path) -> None:
    records(12)
    options = ["--batch-size", "1", "--quiet", "--seed", "5", "--temperature", "1"]
    assert cli.main([*ARGV, *options]) == 0
    first = {line["record"]: line["data"] for line in lines()}
    assert cli.main([*ARGV[:-1], "1", *options, "--overwrite"]) == 0
    assert {line["record"]: line["data"] for line in lines()} == first


def test_extractor_in_a_pipeline(pids: Path) -> None:
    special = {3: "STOP", 5: "FAIL"}
    rows = [{"number": n, "text": special.get(n, f"row {n}")} for n in range(20)]
    dataset = ray.data.from_items(rows, override_num_blocks=5).map_batches(
        Extractor,
        fn_constructor_kwargs={"schema": SCHEMA, "prompt": "{text}", "engine": open_engine},
        compute=ray.data.ActorPoolStrategy(size=2),
        batch_size=4,
    )
    found = sorted(dataset.take_all(), key=lambda row: row["number"])
    assert [row["number"] for row in found] == list(range(20))
    for row in found:
        if row["number"] in special:
            kinds = {3: "max_tokens", 5: "generation"}
            assert row["error_kind"] == kinds[row["number"]]
            assert row["data"] is None
            assert row["error"]
        else:
            assert row["error"] is None
            assert_valid(json.loads(row["data"]))


def test_extractor_without_ray_running() -> None:
    """It is a plain class: columns in, columns out."""
    import numpy as np

    extractor = Extractor(json.dumps(SCHEMA), prompt="{a}", engine=open_engine)
    result = extractor({"a": np.array(["x", "y"]), "b": np.array([1, 2])})
    assert result["b"].tolist() == [1, 2]
    for text in result["data"]:
        assert_valid(json.loads(text))
    with pytest.raises(ConstrainError, match="'data' already"):
        extractor({"data": np.array([1])})
    missing = Extractor(SCHEMA, prompt="{c}", engine=open_engine)({"a": np.array(["x"])})
    assert missing["error_kind"].tolist() == ["record"]


# --- ray.data.llm --------------------------------------------------------------------------------


def test_vllm_rows() -> None:
    row = vllm_row([{"role": "user", "content": "x"}], {"json_schema": SCHEMA}, max_tokens=9)
    argument = row["sampling_params"]["extra_args"]["constrain"]
    assert json.loads(argument) == {"json_schema": SCHEMA}
    assert row["sampling_params"]["max_tokens"] == 9
    free = vllm_row([], None, max_tokens=5, temperature=0.3)
    assert free["sampling_params"] == {"max_tokens": 5, "temperature": 0.3}
    with pytest.raises(ConstrainError):
        vllm_row([], {"regex": "("}, max_tokens=9)


def test_vllm_config() -> None:
    pytest.importorskip("pydantic")
    pytest.importorskip("aiohttp")
    pytest.importorskip("ray.data.llm")
    config = vllm_config(
        "some/model", engine_kwargs={"max_model_len": 512}, batch_size=16, concurrency=2
    )
    assert config.model_source == "some/model"
    assert config.engine_kwargs["logits_processors"] == [
        "constrain.integrations.vllm:LogitsProcessor"
    ]
    assert config.engine_kwargs["max_model_len"] == 512
