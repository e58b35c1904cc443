"""The conformance checks themselves, as functions from data to outcomes.

Each is used by a pytest module of this folder and by the command line of `outcomes`. Everything is
judged at the level of masks (`tests.reference.drive.judge`).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from tests.conformance.outcomes import Outcome
from tests.conformance.spellings import spellings
from tests.reference import data, vocabularies
from tests.reference.drive import ContractError, judge, new_row, random_tokens, tokens_by_bytes
from tests.reference.vocabularies import TestVocabulary

EXACT: dict[str, Any] = {"whitespace": "any", "numbers": "any", "formats": "ignore"}
"""Options under which the accepted texts are exactly the valid ones."""


class Subject:
    """A constraint compiled for one vocabulary, or the reason why it could not be.

    `build` makes the specification, so that its errors are caught too. An unsatisfiable constraint
    is no error here: it accepts nothing, which may be right.
    """

    def __init__(self, build: Callable[[], Any], vocabulary: TestVocabulary) -> None:
        import constrain

        self.vocabulary = vocabulary
        self.compiled: Any = None
        self.error_kind: str | None = None
        self.error = ""
        self.unsatisfiable = False
        try:
            self.compiled = constrain.compile(build(), vocabulary.vocabulary)
            self._row = new_row(vocabulary.vocabulary)
        except constrain.UnsatisfiableError as error:
            self.unsatisfiable = True
            self.error = f"{type(error).__name__}: {error}"
        except constrain.ConstrainError as error:
            self.error_kind = "compile_error"
            self.error = f"{type(error).__name__}: {error}"
        except Exception as error:
            self.error_kind = "crash"
            self.error = f"{type(error).__name__}: {error}"

    def check(self, item: str, ids: list[int], valid: bool | None, shown: str = "") -> Outcome:
        """The outcome for one text; `valid` is None where either verdict will do."""
        if self.error_kind is not None:
            return Outcome(item, self.error_kind, self.error)
        if self.unsatisfiable:
            return Outcome(item, "wrong_reject", self.error) if valid else Outcome(item)
        try:
            verdict = judge(self.compiled, ids, self.vocabulary.eos_ids, self._row)
        except ContractError as error:
            return Outcome(item, "contract", f"{shown[:120]!r}: {error}")
        except Exception as error:
            return Outcome(item, "crash", f"{shown[:120]!r}: {type(error).__name__}: {error}")
        if valid is None or verdict.accepted == valid:
            return Outcome(item)
        if verdict.accepted:
            return Outcome(item, "wrong_accept", shown[:200])
        before = self.vocabulary.text(ids[: verdict.position])[-60:]
        token = ids[verdict.position : verdict.position + 1]
        what = self.vocabulary.text(token) if token else b"end"
        return Outcome(item, "wrong_reject", f"{shown[:120]!r}: {what!r} refused after {before!r}")


def worst(outcomes: list[Outcome]) -> Outcome:
    """The first outcome that is wrong, or the first."""
    return next((outcome for outcome in outcomes if outcome.kind is not None), outcomes[0])


def _options(file: str) -> dict[str, Any]:
    """The options under which a file of the official suite is judged."""
    if file.startswith("optional/format/"):
        return {**EXACT, "formats": "assert"}
    if file == "optional/content":
        return {**EXACT, "content": "assert"}
    return EXACT


def _integers_have_spellings(group: data.SuiteGroup) -> bool:
    """Whether `1` and `1.0` are alike to a schema: in draft 4 not, where `integer` is asked for."""
    if group.draft != "draft4":
        return True
    text = json.dumps(group.schema)
    return '"integer"' not in text and "http" not in text


def suite_group(root: Path, group: data.SuiteGroup, every_real: int = 12) -> Iterator[Outcome]:
    """All tests of a group: by bytes, by random small tokens and, for a sample, by DeepSeek's.

    Each instance in every spelling (`tests.conformance.spellings`).
    """
    rng = random.Random(group.file + group.description)
    resources = data.suite_resources(root)

    def build() -> Any:
        import constrain

        draft = data.DRAFTS[group.draft]
        options = _options(group.file)
        return constrain.JsonSchema(group.schema, draft=draft, resources=resources, **options)

    small = vocabularies.small_vocabulary()
    table = tokens_by_bytes(small.tokens)
    by_bytes = Subject(build, vocabularies.byte_vocabulary())
    by_small = Subject(build, small)
    real = None
    if rng.randrange(every_real) == 0:
        real = Subject(build, vocabularies.load("deepseek"))
    integers = _integers_have_spellings(group)
    for index, test in enumerate(group.tests):
        item = group.test_id(index)
        found = []
        for text in spellings(test["data"], rng, integers=integers):
            encoded = text.encode("utf-8")
            found.append(by_bytes.check(item, list(encoded), test["valid"], text))
            ids = random_tokens(encoded, table, rng) or []
            found.append(by_small.check(item, ids, test["valid"], text))
        if real is not None:
            text = json.dumps(test["data"], ensure_ascii=False)
            found.append(real.check(item, real.vocabulary.encode(text), test["valid"], text))
        yield worst(found)


@cache
def suite_file(root: Path, draft: str, file: str) -> tuple[Outcome, ...]:
    """The outcomes of one file of the official JSON Schema suite; kept, so that they are judged once.

    `file` is the name of a required file, or `optional/...`.
    """
    groups = data.suite_groups(root, draft, file)
    return tuple(outcome for group in groups for outcome in suite_group(root, group))


REFUSED_BY_DESIGN = {
    "y_object_duplicated_key.json": "duplicate keys are refused, as documented",
    "y_object_duplicated_key_and_value.json": "duplicate keys are refused, as documented",
}


def json_parsing(root: Path) -> list[Outcome]:
    """The JSON parsing cases, as raw bytes against the schema `true`."""

    def build() -> Any:
        import constrain

        return constrain.JsonSchema(True, **EXACT)

    subject = Subject(build, vocabularies.byte_vocabulary())
    outcomes = []
    for name, raw in data.json_parsing_cases(root):
        valid = {"y": True, "n": False}.get(name[0])
        if name in REFUSED_BY_DESIGN:
            valid = False
        shown = raw[:200].decode("utf-8", "replace")
        outcomes.append(subject.check(name, list(raw), valid, shown))
    return outcomes


def _bench_spec(bench: data.BenchSchema, **options: Any) -> Any:
    import constrain

    return constrain.JsonSchema(bench.schema, **{"numbers": "any", **options})


def _instances(bench: data.BenchSchema, subject: Subject) -> Iterator[Outcome]:
    for index, text, valid in bench.texts():
        yield subject.check(f"{bench.name}#{index}", subject.vocabulary.encode(text), valid, text)


def maskbench_schema(
    bench: data.BenchSchema, vocabulary: TestVocabulary, **options: Any
) -> Iterator[Outcome]:
    """The instances of one MaskBench schema by the MaskBench protocol, `numbers="any"`."""
    return _instances(bench, Subject(partial(_bench_spec, bench, **options), vocabulary))


@cache
def maskbench_by_bytes(root: Path) -> tuple[Outcome, ...]:
    """All of MaskBench, byte by byte; kept, so that it is judged once.

    One outcome for each schema (whether it compiles; `detail` says why nothing satisfies it, where
    nothing does) and one, with `#` in its name, for each instance: 205 schemas have none.
    """
    vocabulary = vocabularies.byte_vocabulary()
    outcomes = []
    for bench in data.maskbench(root):
        subject = Subject(partial(_bench_spec, bench), vocabulary)
        outcomes.append(Outcome(bench.name, subject.error_kind, subject.error))
        outcomes += _instances(bench, subject)
    return tuple(outcomes)


MASKBENCH_SAMPLE = {"every": 16, "offset": 3}


def maskbench_sample(root: Path) -> list[Outcome]:
    """The sample of MaskBench that every test run judges, in DeepSeek's tokens."""
    vocabulary = vocabularies.load("deepseek")
    schemas = data.maskbench(root, **MASKBENCH_SAMPLE)
    return [o for bench in schemas for o in maskbench_schema(bench, vocabulary)]


def run_all() -> dict[str, list[Outcome]]:
    """Every section of the baseline."""
    from tests.conformance import case_runners

    root = data.require_root()
    sections: dict[str, list[Outcome]] = {}
    for draft in data.DRAFTS:
        sections[draft] = [
            outcome
            for file in data.suite_files(root, draft)
            for outcome in suite_file(root, draft, file)
        ]
        sections[f"{draft}/optional"] = [
            outcome
            for file in data.optional_files(root, draft)
            for outcome in suite_file(root, draft, file)
        ]
    sections["json-parsing"] = json_parsing(root)
    sections["maskbench"] = list(maskbench_by_bytes(root))
    sections["cases"] = case_runners.run_all(root)
    return sections
