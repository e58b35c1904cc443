"""The README's figures, from the JSON files of the benchmarks: nothing is typed by hand.

    python -m tests.benchmarks.report FOLDER                    prints Markdown
    python -m tests.benchmarks.report FOLDER --write README.md  puts it between the marks there

FOLDER holds what the benchmarks wrote with ``--json``: files that say what they are, under any names,
and ``batch.json`` and ``function_calls.json``, which do not.
Ratios are the medians of the runs. Tables put the runs over the most schemas together, an engine's
numbers being those of the run with the most engines that it is in; so slow engines may be run apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.tables import label, markdown, number

BEGIN, END = "<!-- measured -->", "<!-- /measured -->"
OWN, BASE = "constrain", "llguidance"

# What is compared, kind of time, column, how many times less it is to be.
RATIOS = (
    ("mask, check and advance per token, average", "token", "avg", 15),
    ("the same, median", "token", "p50", 10),
    ("the same, 99th percentile", "token", "p99", 15),
    ("the same, maximum", "token", "max", 10),
    ("compile and first sequence, median", "matcher", "p50", 2),
    ("compile and first sequence, 99th percentile", "matcher", "p99", 2),
)


def read(folder: Path) -> dict[str, list[Any]]:
    """The documents of a folder by kind (else by file name), in the order of their file names."""
    found: dict[str, list[Any]] = {}
    for path in sorted(folder.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        kind = document.get("kind", path.stem) if isinstance(document, dict) else path.stem
        found.setdefault(kind, []).append(document)
    return found


def where(document: Mapping[str, Any]) -> str:
    """On what it was measured."""
    machine = document["machine"]
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, Python"
        f" {machine['python']}"
    )


def joined(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One document out of those over the most schemas of the same vocabulary, by engines.

    Runs with more engines come first; the other engines' runs add what is missing.
    """
    most = max(one["schemas"] for one in documents)
    runs = [one for one in documents if one["schemas"] == most]
    runs.sort(key=lambda one: -len(one["engines"]))
    base = dict(runs[0], engines={}, against={})
    for one in runs:
        if (one["vocabulary"], one["timeout"]) != (base["vocabulary"], base["timeout"]):
            continue
        for name, entry in one["engines"].items():
            if "unavailable" not in entry:
                base["engines"].setdefault(name, entry)
        if next(iter(one["engines"])) == OWN:
            for name, pair in one["against"].items():
                base["against"].setdefault(name, pair)
    return base


def engines(document: Mapping[str, Any]) -> str:
    """One line for each engine: what it compiles and judges right, and its times."""
    head = [
        *("engine", "compiled", "all right", "wrong accepts", "wrong rejects"),
        *("timeouts, crashes", "compile p50 / p99, ms"),
        *("token avg, µs", "p50", "p99", "max", "second sequence, p50"),
    ]
    rows = []
    for name, entry in document["engines"].items():
        if "unavailable" in entry:
            continue
        compile_times = [entry["matcher"].get(column) for column in ("p50", "p99")]
        token = [entry["token"].get(column) for column in ("avg", "p50", "p99", "max")]
        rows.append(
            [
                label(name, entry),
                f"{entry['compiled']:,}",
                f"{entry['right']:,}",
                f"{entry['wrong_accept']:,}",
                f"{entry['wrong_reject']:,}",
                f"{entry['timeout']}, {entry['crash']}",
                " / ".join(number(None if t is None else t / 1000) for t in compile_times),
                *map(number, token),
                number(entry["beyond"].get("p50") if entry["beyond"] else None),
            ]
        )
    return markdown(head, rows)


def shared_schemas(document: Mapping[str, Any]) -> str:
    """This project beside each other engine, on the schemas that both compile."""
    rows = []
    for name, pair in document["against"].items():
        cells = []
        for what, column, scale in (
            ("matcher", "p50", 1000),
            ("whole", "avg", 1000),
            ("token", "avg", 1),
            ("token", "p50", 1),
            ("token", "p99", 1),
            ("token", "max", 1),
        ):
            own, theirs = pair["one"][what], pair["other"][what]
            if own and theirs:
                cells.append(f"{number(own[column] / scale)} / {number(theirs[column] / scale)}")
            else:
                cells.append("-")
        rows.append([name, f"{pair['schemas']:,}", *cells])
    head = [
        *("constrain / other", "shared schemas", "compile p50, ms"),
        *("compile and all instances avg, ms", "token avg, µs"),
        *("p50", "p99", "max"),
    ]
    return markdown(head, rows)


