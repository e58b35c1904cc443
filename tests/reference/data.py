"""Where the test data lies, and how each suite reads.

The data is not part of the repository. It is found through the environment variable
``CONSTRAIN_DATA`` or beside the repository, and holds ``data/`` (the public suites) and ``cases/``
(inputs distilled from bug reports). ``CONSTRAIN_DATA`` may name that folder or its ``data`` folder.

Invariants: nothing here imports constrain, and every reader returns its items in a fixed order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]

DRAFTS = {
    "draft2020-12": "2020-12",
    "draft2019-09": "2019-09",
    "draft7": "7",
    "draft6": "6",
    "draft4": "4",
}
"""Folder of the official suite to the name of the draft as `JsonSchema(draft=...)` takes it."""


def shared_root() -> Path | None:
    """The folder that holds ``data/`` and ``cases/``, or None where there is none."""
    named = os.environ.get("CONSTRAIN_DATA")
    candidates = [Path(named), Path(named).parent] if named else [REPOSITORY.parent / "shared"]
    for candidate in candidates:
        if (candidate / "data" / "maskbench").is_dir():
            return candidate
    return None


def require_root() -> Path:
    """`shared_root()`, or FileNotFoundError with what to set."""
    root = shared_root()
    if root is None:
        raise FileNotFoundError(
            "the shared test data was not found: set CONSTRAIN_DATA to the folder that holds "
            "data/maskbench"
        )
    return root


@dataclass(frozen=True)
class SuiteGroup:
    """One group of the official JSON Schema suite: a schema and its tests."""

    draft: str
    file: str
    description: str
    schema: Any
    tests: tuple[dict[str, Any], ...]

    def test_id(self, index: int) -> str:
        """A stable name of a test, as the baseline file spells it."""
        return f"{self.draft}/{self.file}/{self.description}/{self.tests[index]['description']}"


def suite_files(root: Path, draft: str) -> list[str]:
    """Names (without .json) of the required test files of a draft folder."""
    folder = root / "data" / "json-schema-test-suite" / "tests" / draft
    return sorted(path.stem for path in folder.glob("*.json"))


def optional_files(root: Path, draft: str) -> list[str]:
    """Names of the optional test files of a draft folder: `optional/...`, without .json."""
    folder = root / "data" / "json-schema-test-suite" / "tests" / draft
    found = (folder / "optional").rglob("*.json")
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in found)


def suite_groups(root: Path, draft: str, file: str) -> list[SuiteGroup]:
    """The groups of one file of the official suite, required or optional."""
    path = root / "data" / "json-schema-test-suite" / "tests" / draft / f"{file}.json"
    groups = json.loads(path.read_text(encoding="utf-8"))
    return [
        SuiteGroup(draft, file, group["description"], group["schema"], tuple(group["tests"]))
        for group in groups
    ]


@lru_cache(maxsize=1)
def suite_resources(root: Path) -> dict[str, Any]:
    """The remote documents of the official suite and the published metaschemas, by URI."""
    folder = root / "data" / "json-schema-test-suite" / "remotes"
    resources: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.json")):
        uri = f"http://localhost:1234/{path.relative_to(folder).as_posix()}"
        resources[uri] = json.loads(path.read_text(encoding="utf-8"))
    resources.update(metaschemas())
    return resources


@lru_cache(maxsize=1)
def metaschemas() -> dict[str, Any]:
    """The metaschemas of every draft (from the package jsonschema-specifications), by URI."""
    from jsonschema_specifications import REGISTRY

    # A round trip through text gives plain dicts, whatever mapping the package holds.
    return {
        uri.rstrip("#"): json.loads(json.dumps(REGISTRY.contents(uri))) for uri in sorted(REGISTRY)
    }


@dataclass(frozen=True)
class BenchSchema:
    """One MaskBench schema with its instances."""

    name: str
    schema: Any
    tests: tuple[dict[str, Any], ...]

    def texts(self) -> Iterator[tuple[int, str, bool]]:
        """(index, text, valid) of each instance; texts as the MaskBench protocol writes them."""
        for index, test in enumerate(self.tests):
            yield index, json.dumps(test["data"], ensure_ascii=False), bool(test["valid"])


def maskbench(root: Path, *, every: int = 1, offset: int = 0) -> list[BenchSchema]:
    """Every `every`-th schema of MaskBench, from `offset`, in the order of their names."""
    paths = sorted((root / "data" / "maskbench").glob("*.json"))[offset::every]
    return [maskbench_schema(path) for path in paths]


def maskbench_schema(path: Path) -> BenchSchema:
    """The MaskBench schema in one file."""
    document = json.loads(path.read_text(encoding="utf-8"))
    tests = tuple(test for test in document["tests"] if "data" in test)
    return BenchSchema(path.stem, document["schema"], tests)


def json_parsing_cases(root: Path) -> list[tuple[str, bytes]]:
    """(file name, raw bytes) of the JSON parsing cases: `y_` accept, `n_` refuse, `i_` either."""
    folder = root / "data" / "json-test-suite"
    return [(path.name, path.read_bytes()) for path in sorted(folder.glob("*.json"))]


@lru_cache(maxsize=1)
def _all_cases(root: Path) -> tuple[dict[str, Any], ...]:
    lines = (root / "cases" / "cases.jsonl").read_text(encoding="utf-8").split("\n")
    return tuple(json.loads(line) for line in lines if line.strip())


def cases(root: Path, *kinds: str) -> list[dict[str, Any]]:
    """The distilled bug reports of the given kinds."""
    return [case for case in _all_cases(root) if case["kind"] in kinds]
