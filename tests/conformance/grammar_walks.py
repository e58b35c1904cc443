"""Random walks under the masks of shipped grammars, judged by the real parsers.

``python -m tests.conformance.grammar_walks --walks 1000 --vocabulary deepseek tekken`` walks every
grammar with the tokens of real vocabularies; ``--gbnf FOLDER`` walks the GBNF files of a folder instead (llama.cpp's, say), which
have to end. The exit code is 1 if a walk did not end or its text was refused.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.reference import vocabularies
from tests.reference.grammar_walks import GrammarWalker
from tests.reference.judges import TooLarge
from tests.reference.shipped import SHIPPED
from tests.reference.vocabularies import TestVocabulary

__all__ = ["walk_grammar"]


def walk_grammar(
    label: str,
    compiled: Any,
    walker: GrammarWalker,
    judge: Callable[[str], bool] | None,
    *,
    walks: int,
    wander: int,
    seed: int,
) -> tuple[collections.Counter[str], list[str]]:
    """Counts of what became of the walks, and what went wrong."""
    counts: collections.Counter[str] = collections.Counter()
    notes: list[str] = []
    for index in range(walks):
        rng = random.Random(f"{seed}/{label}/{index}")
        walk = walker.walk(compiled, rng, rng.randrange(1, wander + 1) if index else 0)
        counts["steps"] += walk.steps
        kind = walk.status
        if kind == "finished" and judge is not None:
            try:
                kind = "finished" if judge(walk.text.decode("utf-8")) else "refused"
            except TooLarge:
                kind = "too large"
        counts[kind] += 1
        if kind not in ("finished", "too large"):
            notes.append(f"{kind} {label} (seed {seed}, walk {index}): {walk.note}: {walk.text!r}")
    return counts, notes


def _shipped(names: Iterable[str], vocabulary: TestVocabulary) -> Iterable[tuple[str, Any, Any]]:
    import constrain
    from constrain import grammars

    for entry in SHIPPED:
        if not names or entry.id in names or entry.name in names:
            spec = grammars.load(entry.name, **entry.parameters)
            yield entry.id, constrain.compile(spec, vocabulary.vocabulary), entry.judge


def _files(folder: Path, vocabulary: TestVocabulary) -> Iterable[tuple[str, Any, Any]]:
    import constrain

    for path in sorted(folder.glob("*.gbnf")):
        spec = constrain.Gbnf(path.read_text(encoding="utf-8"))
        yield path.name, constrain.compile(spec, vocabulary.vocabulary), None


def _walk_all(vocabulary: TestVocabulary, arguments: argparse.Namespace) -> bool:
    """Walks all grammars that were asked for; whether something went wrong."""
    walker = GrammarWalker(vocabulary)
    found = (
        _files(arguments.gbnf, vocabulary)
        if arguments.gbnf
        else _shipped(arguments.names, vocabulary)
    )
    failed = False
    for label, compiled, judge in found:
        begin = time.perf_counter()
        counts, notes = walk_grammar(
            label,
            compiled,
            walker,
            judge,
            walks=arguments.walks,
            wander=arguments.wander,
            seed=arguments.seed,
        )
        for note in notes[:10]:
            print(note)
        failed = failed or bool(notes)
        shown = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
        print(f"{label:>20}: {shown} ({time.perf_counter() - begin:.1f} s)", flush=True)
    return failed


def main() -> int:
    """Random walks over grammars."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", help="only these grammars")
    parser.add_argument("--walks", type=int, default=100, help="per grammar")
    parser.add_argument("--wander", type=int, default=40, help="most tokens before going home")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vocabulary", nargs="+", default=["deepseek"], help="one or more")
    parser.add_argument("--gbnf", type=Path, help="a folder of GBNF files to walk instead")
    arguments = parser.parse_args()
    sys.setrecursionlimit(20_000)
    failed = False
    for name in arguments.vocabulary:
        print(f"{name}:", flush=True)
        failed = _walk_all(vocabularies.load(name), arguments) or failed
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
