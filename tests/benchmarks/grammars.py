"""Grammars on engines beside each other: the same grammars and texts, in one process, on one core.

Engines take turns grammar by grammar. Where an engine does not read a grammar's format, the text is
converted: `FORMS` and `_for_llguidance` say how. What it then refuses is listed. Cold: the first
compile of a grammar in the process and the first sequence of each text. Warm: compiled again (the
middle of five), and a second sequence of each text.

``python -m tests.benchmarks.grammars --json grammars.json`` prints Markdown tables. It is a report,
not a test: nothing here asserts a time. ``--clock cpu`` is for machines that do other things as well.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import random
import re
import sys
import tokenize
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.benchmarks import engines, tables
from tests.benchmarks.engines import CompileError
from tests.benchmarks.measuring import (
    CLOCKS,
    Clock,
    Result,
    compared,
    gather,
    machine,
    measure_schema,
    run_on,
    settle,
    statistics,
)
from tests.reference import vocabularies

_FILES = Path(__file__).parent / "grammar_files"
_AGAIN = 5
_MOST_BYTES = 4_000


@dataclass(frozen=True)
class GrammarCase:
    """A grammar in its formats ("lark", "gbnf") and texts that belong to it.

    `schema` and `tests` are what `measure_schema` asks for.
    """

    name: str
    schema: dict[str, str]
    contents: Sequence[str] = field(repr=False)

    @property
    def tests(self) -> Sequence[str]:
        """One entry for each text."""
        return self.contents

    def texts(self) -> Iterator[tuple[int, str, bool]]:
        """(number, text, True) of each text."""
        for number, text in enumerate(self.contents):
            yield number, text, True


# -- engines -----------------------------------------------------------------------------------


class ForGrammars:
    """An adapter of `tests.benchmarks.engines` that compiles grammars instead of schemas."""

    def __init__(self, name: str, vocabulary: Any) -> None:
        self.name = name
        self.engine = engines.load(name)(vocabulary, {})
        self.version = self.engine.version
        self.settings = "defaults"
        self.start = self.engine.start

    def compile(self, forms: dict[str, str]) -> Any:
        """Compile one of the grammar's forms afresh. Raises CompileError."""
        return getattr(self, f"_{self.name}")(forms)

    def form_of(self, forms: dict[str, str]) -> str:
        """Which form the engine is given."""
        if self.name in forms:
            return f"{self.name}'s own form"
        if self.name == "xgrammar":
            return "gbnf" if "gbnf" in forms else "none"
        if self.name == "llguidance" and "lark" not in forms:
            return "gbnf, converted by llguidance"
        return "lark" if "lark" in forms else "gbnf"

    def _constrain(self, forms: dict[str, str]) -> Any:
        constrain = self.engine.constrain
        try:
            if "lark" in forms:
                spec = constrain.Lark(forms["lark"], start=forms.get("start", "start"))
            else:
                spec = constrain.Gbnf(forms["gbnf"])
            return constrain.compile(spec, self.engine.vocabulary)
        except constrain.ConstrainError as error:
            raise CompileError(f"{type(error).__name__}: {error}") from error

    def _llguidance(self, forms: dict[str, str]) -> Any:
        text = forms.get("llguidance") or forms.get("lark")
        try:
            grammar = _for_llguidance(forms["gbnf"]) if text is None else text
            matcher = self.engine.matcher(
                self.engine.tokenizer, self.engine.matcher.grammar_from_lark(grammar), log_level=0
            )
        except ValueError as error:
            raise CompileError(str(error)[:200]) from error
        if matcher.is_error():
            raise CompileError(matcher.get_error()[:200])
        return matcher

    def _xgrammar(self, forms: dict[str, str]) -> Any:
        if "gbnf" not in forms:
            raise CompileError("it does not read Lark's format")
        try:
            return self.engine.compiler.compile_grammar(forms["gbnf"])
        except RuntimeError as error:
            raise CompileError(str(error)[:200]) from error


def _for_llguidance(text: str) -> str:
    """llguidance's own converter, which wants each rule on one line."""
    from llguidance.gbnf_to_lark import gbnf_to_lark

    return str(gbnf_to_lark(re.sub(r"\n[ \t]+\|", " |", text)))


# -- grammars and texts ------------------------------------------------------------------------


def _shipped(name: str, label: str = "", **parameters: Any) -> GrammarCase:
    """A grammar that comes with constrain, with the texts of its tests."""
    from constrain import grammars
    from tests.reference.shipped import SHIPPED

    texts = [
        text
        for entry in SHIPPED
        if entry.name == name and entry.parameters == parameters
        for text in entry.texts
    ]
    form = grammars.info(name).format
    return GrammarCase(label or name, {form: grammars.text(name, **parameters)}, texts)


