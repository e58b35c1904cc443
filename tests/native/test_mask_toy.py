"""Mask filling on a toy machine, in C++, with the address and undefined-behaviour sanitizers.

``CONSTRAIN_SANITIZE=thread python -m pytest tests/native/test_mask_toy.py`` looks for data races.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.native.core_sources import NATIVE, without_machines

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    target = tmp_path_factory.mktemp("mask") / "mask_toy"
    command = [compiler, "-std=c++20", "-O1", "-g", "-Wall", "-Wextra", "-Werror"]
    sanitizers = os.environ.get("CONSTRAIN_SANITIZE", "address,undefined")
    command += [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all", "-pthread"]
    command += [f"-I{NATIVE / 'include'}", str(ROOT / "tests" / "native" / "mask_toy.cpp")]
    command += without_machines()
    subprocess.run([*command, "-o", str(target)], check=True)
    return target


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_masks_equal_brute_force(program, seed):
    done = subprocess.run([str(program), str(seed)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("ok: ")
