"""The GBNF grammars that llama.cpp publishes, unchanged.

They are not part of this project. ``CONSTRAIN_GBNF`` names a folder that holds them; without it
these tests are skipped. They lie in the source package of llama-cpp-python::

    pip download --no-deps --no-binary llama-cpp-python llama-cpp-python
    tar xzf llama_cpp_python-*.tar.gz --wildcards '*/vendor/llama.cpp/grammars/*.gbnf'

A thousand walks of each: ``python -m tests.conformance.grammar_walks --walks 1000 --gbnf FOLDER``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import constrain
from tests.conformance.grammar_walks import walk_grammar
from tests.reference.grammar_walks import GrammarWalker
from tests.reference.judges import is_json
from tests.reference.vocabularies import TestVocabulary

# Texts of each kind, and texts that are none.
TEXTS: dict[str, tuple[list[str], list[str]]] = {
    "arithmetic": (
        ["a=1\n", "x_1 +2 *(y -3)=z9\nb=b\n", "( 1/2 )=3 \n\n"],
        ["", "a=1", "a=\n", "1+=2\n", "a==b\n"],
    ),
    "c": (
        [
            "",
            "int main(){return 0;}",
            "float f(int x){int y = x*2+g(1, z);y = -y;// note\nif(x<y){print ();}else{/* a ** b */}}",
            "char c(){for(i = 0; i<10; i = i+1){while(a!=b){}}}",
        ],
        ["int", "int f(){return 0}", "int f(){x=1;}", "void f(){}"],
    ),
    "chess": (
        ["1. e4 e5\n2. Nf3 Nc6\n", "1. d4 d5\n2. O-O-O O-O\n3. exd8=Q+ Ra1xa8#\n"],
        ["1. e4 e5\n", "1. e4 e5\n2. Nf9 Nc6\n", "2. e4 e5\n2. d4 d5\n", "1. e4 e5\n2. Nf3 Nc6"],
    ),
    "english": (
        ["Hello, world!", "It's 5 o'clock (I think).\nYes\tno", "a"],
        ["", " a", "a  b", "café", "a "],
    ),
    "japanese": (
        ["こんにちは、世界。", "カタカナ ひらがな\n漢字"],
        ["", "hello", "あ  い", "あa"],
    ),
    "json": (
        ['{"a": [1, -2.5e+3, {"b": null}], "c": "\\u00e9\\n"}', "{}", '{"x":\n\t\ttrue}'],
        ["", "[]", '{"a": 01}', '{"a": "\n"}', "{'a': 1}", '{"a": 1,}', '{"a":  1}'],
    ),
    "json_arr": (
        ['[\n1,\n"a",\n{"b": [true]}]', "[\n]"],
        ["[]", "[\n1,2]", "{}", "[\n1]\n"],
    ),
    "list": (
        ["- milk\n- bread and butter\n", "- é\n"],
        ["", "- milk", "milk\n", "- a\r\n", "- \n"],
    ),
}


@pytest.fixture(scope="module")
def folder() -> Path:
    """The folder of the grammars."""
    given = os.environ.get("CONSTRAIN_GBNF")
    if given is None or not Path(given).is_dir():
        pytest.skip("CONSTRAIN_GBNF names no folder with the grammars of llama.cpp")
    return Path(given)


def _accepts(compiled: Any, text: str) -> bool:
    matcher = compiled.matcher()
    return all(matcher.try_advance(byte) for byte in text.encode()) and matcher.is_accepting


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_texts(folder: Path, name: str, byte_vocabulary: TestVocabulary) -> None:
    spec = constrain.Gbnf((folder / f"{name}.gbnf").read_text(encoding="utf-8"))
    compiled = constrain.compile(spec, byte_vocabulary.vocabulary)
    good, bad = TEXTS[name]
    for text in good:
        assert _accepts(compiled, text), text
    for text in bad:
        assert not _accepts(compiled, text), text


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_walks_end(folder: Path, name: str, small_vocabulary: TestVocabulary) -> None:
    spec = constrain.Gbnf((folder / f"{name}.gbnf").read_text(encoding="utf-8"))
    compiled = constrain.compile(spec, small_vocabulary.vocabulary)
    judge = is_json if name.startswith("json") else None
    walker = GrammarWalker(small_vocabulary)
    counts, notes = walk_grammar(name, compiled, walker, judge, walks=60, wander=40, seed=1)
    assert not notes, notes[:5]
    assert counts["finished"] == 60