def ratios(documents: Sequence[Mapping[str, Any]]) -> str:
    """How many times less than llguidance's, each run, and the median of the runs."""
    runs = [
        one
        for one in documents
        if all(one["engines"].get(name, {}).get("token") for name in (OWN, BASE))
    ]
    if not runs:
        return ""
    rows = []
    for title, what, column, aim in RATIOS:
        whole = [
            one["engines"][BASE][what][column] / one["engines"][OWN][what][column] for one in runs
        ]
        both = [
            pair["other"][what][column] / pair["one"][what][column]
            for one in runs
            if (pair := one["against"].get(BASE)) and pair["one"][what]
        ]
        rows.append(
            [
                title,
                str(aim),
                number(statistics.median(whole)),
                number(statistics.median(both)) if both else "-",
                ", ".join(number(value) for value in whole),
            ]
        )
    head = ["times less than llguidance", "aim", "all schemas", "shared schemas", "runs"]
    return markdown(head, rows)


def single_figures(found: Mapping[str, Sequence[Any]]) -> str:
    """Aims that are no ratios to another engine: masks, vocabularies, decoding, function calls."""
    rows = []
    warm = [
        one["engines"][OWN]["beyond"]["p50"]
        for one in found.get("maskbench", ())
        if one["engines"].get(OWN, {}).get("beyond")
    ]
    if warm:
        value = number(statistics.median(warm))
        rows.append(["mask of a second sequence, median, beyond an empty call", "1 µs", value])
        rows[-1][-1] += " µs"
    for one in found.get("micro", ())[-1:]:
        for way, aim in (("from a tokenizer object", "1 s"), ("from its file", "50 ms")):
            value = one["vocabulary_build"][f"{way}, trie included"] * 1000
            rows.append([f"vocabulary of 128k {way}, trie included", aim, f"{number(value)} ms"])
    for one in found.get("batch", ())[-1:]:
        for name, times in one.items():
            ratio = times["2 threads"] / times["64 single calls"]
            title = f"masks of 64 matchers on 2 threads by 64 single calls, {name}"
            rows.append([title, "0.6", number(ratio)])
    for one in found.get("end_to_end", ())[-1:]:
        for batch, entry in one["batches"].items():
            rows.append(
                [
                    f"latency between tokens by that of free decoding, batch {batch}",
                    "1.01",
                    f"{entry['median_of_ratios']:.4f}"
                    f" ({entry['constrained_p50'] * 1e3:.1f} ms a step,"
                    f" {entry['mask_per_step'] * 1e6:.0f} µs of it masks)",
                ]
            )
    for one in found.get("function_calls", ())[-1:]:
        for entry in one:
            if entry["way"] == "budget":
                calls = entry["valid"] + entry["cut off"] + entry["invalid"]
                title = f"function calls that are valid, {entry['objects']} objects"
                passes = entry["metrics"]["passes_per_token"]
                said = f"{entry['valid']} ({passes:.2f} forward passes per token)"
                rows.append([title, f"{calls} of {calls}", said])
    return markdown(["what", "aim", "measured"], rows) if rows else ""


def text(found: Mapping[str, Sequence[Any]]) -> str:
    """The section, without its heading."""
    parts: list[str] = []
    documents = found.get("maskbench", [])
    if documents:
        most = joined(documents)
        parts += [
            f"{most['schemas']:,} schemas of MaskBench, cold, one core of {where(most)};"
            f" vocabulary {most['vocabulary']}; at most {most['timeout']:g} s for a schema"
            + ("." if most["clock"] == "wall" else "; processor time."),
            engines(most),
            shared_schemas(most) if most["against"] else "",
            ratios(documents),
        ]
    parts.append(single_figures(found))
    return "\n\n".join(part for part in parts if part)


def write(path: Path, section: str) -> None:
    """Put the section between the marks of a file. Raises SystemExit where there are none."""
    before, begin, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} has no {BEGIN} ... {END}")
    path.write_text(f"{before}{BEGIN}\n{section}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """The README's figures, from the JSON files of the benchmarks."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", type=Path, metavar="README.md")
    arguments = parser.parse_args()
    found = read(arguments.folder)
    if not found:
        raise SystemExit(f"{arguments.folder} has no JSON file of a benchmark")
    section = text(found)
    if arguments.write:
        write(arguments.write, section)
    else:
        print(section)


if __name__ == "__main__":
    main()