def _own(name: str, texts: Sequence[str], *forms: str) -> GrammarCase:
    """A grammar of `grammar_files`."""
    found = {form: (_FILES / f"{name}.{form}").read_text(encoding="utf-8") for form in forms}
    return GrammarCase("-".join((name, *forms[:1])), found, texts)


_SQL = [
    "SELECT name, population FROM city WHERE population > 1000000 ORDER BY population DESC LIMIT 10",
    "SELECT count(*) AS n, country FROM city GROUP BY country HAVING count(*) >= 2 ORDER BY n",
    "SELECT c.name, p.area FROM city AS c INNER JOIN place AS p ON c.id = p.city_id WHERE p.area "
    "BETWEEN 10 AND 20.5 AND c.name LIKE 'B%' OR c.country IS NOT NULL",
    "SELECT DISTINCT a, b + 2 * (c - 1) FROM t WHERE a IN (SELECT a FROM u WHERE NOT b = 3)",
    "SELECT CASE WHEN x > 1 THEN 'many' WHEN x = 1 THEN 'one' ELSE 'it''s none' END AS words FROM t",
    "SELECT a FROM t UNION ALL SELECT b FROM (SELECT b, max(c) FROM u GROUP BY b) AS v LIMIT 5 OFFSET 2",
    "SELECT length(name) || ' letters', -x / 3 % 4 FROM t LEFT OUTER JOIN u ON t.id = u.id",
    "SELECT * FROM orders WHERE status NOT IN ('open', 'late', 'lost') AND total <> 0;",
]
_DOT = [
    'digraph { a -> b -> c; b -> d [label="to d", color=red] }',
    "strict graph G {\n  node [shape=box]\n  a -- b -- { c d }\n  subgraph cluster_1 { e; f }\n  e -- a\n}",
    'digraph deps {\n  rankdir = LR;\n  "core" -> "masks" [weight=2.5];\n  "masks" -> "tries";\n}',
]


def _json_texts(count: int) -> list[str]:
    """Records, nested and indented, made at random."""
    rnd = random.Random("json")
    words = ["the", "quick", "brown", "fox", "jumps", "over", "lazy", "dogs", "Zürich", "naïve"]

    def value(depth: int) -> Any:
        kind = rnd.randrange(7 if depth else 5)
        if kind == 0:
            return " ".join(rnd.choices(words, k=rnd.randint(1, 12)))
        if kind in (1, 2):
            return rnd.choice([rnd.randrange(10**6), rnd.random() * 100, -1, 0, 1e-7])
        if kind in (3, 4):
            return rnd.choice([True, False, None, "", 'a "quoted"\nline \\ end'])
        if kind == 5:
            return [value(depth - 1) for _ in range(rnd.randrange(5))]
        return {rnd.choice(words): value(depth - 1) for _ in range(rnd.randrange(6))}

    records = [{f"key_{n}": value(3) for n in range(6)} for _ in range(count)]
    return [json.dumps(r, indent=rnd.choice([None, 2]), ensure_ascii=False) for r in records]


@cache
def _expressions(count: int) -> list[str]:
    """Expressions of the standard library that the benchmark's grammar covers: of one line each."""
    found = []
    for name in ("argparse", "inspect", "textwrap", "statistics", "ipaddress"):
        lines = (Path(os.__file__).parent / f"{name}.py").read_text(encoding="utf-8").split("\n")
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.expr) and node.lineno == node.end_lineno:
                line = lines[node.lineno - 1].encode()
                text = line[node.col_offset : node.end_col_offset].decode()
                if len(text) > 25 and not re.search(r":=|\b(?:lambda|async|yield)\b|#", text):
                    found.append(text)
    return random.Random(3).sample(sorted(set(found)), count)


def braces(text: str) -> str:
    """A Python file with braces around its blocks, without other changes."""
    lines = text.split("\n")
    added: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.INDENT:
            added[token.start[0]] = added.get(token.start[0], "") + "{"
        elif token.type == tokenize.DEDENT:
            added[token.start[0]] = added.get(token.start[0], "") + "}"
    for number, put in added.items():
        if number > len(lines):
            lines.append(put)
        else:
            line = lines[number - 1]
            blank = len(line) - len(line.lstrip())
            lines[number - 1] = line[:blank] + put + line[blank:]
    return "\n".join(lines)


