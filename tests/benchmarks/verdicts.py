"""Verdicts of constrain on MaskBench, by reason.

``python -m tests.benchmarks.verdicts --all`` judges every instance of every schema in real tokens
(texts as ``json.dumps(data, ensure_ascii=False)``, the end of sequence checked, ``numbers="any"``,
everything else by default) and prints a table. A schema is right when all its instances are.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from tests.conformance.outcomes import KINDS, Outcome
from tests.conformance.runners import maskbench_schema
from tests.reference import data, oracle, vocabularies

RIGHT = "right"


def reason(outcome: Outcome, schema: Any, test: dict[str, Any]) -> str:
    """A short class of what went wrong, for the table."""
    if outcome.kind in ("compile_error", "crash"):
        # Names and numbers vary, the rest of a message says what kind of error it is.
        text = re.sub(r"\(at [^)]*\)?|'[^']*'|\"[^\"]*\"|[0-9]+", "", outcome.detail)
        return " ".join(text.split())[:90]
    if outcome.kind == "wrong_accept" and rests_on_format(schema, test["data"]):
        return "label rests on format"
    return ""


def rests_on_format(schema: Any, value: Any) -> bool:
    """Whether the oracle finds `value` valid when it leaves `format` out of account."""
    try:
        return oracle.Oracle(schema).is_valid(oracle.parse(json.dumps(value)))
    except (oracle.OracleError, oracle.NotJsonError):
        return False


def run(arguments: argparse.Namespace, root: Path) -> dict[str, Any]:
    """Judge the chosen schemas; returns the counts, and prints what went wrong on the way."""
    vocabulary = vocabularies.load(arguments.vocabulary)
    schemas = data.maskbench(root, every=1 if arguments.all else arguments.every)
    if arguments.names:
        schemas = [s for s in schemas if any(part in s.name for part in arguments.names)]
    options = {"numbers": arguments.numbers, "whitespace": arguments.whitespace}
    by_schema: collections.Counter[str] = collections.Counter()
    by_instance: collections.Counter[str] = collections.Counter()
    reasons: dict[str, list[str]] = {}
    for bench in schemas:
        outcomes = list(maskbench_schema(bench, vocabulary, **options))
        wrong = [outcome for outcome in outcomes if outcome.kind is not None]
        worst = min(wrong, key=lambda o: KINDS.index(o.kind or ""), default=None)
        by_schema[RIGHT if worst is None else str(worst.kind)] += 1
        for index, outcome in enumerate(outcomes):
            by_instance[outcome.kind or RIGHT] += 1
            if outcome is worst:
                why = f"{outcome.kind}: {reason(outcome, bench.schema, bench.tests[index])}"
                reasons.setdefault(why, []).append(outcome.item)
                if arguments.verbose:
                    print(f"{outcome.kind} {outcome.item}: {outcome.detail[:300]}", flush=True)
    return {
        "vocabulary": arguments.vocabulary,
        "options": options,
        "schemas": dict(by_schema),
        "instances": dict(by_instance),
        "reasons": reasons,
    }


def table(result: dict[str, Any]) -> str:
    """The result as Markdown."""
    lines = ["| verdict | schemas | instances |", "| --- | --- | --- |"]
    for kind in (RIGHT, *KINDS):
        counts = [str(result[level].get(kind, 0)) for level in ("schemas", "instances")]
        lines.append(f"| {kind} | {' | '.join(counts)} |")
    lines += ["", "| wrong for this reason | schemas | for example |", "| --- | --- | --- |"]
    for why, items in sorted(result["reasons"].items(), key=lambda entry: -len(entry[1])):
        lines.append(f"| {why} | {len(items)} | {', '.join(items[:3])} |")
    return "\n".join(lines)


def main() -> None:
    """Verdicts of MaskBench, by reason."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--all", action="store_true", help="every schema (default: every 16th)")
    parser.add_argument("--every", type=int, default=16)
    parser.add_argument("--names", nargs="*", help="only schemas whose names contain one of these")
    parser.add_argument("--vocabulary", default="deepseek")
    parser.add_argument("--numbers", default="any")
    parser.add_argument("--whitespace", default="bounded")
    parser.add_argument("--verbose", action="store_true", help="print each schema that is wrong")
    parser.add_argument("--json", type=Path, help="write the result here")
    arguments = parser.parse_args()
    sys.setrecursionlimit(20_000)
    start = time.perf_counter()
    result = run(arguments, data.require_root())
    print(table(result))
    print(f"\n{time.perf_counter() - start:.1f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1, ensure_ascii=False), "utf-8")


if __name__ == "__main__":
    main()
