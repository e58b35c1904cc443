"""The official suite and MaskBench at the level of programs: no machine, no vocabulary.

Every required test of five drafts must come out right, closing must never admit anything, and
every schema of MaskBench must translate.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from constrain.schema import JsonSchema
from tests.reference import data
from tests.reference.program_semantics import holds

REQUIRED = {
    "draft2020-12": 1299,
    "draft2019-09": 1259,
    "draft7": 927,
    "draft6": 839,
    "draft4": 618,
}


@pytest.mark.parametrize("folder", data.DRAFTS)
def test_required_tests(folder: str, shared_root: Path) -> None:
    resources = data.suite_resources(shared_root)
    wrong = []
    count = 0
    for file in data.suite_files(shared_root, folder):
        for group in data.suite_groups(shared_root, folder, file):
            options = {"draft": data.DRAFTS[folder], "resources": resources, "formats": "ignore"}
            program = JsonSchema(group.schema, **options).program()
            closed = JsonSchema(group.schema, extra_properties="forbid", **options).program()
            for index, test in enumerate(group.tests):
                count += 1
                if holds(program, test["data"]) != test["valid"]:
                    wrong.append(group.test_id(index))
                if holds(closed, test["data"]) and not test["valid"]:
                    wrong.append(group.test_id(index) + " (closed)")
    assert wrong == []
    assert count == REQUIRED[folder]


def test_real_schemas(shared_root: Path) -> None:
    # labels that rest on `format` are right only as far as formats are enforced, so that a
    # text that must be refused may pass here; one that is valid must never be refused
    refused = []
    for bench in data.maskbench(shared_root):
        program = JsonSchema(bench.schema, formats="ignore").program()
        for index, test in enumerate(bench.tests):
            if test["valid"] and not holds(program, test["data"]):
                refused.append(f"{bench.name} {index}")
    assert refused == []
