"""Files that Lark grammars import: found, read, with their forms replaced, and without cycles."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import count

from constrain.errors import GrammarError
from constrain.grammar.lark_forms import Forms

__all__ = ["Files"]

_IMPORT = re.compile(r"^[ \t]*%import\s+(\.?)([A-Za-z_][\w.]*)([ \t]*\()?", re.MULTILINE)


class Files:
    """A grammar's text and the files that it imports.

    Attributes:
        main: the text itself.
        files: the imported files by their paths, as far as they were read.
        last: the text that Lark got last.  It parses a text as soon as it gets it, so a syntax
            error is in this one.
    """

    def __init__(self, text: str, import_paths: Sequence[str], source: str | None) -> None:
        """Raises what `Forms` raises."""
        self.import_paths = list(import_paths)
        self.source = source
        self._numbers = count()
        self.main = Forms(text, self._numbers, source)
        self.files: dict[str, Forms] = {}
        self.last = self.main

    def load(self, base: object, name: str) -> tuple[str, str]:
        """What Lark's loader asks for: the path and the text of a file.  Raises OSError."""
        folders = [*self.import_paths, *([base] if isinstance(base, str) else [])]
        for folder in folders:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                found = self.files.get(path)
                if found is None:
                    found = self.files[path] = Forms(_read(path), self._numbers, path)
                self.last = found
                return path, found.text
        raise FileNotFoundError(name)

    def forms(self) -> dict[str, Forms]:
        """The text in which each form stands, by the names of their terminals."""
        return {name: text for text in (self.main, *self.files.values()) for name in text.found}

    def check_cycles(self) -> None:
        """Raises GrammarError if a file imports itself, perhaps through others."""
        trail: list[str] = []
        done: set[str] = set()
        stack: list[Iterator[tuple[str, int]]] = [self._imports(self.main.original, self._base())]
        texts = [self.main]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                texts.pop()
                if trail:
                    done.add(trail.pop())
                continue
            path, offset = following
            if path in trail:
                names = [os.path.basename(name) for name in (*trail[trail.index(path) :], path)]
                raise texts[-1].fail(f"cyclic import: {' -> '.join(names)}", offset)
            if path in done:
                continue
            text = _read(path)
            trail.append(path)
            texts.append(Forms(text, count(), path))
            stack.append(self._imports(text, os.path.dirname(path)))

    def _base(self) -> str:
        """Where relative imports of the main text begin, as Lark decides it."""
        if self.source is not None:
            return os.path.dirname(self.source)
        script = getattr(sys.modules.get("__main__"), "__file__", None)
        return os.path.dirname(os.path.abspath(script)) if script else os.curdir

    def _imports(self, text: str, base: str) -> Iterator[tuple[str, int]]:
        """The files that a text imports, and where; what is not found is none of ours."""
        for match in _IMPORT.finditer(text):
            dot, dotted, several = match.groups()
            parts = dotted.split(".")
            name = os.sep.join(parts if several else parts[:-1]) + ".lark"
            for folder in (*self.import_paths, *([base] if dot else [])):
                path = os.path.realpath(os.path.join(folder, name))
                if os.path.isfile(path):
                    yield path, match.start()
                    break


def _read(path: str) -> str:
    """The text of a file.  Raises OSError, GrammarError if it is not UTF-8."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise GrammarError(f"the file is not UTF-8: {error.reason}", file=path) from None
