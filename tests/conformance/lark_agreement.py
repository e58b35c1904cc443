"""Recognition equals Lark's own Earley parser, through the masks of real tokenizers.

Texts are drawn from the grammars' alphabets, written under the masks themselves, and changed in one
or two places; each is read with the tokens of the tokenizer and with tokens drawn at random, bit by
bit of the masks. ``python -m tests.conformance.lark_agreement --texts 200`` does more than the tests.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import constrain
from tests.reference import vocabularies
from tests.reference.drive import judge, new_row, random_tokens
from tests.reference.grammar import LarkJudge, mutate
from tests.reference.grammar_walks import GrammarWalker
from tests.reference.lark_grammars import GRAMMARS, Sample
from tests.reference.vocabularies import TestVocabulary

__all__ = ["VOCABULARIES", "Agreement", "compare"]

VOCABULARIES = ("smollm2", "deepseek", "tekken")

# Lark's time grows with the cube of the length.
_LONGEST = 60


@dataclass
class Agreement:
    """How many texts were compared, how many of them are valid, and what differs."""

    texts: int = 0
    valid: int = 0
    walks: int = 0
    differences: list[str] | None = None


@cache
def _lark(grammar: str) -> LarkJudge:
    return LarkJudge(grammar)


@lru_cache(maxsize=100_000)
def _verdict(grammar: str, text: str) -> bool:
    return _lark(grammar).accepts(text)


def _drawn(sample: Sample, count: int, rnd: random.Random) -> Iterator[str]:
    """Texts of the sample, changed ones, and others from its alphabet."""
    yield from sample.texts
    for _ in range(count):
        if sample.texts and rnd.random() < 0.6:
            yield mutate(rnd.choice(sample.texts), list(sample.alphabet), rnd)
        else:
            length = rnd.randrange(sample.length + 3)
            yield "".join(rnd.choice(sample.alphabet) for _ in range(length))


def compare(
    sample: Sample, vocabulary: TestVocabulary, walker: GrammarWalker, count: int, seed: int
) -> Agreement:
    """Compares verdicts on about `2 * count` texts."""
    rnd = random.Random(f"{seed}/{sample.name}/{vocabulary.name}")
    compiled = constrain.compile(constrain.Lark(sample.grammar), vocabulary.vocabulary)
    row = new_row(vocabulary.vocabulary)
    result = Agreement(differences=[])
    found = result.differences
    assert found is not None

    def check(text: str, tokens: Sequence[int] | None) -> None:
        if tokens is None:
            return
        expected = _verdict(sample.grammar, text)
        result.texts += 1
        result.valid += expected
        if judge(compiled, tokens, vocabulary.eos_ids, row).accepted != expected:
            word = "accepts" if expected else "refuses"
            found.append(f"{sample.name} ({vocabulary.name}): Lark {word} {text!r}, {tokens}")

    def check_both(text: str) -> None:
        if len(text) <= _LONGEST:
            check(text, vocabulary.encode(text) if text else [])
            check(text, random_tokens(text.encode(), walker.by_bytes, rnd))

    for text in _drawn(sample, count, rnd):
        check_both(text)
    for _ in range(count // 4):
        walk = walker.walk(compiled, rnd, rnd.randrange(1, 7))
        result.walks += 1
        if walk.status != "finished":
            found.append(
                f"{sample.name} ({vocabulary.name}): {walk.status} {walk.text!r}: {walk.note}"
            )
            continue
        text = walk.text.decode("utf-8")
        if len(text) > _LONGEST:
            continue
        result.texts += 1
        result.valid += 1
        if not _verdict(sample.grammar, text):
            found.append(f"{sample.name} ({vocabulary.name}): Lark refuses the walk {text!r}")
        check_both(mutate(text, list(sample.alphabet), rnd))
    return result


def main() -> int:
    """Compares all grammars with Lark under three tokenizers."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--texts", type=int, default=100, help="texts per grammar and tokenizer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vocabularies", nargs="*", default=VOCABULARIES)
    parser.add_argument("--names", nargs="*", help="only these grammars")
    arguments = parser.parse_args()
    failed = 0
    for name in arguments.vocabularies:
        vocabulary = vocabularies.load(name)
        walker = GrammarWalker(vocabulary)
        texts = valid = walks = 0
        for sample in GRAMMARS:
            if arguments.names and sample.name not in arguments.names:
                continue
            result = compare(sample, vocabulary, walker, arguments.texts, arguments.seed)
            texts, valid, walks = texts + result.texts, valid + result.valid, walks + result.walks
            for difference in result.differences or ():
                failed += 1
                print(difference, flush=True)
        print(f"{name}: {texts} texts, {valid} of them valid, {walks} walks", flush=True)
    print(f"{failed} differences")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
