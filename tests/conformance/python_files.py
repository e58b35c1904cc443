"""Shipped Python grammars on the files of the standard library.

``python -m tests.conformance.python_files --files 100`` feeds the expressions of files to
``python-expression`` and their statements to ``python``, and lists what is refused.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["expressions", "statements"]


def _files(count: int, seed: int) -> Iterator[tuple[str, ast.Module]]:
    files = sorted(Path(os.__file__).parent.glob("*.py"))
    random.Random(seed).shuffle(files)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for path in files[:count]:
            text = path.read_text(encoding="utf-8", errors="replace")
            yield text, ast.parse(text)


def expressions(files: int, per_file: int, seed: int) -> Iterator[str]:
    """The outermost expressions of files, in parentheses."""
    rnd = random.Random(seed)
    for text, tree in _files(files, seed):
        found = []
        for node in ast.walk(tree):
            if not isinstance(node, ast.stmt):
                continue
            for child in ast.iter_child_nodes(node):
                segment = (
                    ast.get_source_segment(text, child) if isinstance(child, ast.expr) else None
                )
                if segment is not None and len(segment) < 3000 and _is_expression(f"({segment})"):
                    found.append(f"({segment})")
        yield from rnd.sample(found, min(per_file, len(found)))


def statements(files: int, per_file: int, seed: int) -> Iterator[str]:
    """Statements of files that stand at the margin."""
    rnd = random.Random(seed)
    for text, tree in _files(files, seed):
        found = [ast.get_source_segment(text, node) for node in tree.body]
        kept = [segment for segment in found if segment is not None and len(segment) < 8000]
        yield from rnd.sample(kept, min(per_file, len(kept)))


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _refused(compiled: Any, text: str) -> str | None:
    """Where a text is refused, or None."""
    matcher = compiled.matcher()
    data = text.encode()
    for at, byte in enumerate(data):
        if not matcher.try_advance(byte):
            return f"{data[max(0, at - 40) : at]!r} then {data[at : at + 10]!r}"
    return None if matcher.is_accepting else "at the end"


def main() -> None:
    """Expressions and statements of the standard library."""
    import constrain
    from constrain import grammars
    from tests.reference.vocabularies import byte_vocabulary

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--per-file", type=int, default=200)
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    vocabulary = byte_vocabulary().vocabulary
    for name, parameters, source in (
        ("python-expression", {}, expressions),
        ("python", {"depth": arguments.depth}, statements),
    ):
        compiled = constrain.compile(grammars.load(name, **parameters), vocabulary)
        total = size = 0
        refused = []
        for text in source(arguments.files, arguments.per_file, arguments.seed):
            total += 1
            size += len(text.encode())
            place = _refused(compiled, text)
            if place is not None:
                refused.append(place)
        print(f"{name}: {total} texts, {size} bytes, {len(refused)} refused")
        for place in refused[:20]:
            print(f"  {place}")


if __name__ == "__main__":
    sys.exit(main())
