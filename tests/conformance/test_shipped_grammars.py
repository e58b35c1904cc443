"""Shipped grammars against the real parsers of their languages.

Texts of each kind are read, others refused; what is left of a text after small mutations is read
only if the real parser reads it; random walks end in texts that the real parser reads. More walks:
``python -m tests.conformance.grammar_walks --walks 1000 --vocabulary deepseek tekken``. More files:
``python -m tests.conformance.python_files``.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import constrain
from constrain import grammars
from tests.conformance.grammar_walks import walk_grammar
from tests.conformance.python_files import expressions
from tests.reference.grammar import mutate
from tests.reference.grammar_walks import GrammarWalker
from tests.reference.judges import TooLarge
from tests.reference.shipped import SHIPPED, Shipped
from tests.reference.vocabularies import TestVocabulary, byte_vocabulary


@cache
def _spec(index: int) -> Any:
    return grammars.load(SHIPPED[index].name, **SHIPPED[index].parameters)


def _accepts(compiled: Any, text: str) -> bool:
    matcher = compiled.matcher()
    return all(matcher.try_advance(byte) for byte in text.encode()) and matcher.is_accepting


each = pytest.mark.parametrize("index", range(len(SHIPPED)), ids=[entry.id for entry in SHIPPED])


@each
def test_texts_and_mutations(index: int) -> None:
    entry: Shipped = SHIPPED[index]
    with warnings.catch_warnings():
        warnings.simplefilter("error", constrain.GrammarWarning)
        compiled = constrain.compile(_spec(index), byte_vocabulary().vocabulary)
    for text in entry.texts:
        assert entry.judge(text), f"the real parser refuses {text!r}"
        assert _accepts(compiled, text), text
    for text in entry.refused:
        assert not _accepts(compiled, text), text
    rnd = random.Random(entry.id)
    alphabet = sorted({char for text in (*entry.texts, *entry.refused) for char in text})
    accepted = refused = 0
    for text in entry.texts:
        for _ in range(40):
            changed = mutate(text, alphabet, rnd)
            if not _accepts(compiled, changed):
                refused += 1
                continue
            accepted += 1
            try:
                assert entry.judge(changed), f"the real parser refuses {changed!r}"
            except TooLarge:
                continue
    assert accepted
    assert refused


@each
def test_walks(index: int, small_vocabulary: TestVocabulary) -> None:
    entry = SHIPPED[index]
    compiled = constrain.compile(_spec(index), small_vocabulary.vocabulary)
    walker = GrammarWalker(small_vocabulary)
    counts, notes = walk_grammar(
        entry.id, compiled, walker, entry.judge, walks=40, wander=40, seed=1
    )
    assert not notes, "\n".join(notes[:10])
    assert counts["finished"] >= 35


@pytest.mark.parametrize("name", ["deepseek", "tekken"])
def test_walks_over_real_tokens(
    name: str, load_vocabulary: Callable[[str], TestVocabulary]
) -> None:
    vocabulary = load_vocabulary(name)
    walker = GrammarWalker(vocabulary)
    for index, entry in enumerate(SHIPPED):
        if entry.id in ("json", "arithmetic-named", "iso8601", "sql-tables"):
            compiled = constrain.compile(_spec(index), vocabulary.vocabulary)
            counts, notes = walk_grammar(
                entry.id, compiled, walker, entry.judge, walks=8, wander=30, seed=2
            )
            assert not notes, "\n".join(notes[:10])
            assert counts["finished"] >= 6


def test_expressions_of_the_standard_library() -> None:
    compiled = constrain.compile(grammars.load("python-expression"), byte_vocabulary().vocabulary)
    found = list(expressions(files=5, per_file=40, seed=1))
    refused = [text for text in found if not _accepts(compiled, text)]
    assert len(found) > 150
    assert not refused, refused[:5]
