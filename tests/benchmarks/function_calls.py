"""24 small function calls by a model: how many are valid within a token budget.

    python -m tests.benchmarks.function_calls [--objects open,closed] [--max-tokens 160]
        [--temperature 1.0] [--batch 8] [--seed 0] [--ways free,budget,no-budget] [--json FILE]

Ways: `free` has no constraint, `budget` is the default of the loop, `no-budget` cuts off at the
limit. Objects: `closed` ones get no property that they do not declare, `open` ones may. A text
counts as valid if it parses as strict JSON and satisfies the schema (jsonschema, with formats).
Without arguments it takes SmolLM2 about ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from tests.reference import oracle


def run(
    loaded: tuple[Any, Any, Any], way: str, objects: str, args: argparse.Namespace
) -> dict[str, Any]:
    """Generate all calls in one way; what became of them."""
    import constrain
    from constrain.cli._tasks import TASKS
    from constrain.decoding import Metrics, generate_batch

    model, tokenizer, vocabulary = loaded
    extra = {"open": "schema", "closed": "forbid"}[objects]
    results: list[Any] = []
    timings = []
    for first in range(0, len(TASKS), args.batch):
        tasks = TASKS[first : first + args.batch]
        compiled = [
            constrain.compile(constrain.JsonSchema(t.schema, extra_properties=extra), vocabulary)
            for t in tasks
        ]
        found = generate_batch(
            model,
            tokenizer,
            [task.messages for task in tasks],
            None if way == "free" else compiled,
            max_tokens=args.max_tokens,
            temperature=args.temperature,
            seed=args.seed + first,
            budget=way == "budget",
        )
        timings.append([result.timings for result in found])
        results += found
    outcomes = [_outcome(task, result) for task, result in zip(TASKS, results)]
    for task, outcome, result in zip(TASKS, outcomes, results):
        if outcome != "valid":
            print(f"  {way} {objects} {task.name}: {outcome}: {result.text[:100]!r}")
    return {
        "way": way,
        "objects": objects,
        "valid": outcomes.count("valid"),
        "cut off": outcomes.count("cut off"),
        "invalid": outcomes.count("invalid"),
        "longest": max(len(result.token_ids) for result in results),
        "metrics": Metrics.of(*timings).as_dict(),
    }


def _outcome(task: Any, result: Any) -> str:
    if oracle.Oracle(task.schema, check_formats=True).accepts(result.text):
        return "valid"
    return "cut off" if result.finish_reason == "length" else "invalid"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--objects", default="open,closed")
    parser.add_argument("--ways", default="free,no-budget,budget")
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="FILE")
    args = parser.parse_args()
    from constrain.cli import _runtime

    loaded = _runtime.open_model(None)
    rows = []
    for objects in args.objects.split(","):
        for way in args.ways.split(","):
            rows.append(run(loaded, way, objects, args))
            said = {key: value for key, value in rows[-1].items() if key != "metrics"}
            passes = rows[-1]["metrics"]["passes_per_token"]
            print(f"{said}, forward passes per token {passes:.3f}", flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=2)


if __name__ == "__main__":
    main()
