"""The support table of the documentation, written from what the tests find.

``python -m tests.conformance.support_table`` writes ``docs/support.md``; `page` makes its text. A
test compares the two, so that the page cannot say what the tests do not find: every cell is the
outcome of a suite or of a probe (`tests.conformance.probes`), every reason is one of
``baseline.json``, whose entries the tests hold to be exact.

Cost: the official suite and MaskBench, half a minute, unless its tests ran before in the same process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.conformance import case_runners, probes, runners
from tests.conformance.outcomes import Outcome, baseline
from tests.reference import data

PAGE = data.REPOSITORY / "docs" / "support.md"
_DRAFTS = list(reversed(data.DRAFTS.items()))
_NAMES = [name for _, name in _DRAFTS]
COMMAND = "python -m tests.conformance.support_table"

_INTRODUCTION = f"""# What is supported

This page is written by `{COMMAND}` from the results of the
tests, and a test fails where it differs from them. Verdicts are those of token masks: a text counts as accepted where
each of its tokens is allowed in its turn and the end of sequence after them, and as refused
otherwise. Nothing is ever checked afterwards.

* **enforced**: exactly the valid texts are accepted.
* **narrowed**: no invalid text is accepted, and some valid ones, which the page names, are not.
* **annotation**: without a meaning for validity; the report lists it.
* **—**: the keyword is not of this draft. It is ignored, and the report says so.

`JsonSchema(...).report()` and `constrain check` say the same about a schema of yours."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a Markdown table."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    return [line(head), line(["---"] * len(head)), *map(line, rows)]


def figure(outcomes: Sequence[Outcome]) -> str:
    """ "11/12" with the number of right ones first; "" where there is no test."""
    right = sum(outcome.kind is None for outcome in outcomes)
    if not outcomes:
        return ""
    return str(right) if right == len(outcomes) else f"**{right} of {len(outcomes)}**"


def _summary(sections: Iterable[tuple[str, Sequence[Outcome]]]) -> list[str]:
    rows = []
    for name, outcomes in sections:
        kinds = [outcome.kind for outcome in outcomes]
        counts = [sum(kind == wanted for kind in kinds) for wanted in (None, *_WRONG)]
        rows.append([name, str(len(kinds)), *map(str, counts)])
    head = ["", "tests", "right", "valid, yet refused", "invalid, yet accepted", "not compiled"]
    return table(head, rows)


_WRONG = ("wrong_reject", "wrong_accept", "compile_error")


def _suite(root: Path) -> dict[str, dict[str, tuple[Outcome, ...]]]:
    """Draft folder to file to outcomes, required and optional files."""
    return {
        folder: {
            file: runners.suite_file(root, folder, file)
            for file in (*data.suite_files(root, folder), *data.optional_files(root, folder))
        }
        for folder, _ in _DRAFTS
    }


def _files(results: dict[str, dict[str, tuple[Outcome, ...]]], prefix: str | None) -> list[str]:
    """The figures of required files (prefix None), or of the optional ones below a prefix."""
    names: dict[str, str] = {}
    for files in results.values():
        for file in files:
            folder, _, name = file.rpartition("/")
            if folder == (prefix or ""):
                names[file] = name
    rows = [
        [name, *(figure(results[folder].get(file, ())) for folder, _ in _DRAFTS)]
        for file, name in sorted(names.items())
    ]
    return table(["file", *_NAMES], rows)


def _reasons(sections: Iterable[str]) -> list[str]:
    """The listed misses of some sections of the baseline, by reason."""
    reasons: dict[str, dict[str, int]] = {}
    for section in sections:
        for kind, items in baseline().get(section, {}).items():
            for item, reason in items.items():
                file = item.split("/")[-3]
                counts = reasons.setdefault(f"{reason}|{kind}", {})
                counts[file] = counts.get(file, 0) + 1
    lines = []
    for key, counts in sorted(reasons.items()):
        reason, kind = key.split("|")
        what = {"wrong_reject": "refused", "wrong_accept": "accepted"}.get(kind, "not compiled")
        files = ", ".join(f"{file} {count}" for file, count in sorted(counts.items()))
        lines.append(f"* {reason} ({what}: {files})")
    return lines


def _keywords() -> list[str]:
    rows = []
    for keyword in probes.KEYWORDS:
        cells = [probes.keyword_status(keyword, draft) for draft in _NAMES]
        words, *more = keyword.split(" ", 1) if "," not in keyword else [keyword]
        name = ", ".join(f"`{word}`" for word in words.rstrip(":").split(", "))
        name = " ".join([name, *more])
        rows.append([name, *("—" if cell == "not in this draft" else cell for cell in cells)])
    return table(["keyword", *_NAMES], rows)


_MORE_FILES = {"regex": ["ecmascript-regex"]}


def _formats(results: dict[str, dict[str, tuple[Outcome, ...]]]) -> list[str]:
    import constrain
    from constrain.regex import FORMATS

    rows = []
    for name in sorted(FORMATS):
        statuses = set()
        for draft in _NAMES:
            schema = {"type": "string", "format": name}
            report = constrain.JsonSchema(schema, draft=draft).report()
            notes = [entry for entry in report if entry.keyword == "format"]
            for entry in notes:
                # The detail of what is narrowed begins with the name.
                detail = entry.detail.partition(": ")[2]
                statuses.add(f"{entry.status}: {detail}" if detail else entry.status)
        files = [f"optional/format/{file}" for file in (name, *_MORE_FILES.get(name, ()))]
        figures = [
            figure([o for file in files for o in results[folder].get(file, ())])
            for folder, _ in _DRAFTS
        ]
        rows.append([f"`{name}`", " / ".join(sorted(statuses)), *figures])
    return table(["format", "", *(f"tests, {name}" for name in _NAMES)], rows)


