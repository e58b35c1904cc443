"""Lark grammars: imports, and what is refused where."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import constrain
from constrain.errors import (
    GrammarError,
    LimitExceededError,
    UnsatisfiableError,
    UnsupportedError,
)
from constrain.specs import Lark
from tests.reference.grammar import SlowMachine
from tests.reference.vocabularies import byte_vocabulary

lark = pytest.importorskip("lark")


def test_imports_of_files(tmp_path: Path) -> None:
    (tmp_path / "parts.lark").write_text('item: "x" NUM\nNUM: /[0-9]/\n', encoding="utf-8")
    spec = Lark("%import parts.item\nstart: item+", import_paths=[str(tmp_path)])
    machine = SlowMachine(spec.program())
    assert machine.accepts(b"x1x2")
    assert not machine.accepts(b"x")


def test_cyclic_imports_are_named(tmp_path: Path) -> None:
    (tmp_path / "one.lark").write_text('%import .two.b\na: b | "x"\n', encoding="utf-8")
    (tmp_path / "two.lark").write_text('%import .one.a\nb: a | "y"\n', encoding="utf-8")
    begin = time.perf_counter()
    with pytest.raises(GrammarError, match=r"cyclic import: .*one\.lark"):
        Lark("%import one.a\nstart: a", import_paths=[str(tmp_path)]).program()
    assert time.perf_counter() - begin < 20


@pytest.mark.parametrize(
    ("grammar", "line", "words"),
    [
        ("start: item", 1, "item"),
        ("start: ITEM", 1, "ITEM"),
        ('start: "a"\nb: (', 2, "Expecting a value"),
        ('start "a"', 1, "missing colon"),
        ('start: "a"\n%unknown x', 2, "unknown directive %unknown: expected one of %ignore"),
        ("start: /a(/\n", 1, "malformed terminal"),
        ("start: A\nA: /a*/", 2, "empty text"),
        ('main: "a"', 1, "start rule 'start'"),
        ("%import common.NOTHING\nstart: NOTHING", 2, "NOTHING"),
        ("%import nowhere.X\nstart: X", 1, "nowhere"),
        ("start: A\nA: B\nB: A", None, "Recursion"),
        ('start: x{A}\nA: "a"', 1, "x"),
    ],
)
def test_errors_name_the_place(grammar: str, line: int | None, words: str) -> None:
    with pytest.raises(GrammarError) as caught:
        Lark(grammar).program()
    assert words in str(caught.value)
    if line is not None:
        assert caught.value.line == line


def test_declared_terminals_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="%declare INDENT") as caught:
        Lark('start: "a" INDENT\n%declare INDENT').program()
    assert caught.value.feature == "%declare"


def test_a_grammar_without_texts_is_unsatisfiable() -> None:
    with pytest.raises(UnsatisfiableError, match="start"):
        Lark('start: "a" start').program()


def test_deep_nesting_in_the_grammar_is_refused_at_once() -> None:
    begin = time.perf_counter()
    with pytest.raises(LimitExceededError) as caught:
        Lark("start: " + "(" * 60_000 + '"a"' + ")" * 60_000).program()
    assert caught.value.limit == "nesting"
    assert time.perf_counter() - begin < 2
    brackets = '"' + "(" * 300 + '"'
    assert SlowMachine(Lark(f"start: {brackets}").program()).accepts(b"(" * 300)


def test_larks_own_python_grammar_compiles() -> None:
    path = Path(lark.__file__).parent / "grammars" / "python.lark"
    text = path.read_text(encoding="utf-8")
    with pytest.raises(UnsupportedError, match="_INDENT"):
        Lark(text, start="file_input").program()
    # Blocks in braces instead of indentation, which needs a post-lexer.
    text = text.replace("%declare _INDENT _DEDENT", '_INDENT: "{"\n_DEDENT: "}"')
    program = Lark(text, start="file_input").program()
    machine = SlowMachine(program)
    assert machine.accepts(b"x = f(a, *b)[1:2] if y else {1: 'z'}\n")
    assert machine.accepts(b"def f(x):\n{return x\n}")
    assert not machine.accepts(b"x = = 1\n")


def test_completions_find_a_way_around_lookahead() -> None:
    # The shortest text without the word borders, "ka..." with no blanks, is none.
    grammar = 'start: (K NAME)~6 END\nK: /k\\b/\nNAME: /[a-z]+/\nEND: /end(?!;)/\n%ignore " "'
    compiled = constrain.compile(Lark(grammar), byte_vocabulary().vocabulary)
    matcher = compiled.matcher()
    for byte in b"k ab k":
        matcher.advance(byte)
    rest = matcher.completion(100)
    assert rest is not None
    assert len(rest) < 30
    for byte in rest:
        matcher.advance(byte)
    assert matcher.is_accepting


def test_no_dead_end_behind_what_is_ignored_to_the_end_of_its_line() -> None:
    # Behind "#" only the end of the line could come, and nothing reads that.
    compiled = constrain.compile(
        Lark('start: "a"\n%ignore /#[^\\n]*/'), byte_vocabulary().vocabulary
    )
    matcher = compiled.matcher()
    assert not matcher.try_advance(ord("#"))
    for byte in b"a# b":
        matcher.advance(byte)
    assert matcher.is_accepting
    assert not matcher.try_advance(ord("\n"))
