"""Recognition equals Lark's Earley parser on every sample grammar, with three tokenizers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conformance.lark_agreement import VOCABULARIES, compare
from tests.reference.grammar_walks import GrammarWalker
from tests.reference.lark_grammars import GRAMMARS, Sample
from tests.reference.vocabularies import TestVocabulary

_WALKERS: dict[str, GrammarWalker] = {}


def test_there_are_many_grammars() -> None:
    assert len(GRAMMARS) >= 40


@pytest.mark.parametrize("sample", GRAMMARS, ids=lambda sample: sample.name)
@pytest.mark.parametrize("name", VOCABULARIES)
def test_masks_have_larks_language(
    sample: Sample, name: str, load_vocabulary: Callable[[str], TestVocabulary]
) -> None:
    vocabulary = load_vocabulary(name)
    if name not in _WALKERS:
        _WALKERS[name] = GrammarWalker(vocabulary)
    result = compare(sample, vocabulary, _WALKERS[name], count=8, seed=1)
    assert not result.differences, "\n".join(result.differences or ())
    assert result.texts > 8