def _constructs() -> list[str]:
    import constrain

    def schema(pattern: str) -> constrain.JsonSchema:
        return constrain.JsonSchema({"type": "string", "pattern": pattern})

    lines = ["### In `pattern` and `patternProperties` (ECMA-262)", ""]
    for make, constructs in ((schema, probes.ECMA), (constrain.Regex, probes.PYTHON)):
        if make is constrain.Regex:
            lines += ["", "### In `constrain.Regex` (the syntax of `re`, whole texts)", ""]
        rows = [
            [c.name, f"`{c.pattern}`", probes.construct_status(make, c)]  # type: ignore[arg-type]
            for c in constructs
        ]
        lines += table(["construct", "for example", ""], rows)
    return lines


def _verdict(accepted: bool) -> str:
    return "accepted" if accepted else "refused"


def _policies() -> list[str]:
    lines: list[str] = []
    for option in dict.fromkeys(policy.option for policy in probes.POLICIES):
        policies = [policy for policy in probes.POLICIES if policy.option == option]
        values = policies[0].values
        head = ["", *(f'`{option}="{value}"`' for value in values)]
        rows = [[p.what, *(_verdict(ok) for _, ok in p.verdicts())] for p in policies]
        lines += ["", *table(head, rows)]
    return lines[1:]


def _always() -> list[str]:
    import constrain

    rows = [
        [what, _verdict(probes.accepts(constrain.JsonSchema(schema, **probes.EXACT), text))]
        for what, schema, text in probes.ALWAYS
    ]
    return table(["whatever the options", ""], rows)


def page(root: Path) -> str:
    """The page. Runs what has not run yet in this process."""
    results = _suite(root)
    required = [
        (
            f"draft {name}",
            [o for f, found in results[folder].items() if "/" not in f for o in found],
        )
        for folder, name in _DRAFTS
    ]
    optional = [
        (
            f"draft {name}, optional",
            [o for f, found in results[folder].items() if "/" in f for o in found],
        )
        for folder, name in _DRAFTS
    ]
    parsing = list(runners.json_parsing(root))
    cases = list(case_runners.run_all(root))
    bench = runners.maskbench_by_bytes(root)
    bench_schemas = [outcome for outcome in bench if "#" not in outcome.item]
    empty = [o for o in bench_schemas if o.kind is None and o.detail]
    sections = [
        *required,
        *optional,
        ("JSON parsing", parsing),
        ("MaskBench, schemas", bench_schemas),
        ("MaskBench, instances", [o for o in bench if "#" in o.item]),
        ("reported faults", cases),
    ]
    byname = ", ".join(f"`{name}`" for name in sorted(runners.REFUSED_BY_DESIGN))
    lines = [
        _INTRODUCTION,
        "",
        "## In figures",
        "",
        *_summary(sections),
        "",
        "The first ten rows are the official JSON Schema suite, required and optional tests, with"
        ' `whitespace="any"` and `numbers="any"`; `formats="assert"` for its format files and'
        ' `content="assert"` for its content file. Each instance is judged in several spellings'
        " (keys shuffled, indented, every non-ASCII character escaped, ASCII escaped at random,"
        " numbers respelled as `1.0` or `10e-1`) and cut into tokens in several ways; it counts as"
        " right where all agree. JSON parsing is a collection of well-formed and malformed texts"
        f" under the schema `true`, where {byname} must be refused, since duplicate keys are."
        " MaskBench is 1,413 schemas, most of them from practice, with instances, under"
        ' `numbers="any"` and the defaults otherwise; its schemas are right where they compile or'
        " nothing can satisfy them. Reported faults are inputs distilled from public bug reports of"
        " such engines.",
        "",
        "Of MaskBench, nothing satisfies, and compiling says so:",
        "",
        *(f"* {outcome.item}: {outcome.detail}" for outcome in empty),
        "",
        "Not as the official tests have it, and why:",
        "",
        *_reasons([*data.DRAFTS, *(f"{folder}/optional" for folder in data.DRAFTS)]),
        "",
        "## Keywords by draft",
        "",
        "The draft is that of `$schema`, or else of the option `draft`. Each cell is what a text that"
        " the keyword forbids, one that it permits, and the report have shown.",
        "",
        *_keywords(),
        "",
        "## Formats",
        "",
        'With `formats="assert"`, the default. Other names are unknown: ignored, and reported.'
        " Figures are tests of the official suite that are right; where some are not, of how many.",
        "",
        *_formats(results),
        "",
        "## Regular expressions",
        "",
        *_constructs(),
        "",
        "## Policies",
        "",
        "Options of `JsonSchema`; the first value is the default. `extra_properties` is `forbid` by"
        " default for Python types.",
        "",
        *_policies(),
        "",
        *_always(),
        "",
        "## Limits",
        "",
        *table(["", ""], [[what, probes.limit_status(make())] for what, make in probes.LIMITS]),
        "",
        "Under more than ten different divisors at once a prefix of a number is not proved to be"
        " completable: no invalid number is accepted, but one may lead nowhere. Constraints are"
        " bounded in memory (`max_memory`).",
        "",
        "## Official suite by file",
        "",
        "Required tests that are right; where some are not, of how many.",
        "",
        *_files(results, None),
        "",
        "Optional tests:",
        "",
        *_files(results, "optional"),
        "",
        "Optional tests of formats:",
        "",
        *_files(results, "optional/format"),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    text = page(data.require_root())
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE.relative_to(data.REPOSITORY)}")


if __name__ == "__main__":
    main()
