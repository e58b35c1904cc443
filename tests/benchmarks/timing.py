"""Times of engines beside each other, on MaskBench, in one run on one core.

Cold, as a server meets them: every schema is compiled afresh and each of its instances is fed once.
Per token the time is that of mask, check and advance together, as MaskBench counts; beside it the
time to the first mask (compile, start and one mask). Engines take turns schema by schema, so that
whatever else the machine does falls on all of them alike.

``python -m tests.benchmarks.timing --schemas 300 --json times.json`` prints a Markdown table. It is
a report, not a test: nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from tests.benchmarks.engines import ENGINES, CompileError
from tests.reference import data, vocabularies
from tests.reference.vocabularies import TestVocabulary


@dataclass
class Times:
    """What one engine took, in nanoseconds, and how its verdicts came out."""

    compile: list[int] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    token: list[int] = field(default_factory=list)
    refused: int = 0
    wrong_accept: int = 0
    wrong_reject: int = 0
    schemas: set[str] = field(default_factory=set)
    by_schema: dict[str, list[int]] = field(default_factory=dict)


def feed(session: Any, ids: Sequence[int], eos: int, times: Times, tokens: list[int]) -> bool:
    """Feed one instance; returns whether all of it and the end were allowed."""
    for token in [*ids, eos]:
        start = perf_counter_ns()
        session.mask()
        masked = perf_counter_ns()
        allowed = session.allows(token)
        taken = allowed and token != eos and session.advance(token)
        end = perf_counter_ns()
        times.mask.append(masked - start)
        tokens.append(end - start)
        if not allowed or not (taken or token == eos):
            return False
    return True


def one_schema(
    engine: Any, bench: data.BenchSchema, vocabulary: TestVocabulary, times: Times
) -> None:
    """Compile one schema and feed its instances."""
    start = perf_counter_ns()
    try:
        compiled = engine.compile(bench.schema)
    except CompileError:
        times.refused += 1
        return
    done = perf_counter_ns()
    session = engine.start(compiled)
    session.mask()
    first = perf_counter_ns()
    times.schemas.add(bench.name)
    times.compile.append(done - start)
    times.first.append(first - start)
    tokens: list[int] = []
    for _, text, valid in bench.texts():
        ids = vocabulary.encode(text)
        accepted = feed(engine.start(compiled), ids, vocabulary.eos_ids[0], times, tokens)
        if accepted != valid:
            times.wrong_accept += accepted
            times.wrong_reject += valid
    times.token.extend(tokens)
    times.by_schema[bench.name] = tokens


def measure(
    names: Sequence[str],
    vocabulary: TestVocabulary,
    schemas: Sequence[data.BenchSchema],
    options: dict[str, Any],
) -> dict[str, tuple[str, Times]]:
    """Engine name to (version, times)."""
    engines = {name: ENGINES[name](vocabulary, options) for name in names}
    times = {name: Times() for name in names}
    warm_up = data.BenchSchema("warm-up", {"type": "object"}, ({"data": {}, "valid": True},))
    for engine in engines.values():
        one_schema(engine, warm_up, vocabulary, Times())
    gc.collect()
    gc.disable()
    try:
        for index, bench in enumerate(schemas):
            order = names if index % 2 == 0 else list(reversed(names))
            for name in order:
                one_schema(engines[name], bench, vocabulary, times[name])
    finally:
        gc.enable()
    return {name: (engines[name].version, times[name]) for name in names}


def statistics(values: Sequence[int]) -> dict[str, float]:
    """Average, median, 99th percentile and maximum, in microseconds."""
    if not values:
        return {}
    micro = np.asarray(values, dtype=np.float64) / 1000.0
    p50, p99 = np.percentile(micro, [50, 99])
    return {
        "avg": float(micro.mean()),
        "p50": float(p50),
        "p99": float(p99),
        "max": float(micro.max()),
        "count": len(values),
    }


ROWS = {
    "first": "time to first mask",
    "compile": "compile",
    "token": "token (mask, check, advance)",
    "mask": "mask alone",
    "shared": "token, schemas that all compile",
}


def summarise(measured: dict[str, tuple[str, Times]]) -> dict[str, Any]:
    """All numbers as one JSON document."""
    shared = set.intersection(*(times.schemas for _, times in measured.values()))
    result: dict[str, Any] = {"engines": {}, "shared_schemas": len(shared)}
    for name, (version, times) in measured.items():
        in_shared = [t for schema in sorted(shared) for t in times.by_schema[schema]]
        result["engines"][name] = {
            "version": version,
            "compiled": len(times.schemas),
            "refused": times.refused,
            "wrong_accept": times.wrong_accept,
            "wrong_reject": times.wrong_reject,
            **{row: statistics(getattr(times, row)) for row in ROWS if row != "shared"},
            "shared": statistics(in_shared),
        }
    return result


def table(result: dict[str, Any]) -> str:
    """Markdown: times in microseconds, and how many times the first engine's the others' are."""
    names = list(result["engines"])
    lines = [
        "| µs | engine | avg | p50 | p99 | max | n |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row, title in ROWS.items():
        own = result["engines"][names[0]][row]
        for name in names:
            numbers = result["engines"][name][row]
            if not numbers:
                continue
            cells = []
            for column in ("avg", "p50", "p99", "max"):
                value = numbers[column]
                times = f" ({value / own[column]:.1f}x)" if name != names[0] and own else ""
                cells.append(f"{value:.2f}{times}")
            lines.append(f"| {title} | {name} | {' | '.join(cells)} | {numbers['count']} |")
    lines += ["", "| engine | version | compiled | refused | wrong accepts | wrong rejects |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for name in names:
        entry = result["engines"][name]
        keys = ("version", "compiled", "refused", "wrong_accept", "wrong_reject")
        lines.append(f"| {name} | {' | '.join(str(entry[key]) for key in keys)} |")
    return "\n".join(lines)


def main() -> None:
    """Times of constrain and other engines on MaskBench."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--schemas", type=int, default=100, help="how many, drawn at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engines", nargs="*", default=["constrain", "llguidance"])
    parser.add_argument("--vocabulary", default="deepseek")
    parser.add_argument("--numbers", default="any")
    parser.add_argument("--core", type=int, help="the core to run on (default: the last one)")
    parser.add_argument("--json", type=Path, help="write all numbers here")
    arguments = parser.parse_args()
    sys.setrecursionlimit(20_000)
    cores = sorted(os.sched_getaffinity(0))
    core = cores[-1] if arguments.core is None else arguments.core
    os.sched_setaffinity(0, {core})
    os.environ["RAYON_NUM_THREADS"] = "1"
    schemas = data.maskbench(data.require_root())
    random.Random(arguments.seed).shuffle(schemas)
    measured = measure(
        arguments.engines,
        vocabularies.load(arguments.vocabulary),
        schemas[: arguments.schemas],
        {"numbers": arguments.numbers},
    )
    result = summarise(measured)
    result["machine"] = f"{platform.machine()}, {platform.system()}, one core"
    result["vocabulary"] = arguments.vocabulary
    print(table(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
