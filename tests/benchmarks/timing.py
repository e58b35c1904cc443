"""Times of engines beside each other on MaskBench, in one process: quick, for comparing builds.

Engines take turns schema by schema, so that whatever else the machine does falls on all of them
alike. Engines that hang or die take the run with them: `tests.benchmarks.maskbench` gives each a
process of its own.

``python -m tests.benchmarks.timing --schemas 300 --json times.json`` prints Markdown tables. It is
a report, not a test: nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import engines, tables
from tests.benchmarks.measuring import (
    CLOCKS,
    Clock,
    Result,
    compared,
    machine,
    measure_schema,
    run_on,
    settle,
)
from tests.reference import data, vocabularies
from tests.reference.vocabularies import TestVocabulary

WARM_UP = data.BenchSchema("warm-up", {"type": "object"}, ({"data": {}, "valid": True},))


def measure(
    names: Sequence[str],
    vocabulary: TestVocabulary,
    schemas: Sequence[data.BenchSchema],
    options: dict[str, Any],
    clock: Clock,
) -> dict[str, Any]:
    """The engines' numbers, in the form that `tests.benchmarks.maskbench` writes."""
    made = {name: engines.load(name)(vocabulary, options) for name in names}
    results: dict[str, list[Result]] = {name: [] for name in names}
    for engine in made.values():
        measure_schema(engine, WARM_UP, vocabulary)
    settle()
    for index, bench in enumerate(schemas):
        for name in names if index % 2 == 0 else list(reversed(names)):
            results[name].append(measure_schema(made[name], bench, vocabulary, clock=clock))
    return compared(made, results)


def main() -> None:
    """Times of constrain and other engines on MaskBench."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--schemas", type=int, default=100, help="how many, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engines", nargs="*", default=["constrain", "llguidance"])
    parser.add_argument("--vocabulary", help="default: Llama 3.1's where it is, else DeepSeek's")
    parser.add_argument("--numbers", default="any")
    parser.add_argument("--core", type=int, help="the core to run on (default: the last one)")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    parser.add_argument("--json", type=Path, help="write all numbers here")
    arguments = parser.parse_args()
    sys.setrecursionlimit(20_000)
    name = arguments.vocabulary or vocabularies.large()
    where = machine()
    run_on(arguments.core)
    schemas = data.maskbench(data.require_root())
    random.Random(arguments.seed).shuffle(schemas)
    options = {"numbers": arguments.numbers}
    result = measure(
        arguments.engines,
        vocabularies.load(name),
        schemas[: arguments.schemas],
        options,
        CLOCKS[arguments.clock],
    )
    result |= {"machine": where, "vocabulary": name, "clock": arguments.clock}
    print(tables.report(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
