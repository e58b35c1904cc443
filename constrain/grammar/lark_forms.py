"""Forms inside Lark grammars that Lark itself does not know.

==================================== ===========================================================
``%json {...}``                      a JSON text of this schema (an object, true or false)
``<name>``                           the token of this name, the brackets are part of it
``<[12]>``, ``<[3-9,12]>``           one token of these ids
``<[^12]>``, ``<[*]>``               one token that is none of these, any token
``@name``                            a text of the constraint that the caller gave this name
==================================== ===========================================================

They stand where a terminal may stand in a rule.  Each is replaced by the name of a declared
terminal before Lark reads the text; `Forms.place` leads from a place in what Lark read back to the
place in the user's text.
"""

from __future__ import annotations

import itertools
import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from constrain.errors import GrammarError, LimitExceededError

__all__ = ["Form", "Forms", "Place", "line_starts"]

Place = tuple[int, int]
"""Line and column, from 1."""

# What Lark's reader of grammars takes as one piece, and the forms.
_PIECES = re.compile(
    r'"(?:\\"|\\\\|[^"\n])*?"|/(?!/)(?:\\/|\\\\|[^/])*?/|//[^\n]*|#[^\n]*'
    r"|(?P<json>%json\b)|(?P<ids><\[[^\]\n]*\]>)|(?P<token><[^<>\s]+>)|@(?P<name>[A-Za-z_][\w-]*)"
)
_IDS = re.compile(r"\d+(?:-\d+)?")
_BLANK = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Form:
    """One use of a form.

    Attributes:
        kind: "json", "token", "ids" or "grammar".
        text: the schema, or the name of the token or constraint, or the ids as they are written.
        ranges: of "ids", sorted.
        negative: of "ids": all but these.
        place: where it stands.
    """

    kind: str
    text: str
    place: Place
    ranges: tuple[tuple[int, int], ...] = ()
    negative: bool = False

    def __str__(self) -> str:
        if self.kind == "json":
            return f"%json {self.text}" if len(self.text) <= 60 else f"%json {self.text[:50]}..."
        return f"@{self.text}" if self.kind == "grammar" else self.text


class Forms:
    """A text with its forms replaced.

    Args:
        text: the user's text.
        numbers: where the numbers of the terminals come from; shared by all files of a grammar.
        file: the file of the text, for errors; None for the caller's own text.

    Attributes:
        text: what Lark is to read.
        found: the forms by the names of their terminals.

    Raises GrammarError for malformed forms, LimitExceededError for JSON nested too deeply.
    """

    def __init__(self, text: str, numbers: Iterator[int], file: str | None = None) -> None:
        self.file = file
        self.original = text
        self.found: dict[str, Form] = {}
        # Where pieces of the result begin, there and in the original.
        self._there = [0]
        self._here = [0]
        self._lines = line_starts(text)
        prefix = _free_prefix(text)
        parts: list[str] = []
        length = at = 0
        position = 0
        while True:
            match = _PIECES.search(text, position)
            if match is None:
                break
            position = match.end()
            if match.lastgroup is None:
                continue
            form, end = self._form(match)
            name = f"{prefix}{next(numbers)}"
            self.found[name] = form
            before = text[at : match.start()]
            # Blanks around, so that it touches no other name; a column inside stands for the form.
            parts += (before, f" {name} ")
            length += len(before)
            self._there += (length, length + len(name) + 2)
            self._here += (match.start(), end)
            length += len(name) + 2
            at = position = end
        parts.append(text[at:])
        declared = "".join(f"%declare {name}\n" for name in self.found)
        self.text = declared + "".join(parts)
        self._there = [len(declared) + offset for offset in self._there]
        self._result_lines = line_starts(self.text)

    # -- places --------------------------------------------------------------------------------

    def place_at(self, offset: int) -> Place:
        """Line and column of an offset in the user's text."""
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def place(self, line: int, column: int) -> Place:
        """The place in the user's text of a place in `text`."""
        if not self.found or not 0 < line <= len(self._result_lines):
            return line, column
        offset = self._result_lines[line - 1] + column - 1
        piece = max(bisect_right(self._there, offset) - 1, 0)
        here = self._here[piece]
        if piece % 2 == 0:
            here += offset - self._there[piece]
        return self.place_at(min(here, len(self.original)))

    def fail(self, message: str, offset: int) -> GrammarError:
        """The error for an offset of the user's text."""
        line, column = self.place_at(offset)
        return GrammarError(message, line=line, column=column, file=self.file)

    # -- forms ---------------------------------------------------------------------------------

    def _form(self, match: re.Match[str]) -> tuple[Form, int]:
        """The form that begins at a match, and where it ends."""
        begin, end = match.span()
        place = self.place_at(begin)
        if match["json"]:
            end = self._schema_end(end)
            return Form("json", self.original[match.end() : end].strip(), place), end
        if match["name"]:
            return Form("grammar", match["name"], place), end
        if match["token"]:
            return Form("token", match["token"], place), end
        return self._ids(match["ids"], begin, place), end

    def _ids(self, text: str, begin: int, place: Place) -> Form:
        inner = text[2:-2].strip()
        negative = inner.startswith("^")
        if inner == "*":
            return Form("ids", text, place, (), True)
        ranges = []
        for piece in (inner[1:] if negative else inner).split(","):
            if not _IDS.fullmatch(piece.strip()):
                raise self.fail(
                    f"malformed token reference {text}: expected ids such as <[12]>, <[3-9,12]>, "
                    "<[^12]> or <[*]>",
                    begin,
                )
            first, _, last = piece.strip().partition("-")
            ranges.append((int(first), int(last or first)))
            if ranges[-1][1] < ranges[-1][0]:
                raise self.fail(f"token reference {text}: a range ends before its start", begin)
        return Form("ids", text, place, tuple(sorted(ranges)), negative)

    def _schema_end(self, begin: int) -> int:
        """Where the JSON text behind ``%json`` ends."""
        blank = _BLANK.match(self.original, begin)
        start = begin if blank is None else blank.end()
        try:
            value, end = json.JSONDecoder().raw_decode(self.original, start)
        except json.JSONDecodeError as error:
            if error.pos >= len(self.original) or error.pos == start:
                raise self.fail("expected a JSON Schema behind %json", start) from None
            raise self.fail(f"malformed JSON behind %json: {error.msg}", error.pos) from None
        except RecursionError:
            line, column = self.place_at(start)
            raise LimitExceededError(
                f"the schema behind %json is nested too deeply (line {line}, column {column})",
                limit="nesting",
            ) from None
        if not isinstance(value, (dict, bool)):
            raise self.fail("a schema behind %json is an object, true or false", start)
        return end


def line_starts(text: str) -> list[int]:
    starts = [0]
    starts.extend(match.end() for match in re.finditer("\n", text))
    return starts


def _free_prefix(text: str) -> str:
    """A beginning of names of terminals that does not occur in the text."""
    candidates = (f"F{number}_" for number in itertools.count())
    return next(prefix for prefix in candidates if prefix not in text)