def larks_python(files: int = 12) -> GrammarCase:
    """The grammar of Python that comes with lark, its blocks in braces, on library files.

    Lark leaves indentation to code of its own: the two tokens that it declares become braces.
    llguidance reads neither templates nor lookaround: templates are written out for it, and the
    string terminals said without lookaround.
    """
    import lark

    text = (Path(lark.__file__).parent / "grammars" / "python.lark").read_text(encoding="utf-8")
    text = text.replace("%declare _INDENT _DEDENT", '_INDENT: "{"\n_DEDENT: "}"')
    paths = sorted(Path(os.__file__).parent.glob("*.py"), key=lambda path: path.stat().st_size)
    texts = []
    for path in paths[5::3]:
        source = path.read_text(encoding="utf-8", errors="replace")
        if 500 < len(source) < _MOST_BYTES and not re.search(
            r"^\s*match |:=|/, |\bexcept\*", source
        ):
            texts.append(braces(source))
    other = _without_templates(text).replace("file_input:", "start:")
    other = re.sub(r"(?m)^STRING:.*", _PLAIN_STRING, other)
    other = re.sub(r"(?m)^LONG_STRING:.*", _PLAIN_LONG_STRING, other)
    other = re.sub(r"(?m)^(\w+)\.2:", r"\1:", other)
    other = re.sub(r" /\(\?!\[1-9\]\)/", "", other)
    other = re.sub(
        r"(?m)^(?:single_input|eval_input|encoding_decl|cs_list\w*|_cs_list\w*):.*\n", "", other
    )
    forms = {"lark": text, "start": "file_input", "llguidance": other}
    return GrammarCase("python.lark", forms, texts[:files])


_PLAIN_STRING = (
    r'STRING: /([ubfUBF]?[rR]?|[rR][ubfUBF])("([^"\\\\\\n]|\\\\.)*"|' + r"'([^'\\\\\\n]|\\\\.)*')/"
)
_PLAIN_LONG_STRING = (
    r'LONG_STRING: /([ubfUBF]?[rR]?|[rR][ubfUBF])("""("?"?([^"\\\\]|\\\\(.|\\n)))*"""|'
    + r"'''('?'?([^'\\\\]|\\\\(.|\\n)))*''')/"
)
_USE = re.compile(r"\b(_?[a-z]\w*)\{([^{}]*)\}")


def _without_templates(text: str) -> str:
    """Lark's templates written out: one rule for each use."""
    templates = {}

    def defined(match: re.Match[str]) -> str:
        templates[match[1]] = ([p.strip() for p in match[2].split(",")], match[3])
        return ""

    text = re.sub(r"(?m)^(_?[a-z]\w*)\{([^}]*)\}:(.*(?:\n[ \t]+\|.*)*)\n", defined, text)
    made: dict[str, str] = {}

    def used(match: re.Match[str]) -> str:
        name = f"{match[1]}_{re.sub(r'[^a-z]+', '_', match[2].lower()).strip('_')}"
        if name not in made:
            parameters, body = templates[match[1]]
            for parameter, value in zip(parameters, match[2].split(",")):
                body = re.sub(rf"\b{parameter}\b", f"({value.strip()})", body)
            made[name] = ""
            made[name] = f"{name}:{_USE.sub(used, body)}"
        return name

    text = _USE.sub(used, text)
    return text + "\n" + "\n".join(made.values()) + "\n"


def cases() -> list[GrammarCase]:
    """All grammars with their texts."""
    header = ["id", "name", "note"]
    rows = [f'{n},name {n},"a, {n}"' if n % 3 else f"{n},,x" for n in range(12)]
    csv = _shipped("csv", header=header)
    return [
        _shipped("arithmetic"),
        _shipped("iso8601"),
        _shipped("semver"),
        _shipped("email"),
        _shipped("url"),
        _shipped("regex"),
        GrammarCase("csv", csv.schema, ["\n".join((",".join(header), *rows)) + "\n"]),
        GrammarCase("json", _shipped("json").schema, _json_texts(12)),
        _own("json", _json_texts(12), "lark"),
        _own("sql", _SQL, "gbnf"),
        _own("sql", _SQL, "lark"),
        _own("dot", _DOT, "gbnf"),
        _own("python_expression", _expressions(60), "gbnf"),
        larks_python(),
        _shipped("dot", "dot (shipped)"),
        _shipped("sql", "sql (shipped)"),
        GrammarCase(
            "python-expression (shipped)",
            _shipped("python-expression").schema,
            [f"({text})" for text in _expressions(60)],
        ),
        _shipped("python", "python (shipped)", depth=2),
    ]


