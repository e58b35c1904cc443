"""Drives class_tables.cpp: vocabularies and cursors in, whether both kinds of tables agree out."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

import pytest

from tests.native.core_sources import NATIVE, lexical


@dataclass(frozen=True)
class Pattern:
    """A compiled regex, perhaps negated."""

    program: tuple[int, ...]
    negated: bool = False


class ClassTablesRunner:
    """One vocabulary and one cursor at a time."""

    def __init__(self, executable: Path) -> None:
        self._process = subprocess.Popen(
            [str(executable)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self._process.kill)

    def _pipes(self) -> tuple[IO[str], IO[str]]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the driver has no pipes")
        return stdin, stdout

    def vocabulary(self, tokens: Sequence[bytes]) -> None:
        """Takes these tokens from now on; an empty one is in no table."""
        stdin, _ = self._pipes()
        words = " ".join(token.hex() or "-" for token in tokens)
        stdin.write(f"vocab {len(tokens)} {words}\n")

    def walk(
        self,
        goals: Iterable[Pattern],
        tracked: Iterable[Pattern] = (),
        *,
        raw: bool = False,
        least: int = 0,
        most: int | None = None,
        seed: int = 0,
        steps: int = 8,
    ) -> tuple[int, int, int]:
        """Compares tables along a random walk.

        Returns:
            How many tables were compared, how many of them were made by classes, and how many
            tokens they had together.

        Raises:
            AssertionError: two tables differ.
        """
        stdin, stdout = self._pipes()
        goals, tracked = list(goals), list(tracked)
        words = ["cursor", int(raw), least, -1 if most is None else most, len(goals), len(tracked)]
        for pattern in (*goals, *tracked):
            words += [int(pattern.negated), len(pattern.program), *pattern.program]
        words += ["walk", seed, steps]
        stdin.write(" ".join(map(str, words)) + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            raise RuntimeError(f"the driver ended: {self._process.wait()}")
        assert answer.startswith("ok "), answer.strip()
        tables, by_class, count = map(int, answer.split()[1:])
        return tables, by_class, count


@lru_cache(maxsize=1)
def runner() -> ClassTablesRunner:
    """The compiled driver; skips where there is no compiler."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    executable = Path(tempfile.mkdtemp(prefix="class_tables")) / "class_tables"
    command = [compiler, "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror"]
    command += [f"-I{NATIVE / 'include'}", str(Path(__file__).with_name("class_tables.cpp"))]
    command += lexical()
    subprocess.run([*command, "-o", str(executable)], check=True)
    return ClassTablesRunner(executable)
