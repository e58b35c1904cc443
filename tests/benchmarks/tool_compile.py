"""What a constraint with many tools costs: compiling, and masks while a call is written.

    python -m tests.benchmarks.tool_compile [--rounds 5] [--json FILE]

Tools are made up in two sizes.  "new" are tools whose schemas were never seen, "again" the same tools
in another request.  Masks are filled token by token while calls are written as the format writes
them: behind the name under a constraint with all tools, and under a constraint of the called tool's
schema alone.  All times are processor time of one thread; the vocabulary is the largest that an
installed tokenizer gives, the first constraint of which is not counted.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from typing import Any

import constrain
from constrain.tools.named_formats import get_format
from constrain.tools.render import render_arguments, render_message
from tests.reference.tool_catalogue import example_arguments, tool_catalogue
from tests.reference.vocabularies import load

SIZES: dict[str, dict[str, Any]] = {
    "usual": {"fields": (3, 6), "depth": 1},
    "large": {"fields": (5, 9), "depth": 2},
}
COUNTS = (1, 3, 128)


def compile_times(vocabulary: Any, size: str, count: int, rounds: int) -> dict[str, float]:
    """Milliseconds: the median of new tools, and of the same tools again."""
    found: dict[str, list[float]] = {"new": [], "again": []}
    for turn in range(rounds):
        # names are few, so schemas decide whether tools are new
        tools = tool_catalogue(count, seed=1000 * turn + count, **SIZES[size])
        for way in found:
            gc.collect()
            start = time.thread_time()
            constrain.compile(constrain.ToolCalls(tools, format="hermes"), vocabulary)
            found[way].append(1e3 * (time.thread_time() - start))
    return {way: statistics.median(times) for way, times in found.items()}


def mask_times(vocabulary: Any, size: str, *, seed: int = 7, called: int = 16) -> dict[str, float]:
    """Microseconds for a mask of the arguments: mean over all tokens of some calls, first visits."""
    form = get_format("hermes")
    tools = tool_catalogue(128, seed=seed, **SIZES[size])
    whole = constrain.compile(
        constrain.ToolCalls(tools, format=form, tool_choice="required"), vocabulary
    )
    row = constrain.allocate_bitmask(1, vocabulary.size)
    times: dict[str, list[float]] = {"128 tools": [], "one schema": [], "before arguments": []}
    for tool in tools[:: len(tools) // called]:
        arguments = example_arguments(tool)
        message = render_message(form, [(tool["name"], arguments)]).encode()
        text = render_arguments(form, arguments).encode()
        start = message.index(text)
        single = constrain.compile(
            constrain.JsonSchema(
                tool["input_schema"],
                extra_properties="forbid",
                escapes="plain",
                whitespace="spaced",
            ),
            vocabulary,
        )
        for way, compiled, parts in (
            ("128 tools", whole, (message[:start], text)),
            ("one schema", single, (b"", text)),
        ):
            matcher = compiled.matcher()
            for number, part in enumerate(parts):
                for token in vocabulary.encode(part) or ():
                    began = time.thread_time()
                    matcher.fill_bitmask(row, 0)
                    spent = 1e6 * (time.thread_time() - began)
                    times[way if number else "before arguments"].append(spent)
                    matcher.advance(token)
    return {
        f"{way}, {name}": value
        for way, found in times.items()
        for name, value in (("mean", statistics.mean(found)), ("median", statistics.median(found)))
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    vocabulary = load("deepseek").vocabulary
    first = tool_catalogue(2, seed=99_999)
    constrain.compile(constrain.ToolCalls(first, format="hermes"), vocabulary)
    rows: list[dict[str, Any]] = []
    print("| tools | JSON, KB | compile new, ms | compile again, ms |")
    print("| --- | --- | --- | --- |")
    for size in SIZES:
        for count in COUNTS:
            tools = tool_catalogue(count, seed=count, **SIZES[size])
            kilobytes = len(json.dumps(tools)) / 1024
            found = compile_times(vocabulary, size, count, args.rounds)
            rows.append({"size": size, "tools": count, "kilobytes": kilobytes, **found})
            print(
                f"| {count} {size} | {kilobytes:.0f} | {found['new']:.1f} | {found['again']:.1f} |",
                flush=True,
            )
    print("\n| mask, µs |", *(f"{size} |" for size in SIZES))
    print("| --- |", *("--- |" for _ in SIZES))
    for size in SIZES:
        mask_times(vocabulary, size, seed=8)  # tables that all constraints share
    masks = {size: mask_times(vocabulary, size) for size in SIZES}
    for way in masks["usual"]:
        print(f"| {way} |", *(f"{masks[size][way]:.1f} |" for size in SIZES))
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"compile": rows, "masks": masks}, file, indent=1)


if __name__ == "__main__":
    main()