# -- measuring ---------------------------------------------------------------------------------


@dataclass
class Measured:
    """One engine on one grammar: the cold result and the times of later compiles, in ns."""

    cold: Result
    form: str
    again: list[int] = field(default_factory=list)


def measure_case(engine: ForGrammars, case: GrammarCase, vocabulary: Any, clock: Clock) -> Measured:
    """Compile and feed cold, feed warm, then compile some more."""
    found = Measured(
        measure_schema(engine, case, vocabulary, clock=clock), engine.form_of(case.schema)
    )  # type: ignore[arg-type]
    if found.cold.status == "ok":
        for _ in range(_AGAIN):
            start = clock()
            engine.compile(case.schema)
            found.again.append(clock() - start)
            if sum(found.again) > 5_000_000_000:
                break
    return found


def measure(
    names: Sequence[str], vocabulary: Any, chosen: Sequence[GrammarCase], clock: Clock
) -> dict[str, Any]:
    """All numbers: `engines` and `against` as `tests.benchmarks.timing` has them, and `grammars`."""
    made = {name: ForGrammars(name, vocabulary) for name in names}
    found: dict[str, dict[str, Measured]] = {name: {} for name in names}
    warm_up = GrammarCase("warm-up", {"gbnf": 'root ::= "a"', "lark": 'start: "a"'}, ["a"])
    for engine in made.values():
        measure_case(engine, warm_up, vocabulary, clock)
    settle()
    for index, case in enumerate(chosen):
        for name in names if index % 2 == 0 else list(reversed(names)):
            print(f"{case.name}: {name}", file=sys.stderr, flush=True)
            found[name][case.name] = measure_case(made[name], case, vocabulary, clock)
    results = {name: [one.cold for one in found[name].values()] for name in names}
    return {
        **compared(made, results),
        "grammars": {
            case.name: {name: _entry(found[name][case.name]) for name in names} for case in chosen
        },
    }


def _entry(one: Measured) -> dict[str, Any]:
    cold = one.cold
    if cold.status != "ok":
        return {"form": one.form, "refused": cold.error}
    return {
        "form": one.form,
        "texts": cold.instances,
        "wrong_reject": cold.wrong_reject,
        "compile": cold.compile / 1000,
        "first": cold.first / 1000,
        "compile_again": sorted(one.again)[len(one.again) // 2] / 1000,
        **{what: statistics(gather([cold], what)) for what in ("mask", "token", "warm")},
    }


_TIMES = [(what, column) for what in ("token", "warm") for column in ("avg", "p50", "p99", "max")]
_COLUMNS = ("form", "texts", "refused texts", "compile", "again", "first mask")


def by_grammar(found: dict[str, Any]) -> str:
    """Markdown: a row for each grammar and engine, in µs."""
    rows, refused = [], []
    for case, entries in found.items():
        for name, entry in entries.items():
            if "refused" in entry:
                refused.append(f"{name} refuses {case} ({entry['form']}): {entry['refused']}")
                continue
            times = [tables.number(entry[what].get(column)) for what, column in _TIMES]
            counts = [entry["form"], str(entry["texts"]), str(entry["wrong_reject"])]
            compiles = [tables.number(entry[w]) for w in ("compile", "compile_again", "first")]
            rows.append([case, name, *counts, *compiles, *times])
    head = [f"{tables.TITLES[what]}: {column}" for what, column in _TIMES]
    table = tables.markdown(["grammar, µs", "engine", *_COLUMNS, *head], rows)
    return "\n\n".join([table, *(" ".join(line.split()) for line in refused)])


def main() -> None:
    """Times of constrain and other engines on grammars."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", help="only these grammars")
    parser.add_argument("--engines", nargs="*", default=["constrain", "llguidance", "xgrammar"])
    parser.add_argument("--vocabulary", default="deepseek")
    parser.add_argument("--core", type=int, help="the core to run on (default: the last one)")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    parser.add_argument("--json", type=Path, help="write all numbers here")
    arguments = parser.parse_args()
    sys.setrecursionlimit(20_000)
    run_on(arguments.core)
    warnings.simplefilter("ignore")
    chosen = [case for case in cases() if not arguments.names or case.name in arguments.names]
    result = measure(
        arguments.engines,
        vocabularies.load(arguments.vocabulary),
        chosen,
        CLOCKS[arguments.clock],
    )
    result = {**result, "machine": machine(), "vocabulary": arguments.vocabulary}
    print(tables.report(result), by_grammar(result["grammars"]), sep="\n\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
