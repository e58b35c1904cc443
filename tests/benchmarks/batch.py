"""Batches of matchers: one call of `fill_bitmasks` beside one call for each matcher.

``python -m tests.benchmarks.batch [--busy]`` takes a minute and prints a Markdown table; run it on a
machine that does nothing else. ``--busy`` keeps one other core busy meanwhile, to show that the
helper threads then cost nothing. All times are medians of µs for one mask of each of 64 matchers.

* *seen states*: all matchers follow one schema, and each state was met before, so that a mask is the
  copy of a row.
* *new states*: 64 matchers under 64 schemas of MaskBench, compiled afresh for each round; only the first round of each process has cold tables of the vocabulary.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import constrain
from tests.reference import data, vocabularies

_COUNT = 64
_ROUNDS = 7
Fill = Callable[[list[Any], Any], None]


def _singles(matchers: list[Any], bitmask: Any) -> None:
    for row, matcher in enumerate(matchers):
        matcher.fill_bitmask(bitmask, row)


def _batch(threads: int | None) -> Fill:
    return lambda matchers, bitmask: constrain.fill_bitmasks(matchers, bitmask, threads=threads)


_WAYS: dict[str, Fill] = {
    "64 single calls": _singles,
    "1 thread": _batch(1),
    "2 threads": _batch(2),
    "as many as pay": _batch(None),
}


def _spin() -> None:
    while True:
        pass


def _steps(compiled: list[Any], texts: list[list[int]], fill: Fill, bitmask: Any) -> list[float]:
    """Microseconds of each step in which all sequences still go on."""
    matchers = [c.matcher() for c in compiled]
    taken = []
    for step in range(min(map(len, texts))):
        start = time.perf_counter()
        fill(matchers, bitmask)
        taken.append((time.perf_counter() - start) * 1e6)
        for matcher, text in zip(matchers, texts, strict=True):
            matcher.advance(text[step])
    return taken


def _seen(world: Any, fill: Fill, bitmask: Any) -> list[float]:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 60}, "n": {"type": "integer"}},
        "required": ["name", "n"],
    }
    compiled = [constrain.compile(constrain.JsonSchema(schema), world.vocabulary)] * _COUNT
    texts = [
        world.encode(json.dumps({"name": chr(97 + i % 26) * 7 + " and so on", "n": i * 7919}))
        for i in range(_COUNT)
    ]
    for _ in range(3):
        _steps(compiled, texts, fill, bitmask)
    return [time for _ in range(_ROUNDS) for time in _steps(compiled, texts, fill, bitmask)]


def _new(world: Any, chosen: list[tuple[Any, list[int]]], fill: Fill, bitmask: Any) -> list[float]:
    taken = []
    for _ in range(_ROUNDS):
        compiled = [
            constrain.compile(constrain.JsonSchema(schema), world.vocabulary)
            for schema, _ in chosen
        ]
        texts = [text for _, text in chosen]
        taken += _steps(compiled, texts, fill, bitmask)
    return taken


def choose(world: Any, count: int, every: int = 37) -> list[tuple[Any, list[int]]]:
    """Schemas of MaskBench, each with the tokens of a valid instance of 40 to 400 tokens."""
    chosen: list[tuple[Any, list[int]]] = []
    for item in data.maskbench(data.require_root(), every=every):
        for _, text, valid in item.texts():
            tokens = world.encode(text) if valid and len(text) < 2_000 else []
            if not 40 <= len(tokens) <= 400:
                continue
            try:
                compiled = constrain.compile(constrain.JsonSchema(item.schema), world.vocabulary)
            except constrain.ConstrainError:
                break
            if compiled.matcher().validate(tokens) == len(tokens):
                chosen.append((item.schema, tokens))
            break
        if len(chosen) == count:
            break
    return chosen


def main() -> None:
    """Batches of 64 matchers."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--vocabulary", default="deepseek")
    parser.add_argument("--busy", action="store_true", help="keep another core busy")
    parser.add_argument("--json", type=Path, help="write all numbers here")
    arguments = parser.parse_args()
    world = vocabularies.load(arguments.vocabulary)
    bitmask = constrain.allocate_bitmask(_COUNT, world.vocabulary.size)
    chosen = choose(world, _COUNT)
    other = multiprocessing.Process(target=_spin, daemon=True) if arguments.busy else None
    if other:
        other.start()
    results: dict[str, dict[str, float]] = {}
    print("| | " + " | ".join(_WAYS) + " | 2 threads / single calls |")
    print("| --- |" + " --- |" * (len(_WAYS) + 1))
    try:
        for name, run in {
            "seen states": lambda fill: _seen(world, fill, bitmask),
            "new states": lambda fill: _new(world, chosen, fill, bitmask),
        }.items():
            found = results[name] = {way: statistics.median(run(f)) for way, f in _WAYS.items()}
            ratio = found["2 threads"] / found["64 single calls"]
            print(
                f"| {name} | "
                + " | ".join(f"{t:.0f}" for t in found.values())
                + f" | {ratio:.2f} |"
            )
    finally:
        if other:
            other.kill()
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
