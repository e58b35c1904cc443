"""Many sequences in one process: memory and latency must stay flat.

``python -m tests.benchmarks.soak`` follows 200,000 sequences under 500 schemas of MaskBench (each
compiled once and compiled anew from time to time, as a cache that evicts would) and reports resident
memory and times for each of twenty windows. It takes about half an hour; ``--sequences`` makes it
shorter. It fails (exit code 1) where memory grows after the first quarter by more than 5%, or where
the median time of a mask in the last quarter is more than 1.5 times that of the second.

``--memory N`` instead compiles N schemas and prints what one of them and one live matcher hold.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import json
import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import constrain
from tests.benchmarks.batch import choose
from tests.reference import data, vocabularies

_WINDOWS = 20
_RECOMPILED = 0.02  # sequences that begin with a schema compiled anew


def resident() -> int:
    """Bytes of this process in memory (Linux)."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def trim() -> None:
    """Give back what is free, so that `resident` shows what comes next."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def soak(world: Any, sequences: int, schemas: int, seed: int) -> list[dict[str, float]]:
    """One row for each window: sequences so far, MB, and µs of masks and of compiling."""
    rng = random.Random(seed)
    chosen = choose(world, schemas, every=7)
    compiled: list[Any] = [None] * len(chosen)
    bitmask = constrain.allocate_bitmask(1, world.vocabulary.size)
    live: list[Any] = []  # matchers that stay alive for a while
    rows: list[dict[str, float]] = []
    window = max(1, sequences // _WINDOWS)
    masks: list[float] = []
    compiles: list[float] = []
    clock = time.thread_time
    for done in range(1, sequences + 1):
        at = rng.randrange(len(chosen))
        schema, tokens = chosen[at]
        if compiled[at] is None or rng.random() < _RECOMPILED:
            start = clock()
            compiled[at] = constrain.compile(constrain.JsonSchema(schema), world.vocabulary)
            compiles.append(clock() - start)
        matcher = compiled[at].matcher()
        start = clock()
        for token in tokens:
            matcher.fill_bitmask(bitmask)
            matcher.advance(token)
        masks.append((clock() - start) / len(tokens))
        if rng.random() < 0.1:
            live.append(matcher)
            if len(live) > 100:
                old = live.pop(rng.randrange(len(live)))
                old.fill_bitmask(bitmask)
        if done % window == 0:
            gc.collect()
            rows.append(
                {
                    "sequences": done,
                    "resident_mb": resident() / 1e6,
                    "mask_p50_us": statistics.median(masks) * 1e6,
                    "mask_p99_us": sorted(masks)[len(masks) * 99 // 100] * 1e6,
                    "compile_p50_us": statistics.median(compiles) * 1e6 if compiles else 0.0,
                    "tables_mb": world.vocabulary.native.memory / 1e6,
                }
            )
            print(
                "| " + " | ".join(f"{value:.1f}" for value in rows[-1].values()) + " |", flush=True
            )
            masks.clear()
            compiles.clear()
    return rows


def verdict(rows: list[dict[str, float]]) -> list[str]:
    """What is not flat."""
    quarter = len(rows) // 4
    wrong = []
    before = max(row["resident_mb"] for row in rows[:quarter])
    after = rows[-1]["resident_mb"]
    if after > before * 1.05:
        wrong.append(f"resident memory grew from {before:.0f} to {after:.0f} MB")
    early = statistics.median(row["mask_p50_us"] for row in rows[quarter : 2 * quarter])
    late = statistics.median(row["mask_p50_us"] for row in rows[-quarter:])
    if late > early * 1.5:
        wrong.append(f"masks took {early:.2f} µs early and {late:.2f} µs late")
    return wrong


def matcher_bytes(world: Any) -> int:
    """Resident bytes by one matcher; right only while the process has little free memory."""
    compiled = constrain.compile(constrain.JsonSchema({"type": "string"}), world.vocabulary)
    tokens = world.encode('"' + "a b" * 200)[:100]
    count = 10_000
    trim()
    before = resident()
    matchers = [compiled.matcher() for _ in range(count)]
    for matcher in matchers:
        for token in tokens:
            matcher.advance(token)
    return (resident() - before) // count


def memory(world: Any, count: int) -> None:
    """What a compiled schema and a live matcher hold, over schemas of MaskBench."""
    bitmask = constrain.allocate_bitmask(1, world.vocabulary.size)
    print(f"a live matcher with 100 tokens: {matcher_bytes(world)} bytes")
    held, resident_each = [], []
    kept = []
    every = max(
        1, len(list((data.require_root() / "data" / "maskbench").glob("*.json"))) // count // 2
    )
    for schema, tokens in choose(world, count, every=every):
        trim()
        before = resident()
        compiled = constrain.compile(constrain.JsonSchema(schema), world.vocabulary)
        matcher = compiled.matcher()
        for token in tokens:
            matcher.fill_bitmask(bitmask)
            matcher.advance(token)
        matcher.reset()
        held.append(compiled.memory)
        resident_each.append(resident() - before)
        kept.append(compiled)
    for name, values in (
        ("machine, states and masks of a schema, by its own count", held),
        (
            "resident memory by a schema with one instance, tables of the vocabulary included",
            resident_each,
        ),
    ):
        values.sort()
        print(
            f"{name}: median {statistics.median(values) / 1e3:.1f} KB, "
            f"p90 {values[len(values) * 9 // 10] / 1e3:.1f} KB, most {values[-1] / 1e3:.1f} KB"
        )


def main() -> None:
    """Many sequences in one process."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--vocabulary", default="deepseek")
    parser.add_argument("--sequences", type=int, default=200_000)
    parser.add_argument("--schemas", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", type=int, metavar="N", help="measure N schemas instead")
    parser.add_argument("--json", type=Path, help="write all numbers here")
    arguments = parser.parse_args()
    data.require_root()
    world = vocabularies.load(arguments.vocabulary)
    if arguments.memory:
        memory(world, arguments.memory)
        return
    print("| sequences | MB | mask p50, µs | p99 | compile p50, µs | tables, MB |")
    print("| --- |" + " --- |" * 5)
    rows = soak(world, arguments.sequences, arguments.schemas, arguments.seed)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    wrong = verdict(rows)
    print("; ".join(wrong) or "flat")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
