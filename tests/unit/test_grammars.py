"""The package of shipped grammars: names, descriptions, parameters, errors."""

from __future__ import annotations

from pathlib import Path

import pytest

import constrain
from constrain import grammars
from constrain.specs import Gbnf, Lark
from tests.reference.shipped import SHIPPED
from tests.reference.vocabularies import TestVocabulary

FOLDER = Path(grammars.__file__).parent


def test_every_grammar_has_a_header_and_texts_to_test_it_with() -> None:
    assert grammars.names() == sorted({entry.name for entry in SHIPPED})
    for name in grammars.names():
        info = grammars.info(name)
        assert info.name == name
        assert info.title == info.about.split("\n")[0]
        assert info.title.endswith((".", ":"))
        assert "\nReads " in info.about
        assert "\nLeaves out: " in info.about
        for parameter, about in info.parameters.items():
            assert about.startswith(f"{parameter}=")


def test_every_file_belongs_to_a_grammar() -> None:
    files = {path.name for path in FOLDER.glob("*.*") if path.suffix in (".lark", ".gbnf")}
    assert files == {file for file, _ in grammars._GRAMMARS.values()}


def test_specs_are_what_the_texts_say() -> None:
    spec = grammars.load("json")
    assert isinstance(spec, Gbnf)
    assert spec == grammars.load("json") == Gbnf(grammars.text("json"))
    spec = grammars.load("sql", tables={"t": ["a"]})
    assert isinstance(spec, Lark)
    assert spec != grammars.load("sql")
    assert constrain.grammars is grammars


def test_parameters_are_described() -> None:
    info = grammars.info("csv")
    assert list(info.parameters) == ["header", "delimiter"]
    assert info.required == ("header",)
    assert grammars.info("python").parameters.keys() == {"depth"}
    assert grammars.info("python-expression").parameters == {}
    assert grammars.info("python").title != grammars.info("python-expression").title


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("jsn", {}, "no grammar 'jsn'"),
        ("json", {"depth": 1}, "no parameter 'depth'"),
        ("csv", {}, "needs the parameter 'header'"),
        ("csv", {"header": []}, "at least one column"),
        ("csv", {"header": "a,b"}, "list of texts"),
        ("csv", {"header": ["a", "a"]}, "given twice"),
        ("csv", {"header": ["a\0"]}, "NUL"),
        ("csv", {"header": ["a"], "delimiter": "x"}, "delimiter"),
        ("csv", {"header": {"a": "date"}}, "kind of 'a'"),
        ("csv", {"header": {"a": []}}, "is empty"),
        ("csv", {"header": {"a": 5}}, "kind of 'a'"),
        ("xml", {"names": []}, "at least one element"),
        ("xml", {"names": ["a b"]}, "not a name"),
        ("xml", {"names": ["a"], "root": "b"}, "root"),
        ("sql", {"tables": {}}, "tables"),
        ("sql", {"tables": ["t"]}, "tables"),
        ("sql", {"tables": {"t": []}}, "no columns"),
        ("sql", {"tables": {"t": ["a", 1]}}, "expected texts"),
        ("arithmetic", {"names": ["1x"]}, "not a name"),
        ("python", {"depth": -1}, "depth"),
        ("python", {"depth": True}, "depth"),
    ],
)
def test_errors_name_the_parameter(name: str, parameters: dict, message: str) -> None:
    with pytest.raises(constrain.ConstrainError, match=message):
        grammars.load(name, **parameters)


def test_blocks_go_as_deep_as_was_asked(byte_vocabulary: TestVocabulary) -> None:
    compiled = [
        constrain.compile(grammars.load("python", depth=depth), byte_vocabulary.vocabulary)
        for depth in range(2)
    ]

    def accepts(text: str, depth: int) -> bool:
        matcher = compiled[depth].matcher()
        return all(matcher.try_advance(byte) for byte in text.encode()) and matcher.is_accepting

    nested = "if a:\n    while b:\n        pass\n"
    assert accepts("if a: pass\n", 0)
    assert not accepts("if a:\n    pass\n", 0)
    assert accepts("if a:\n    pass\n", 1)
    assert accepts("if a:\n    while b: pass\n", 1)
    assert not accepts(nested, 1)


def test_names_of_tables_may_need_quotation_marks(byte_vocabulary: TestVocabulary) -> None:
    spec = grammars.load("sql", tables={"Order": ['a"b', "é", "x"]})
    compiled = constrain.compile(spec, byte_vocabulary.vocabulary)

    def accepts(text: str) -> bool:
        matcher = compiled.matcher()
        return all(matcher.try_advance(byte) for byte in text.encode()) and matcher.is_accepting

    assert accepts('SELECT "a""b", "é", X FROM "Order"')
    assert not accepts("SELECT x FROM Order")
    assert not accepts('SELECT y FROM "Order"')
