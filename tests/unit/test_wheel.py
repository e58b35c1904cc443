"""What a wheel holds: the Python files are packed as for users, without the native build."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import constrain._native
from constrain import grammars

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an installed wheel, with the native module of this environment."""
    pytest.importorskip("scikit_build_core")
    folder = tmp_path_factory.mktemp("wheel")
    # A copy of the sources, so that the wheel has nothing that only this checkout holds.
    for name in ("constrain", "integrations", "grammars"):
        ignored = shutil.ignore_patterns("__pycache__", "native", "*.so", "*.pyd")
        shutil.copytree(ROOT / name, folder / "source" / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, folder / "source" / name)
    build = (
        "from scikit_build_core.build import build_wheel as build\n"
        "build('../dist', {'wheel.cmake': 'false'})"
    )
    subprocess.run(
        [sys.executable, "-c", build],
        cwd=folder / "source",
        check=True,
        capture_output=True,
        timeout=120,
    )
    (wheel,) = (folder / "dist").glob("constrain-*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    native = Path(constrain._native.__file__)
    shutil.copy(native, folder / "site" / "constrain" / native.name)
    return folder / "site"


def _run(installed: Path, *arguments: str) -> str:
    # Without site, so that an editable install of the checkout is not found first.
    paths = [str(installed), *(path for path in sys.path if path.endswith("-packages"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-S", *arguments],
        cwd=installed.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_wheel_holds_every_grammar(installed: Path) -> None:
    files = {path.name for path in (ROOT / "grammars").iterdir() if path.is_file()}
    packed = {path.name for path in (installed / "constrain" / "grammars").iterdir()}
    assert files <= packed
    assert not (installed / "constrain" / "native").exists()


def test_an_installed_wheel_lists_and_loads_its_grammars(installed: Path) -> None:
    found = _run(
        installed,
        "-c",
        "import constrain, constrain.grammars as g\n"
        "print(constrain.__file__)\n"
        "for name in g.names():\n"
        "    print(name, len(g.text(name)) if not g.info(name).required else '-')",
    ).splitlines()
    assert Path(found[0]).is_relative_to(installed)
    assert [line.split()[0] for line in found[1:]] == grammars.names()
    listed = _run(installed, "-m", "constrain.cli.main", "grammars")
    for name in grammars.names():
        assert f"{name} " in listed or f"{name}\n" in listed
