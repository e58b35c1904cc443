"""Small grammars distilled from bug reports of other engines, and grammars against Lark itself."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import constrain
from constrain.specs import Gbnf, Lark
from tests.reference.grammar import LarkJudge, SlowMachine, mutate
from tests.reference.lark_grammars import GRAMMARS, Sample
from tests.reference.vocabularies import TestVocabulary


def _accepts(compiled: Any, text: bytes) -> bool:
    matcher = compiled.matcher()
    return all(matcher.try_advance(byte) for byte in text) and matcher.is_accepting


def _cases(root: Path) -> Iterator[dict[str, Any]]:
    for line in (root / "cases" / "cases.jsonl").read_text(encoding="utf-8").split("\n"):
        if not line:
            continue
        case = json.loads(line)
        if case["kind"] in ("lark", "gbnf"):
            yield case


def test_cases_from_bug_reports(shared_root: Path, byte_vocabulary: TestVocabulary) -> None:
    count = 0
    for case in _cases(shared_root):
        count += 1
        given = case["input"]
        spec: Any
        if case["kind"] == "lark":
            spec = Lark(given["grammar"], start=given["start"])
        else:
            spec = Gbnf(given["grammar"], root=given["root"])
        if case["expect_error"]:
            with pytest.raises(constrain.GrammarError) as caught:
                spec.program()
            assert caught.value.line == 1, case["id"]
            assert caught.value.column, case["id"]
            continue
        compiled = constrain.compile(spec, byte_vocabulary.vocabulary)
        for text in case["valid"]:
            assert _accepts(compiled, text.encode()), (case["id"], text)
        for text in case["invalid"]:
            assert not _accepts(compiled, text.encode()), (case["id"], text)
    assert count >= 18


def _words(sample: Sample, rnd: random.Random) -> list[str]:
    words = set(sample.texts)
    for length in range(sample.length + 1):
        if len(sample.alphabet) ** length > 100:
            for _ in range(40):
                words.add("".join(rnd.choice(sample.alphabet) for _ in range(length)))
        else:
            words.update(map("".join, itertools.product(sample.alphabet, repeat=length)))
    for text in sample.texts:
        words.update(mutate(text, list(sample.alphabet), rnd) for _ in range(12))
    return sorted(words, key=lambda word: (len(word), word))


@pytest.mark.parametrize("sample", GRAMMARS, ids=lambda sample: sample.name)
def test_language_is_that_of_larks_earley_parser(
    sample: Sample, byte_vocabulary: TestVocabulary
) -> None:
    rnd = random.Random(sample.name)
    spec = Lark(sample.grammar)
    compiled = constrain.compile(spec, byte_vocabulary.vocabulary)
    slow = SlowMachine(spec.program())
    judge = LarkJudge(sample.grammar)
    verdicts = {word: judge.accepts(word) for word in _words(sample, rnd)}
    assert any(verdicts.values())
    assert not all(verdicts.values())
    for word, verdict in verdicts.items():
        assert _accepts(compiled, word.encode()) == verdict, word
        if len(word) < 12:
            assert slow.accepts(word.encode()) == verdict, word
