"""Drives regex_dfa_test.cpp: programs and texts in, verdicts out, without the binding.

The driver is compiled once per session with the system's g++ (or $CXX), the core's regex sources
and all warnings on.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

import pytest

from tests.native.core_sources import NATIVE, regexes

NOTHING = 0xFFFFFFFF


@dataclass(frozen=True)
class Verdict:
    """What the automaton says at one position of a text."""

    accepting: bool
    live: bool
    constant: str  # "no", "everything", "nothing"
    distance: int  # NOTHING: no continuation is accepted


class RegexRunner:
    """One automaton at a time."""

    def __init__(self, executable: Path) -> None:
        self._process = subprocess.Popen(
            [str(executable)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self._process.kill)

    def _ask(self, line: str) -> str:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise RuntimeError("the driver has no pipes")
        _send(stdin, line)
        answer = stdout.readline()
        if not answer:
            raise RuntimeError(f"the driver ended: {self._process.wait()}")
        if answer.startswith(("error", "limit")):
            raise ValueError(answer.strip())
        return answer.strip()

    def load(self, program: Iterable[int], max_states: int | None = None) -> int:
        """Makes the automaton; returns its number of classes."""
        words = list(program)
        self._ask(f"M {max_states or 1 << 20}")
        return int(self._ask(f"P {len(words)} {' '.join(map(str, words))}").split()[1])

    def accepts(self, text: str) -> bool:
        """Whether the whole text is accepted."""
        return self._ask("A " + " ".join(str(ord(c)) for c in text)) == "1"

    def trace(self, text: str) -> list[Verdict]:
        """The verdicts before the first code point, after it, and so on."""
        answer = self._ask("T " + " ".join(str(ord(c)) for c in text))
        constants = ("no", "everything", "nothing")
        verdicts = []
        for word in answer.split():
            flags, distance = word.split(":")
            verdicts.append(
                Verdict(flags[0] == "1", flags[1] == "1", constants[int(flags[2])], int(distance))
            )
        return verdicts

    def size(self) -> tuple[int, int]:
        """States derived so far, and bytes held."""
        states, size = self._ask("S").split()
        return int(states), int(size)


def _send(pipe: IO[str], line: str) -> None:
    pipe.write(line + "\n")
    pipe.flush()


@lru_cache(maxsize=1)
def runner() -> RegexRunner:
    """The driver, compiled at the first call; without a compiler the test is skipped."""
    given = os.environ.get("CONSTRAIN_REGEX_DRIVER")
    if given:
        return RegexRunner(Path(given))
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if not compiler:
        if os.environ.get("CI"):
            pytest.fail("no C++ compiler")
        pytest.skip("no C++ compiler")
    folder = tempfile.mkdtemp(prefix="constrain-regex-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    executable = Path(folder) / "regex_dfa_test"
    command = [compiler, "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror"]
    command += ["-I", str(NATIVE / "include"), "-o", str(executable)]
    command += [str(Path(__file__).with_name("regex_dfa_test.cpp")), *regexes()]
    subprocess.run(command, check=True)
    return RegexRunner(executable)
