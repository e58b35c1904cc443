"""The support table says what the tests find, and is up to date."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from tests.conformance import support_table


@pytest.mark.slow
def test_page(shared_root: Path) -> None:
    pytest.importorskip("jsonschema_specifications")
    wanted = support_table.page(shared_root)
    assert support_table.PAGE.is_file(), f"run {support_table.COMMAND}"
    found = support_table.PAGE.read_text(encoding="utf-8")
    difference = difflib.unified_diff(found.split("\n"), wanted.split("\n"), "page", "tests", n=0)
    assert found == wanted, "\n".join([f"run {support_table.COMMAND}", *difference])
