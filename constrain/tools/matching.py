"""Matching atoms on a text that may still grow.

The answer is one of three: it does not match, more text is needed to say, or it matches up to an
index.  With ``final`` (nothing more comes) "more is needed" does not occur.  The result depends on
the text alone and not on how it arrived, which is what makes the parser's events independent of the
chunks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from constrain.tools.templates import Atom, Hole, Literal, Space

__all__ = ["Match", "Names", "Status", "match", "partial_end", "skip_space"]


class Status(IntEnum):
    """How a match ended."""

    NO = 0
    MORE = 1
    YES = 2


class Match(NamedTuple):
    """A result: with YES, the index behind the match and the texts of the holes."""

    status: Status
    end: int
    holes: dict[str, str]


_NO = Match(Status.NO, 0, {})
_MORE = Match(Status.MORE, 0, {})
_RUNS = {
    "id": re.compile(r"[^\s\"<>\[\]{}|]{1,200}"),
    "key": re.compile(r"[^\n\"<>]{1,200}"),
    "type": re.compile(r"[a-z]{1,20}"),
    "string": re.compile(r"[a-z]{1,20}"),
    "index": re.compile(r"[0-9]{1,9}"),
}


@dataclass(frozen=True)
class Names:
    """The names that ``$name`` may be, and the keys that ``$key`` may be (None: any).

    Longer names come first, so that a name that begins with another is not cut.
    """

    names: tuple[str, ...] = ()
    keys: tuple[str, ...] | None = None
    spellings: dict[tuple[str, bool], tuple[str, ...]] = field(default_factory=dict, compare=False)

    @staticmethod
    def of(names: Sequence[str], keys: Sequence[str] | None = None) -> Names:
        """Sorted as needed."""
        longest = tuple(sorted(names, key=len, reverse=True))
        known = None if keys is None else tuple(sorted(keys, key=len, reverse=True))
        return Names(longest, known)

    def spelled(self, name: str, in_json: bool) -> tuple[str, ...]:
        """How a name may be written: as it is, or inside the quotes of a JSON string."""
        found = self.spellings.get((name, in_json))
        if found is None:
            found = (name,)
            if in_json:
                plain = json.dumps(name, ensure_ascii=False)[1:-1]
                found = tuple(dict.fromkeys((plain, json.dumps(name)[1:-1])))
            self.spellings[name, in_json] = found
        return found


def skip_space(text: str, at: int) -> int:
    """The index of the next character that is no whitespace."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def partial_end(text: str, start: int, word: str) -> int:
    """Where the longest beginning of `word` at the end of `text` starts; len(text) if none does."""
    for at in range(max(start, len(text) - len(word) + 1), len(text)):
        if word.startswith(text[at:]):
            return at
    return len(text)


def match(
    atoms: Sequence[Atom],
    text: str,
    at: int,
    names: Names,
    final: bool = False,
    holes: dict[str, str] | None = None,
    first: int = 0,
) -> Match:
    """Match ``atoms[first:]`` on ``text[at:]``; `holes` are those already filled."""
    holes = {} if holes is None else holes
    for number in range(first, len(atoms)):
        atom = atoms[number]
        if isinstance(atom, Space):
            at = skip_space(text, at)
        elif isinstance(atom, Literal):
            if text.startswith(atom.text, at):
                at += len(atom.text)
            elif not final and len(text) - at < len(atom.text) and atom.text.startswith(text[at:]):
                return _MORE
            else:
                return _NO
        elif atom.kind in ("name", "key"):
            return _match_name(atoms, text, at, names, final, holes, number)
        else:
            result = _match_run(atoms, text, at, final, number)
            if result.status is not Status.YES:
                return result
            holes = {**holes, atom.kind: text[at : result.end]}
            at = result.end
    return Match(Status.YES, at, holes)


def _match_name(
    atoms: Sequence[Atom],
    text: str,
    at: int,
    names: Names,
    final: bool,
    holes: dict[str, str],
    number: int,
) -> Match:
    """A name or key and what follows: the longest one that what follows agrees with."""
    atom = atoms[number]
    kind = atom.kind if isinstance(atom, Hole) else ""
    in_json = isinstance(atom, Hole) and atom.json
    known = names.names if kind == "name" else names.keys or ()
    if kind in holes:
        known = (holes[kind],)
    more = False
    for name in known:
        for spelling in names.spelled(name, in_json):
            if text.startswith(spelling, at):
                rest = match(
                    atoms, text, at + len(spelling), names, final, {**holes, kind: name}, number + 1
                )
                if rest.status is Status.YES and not more:
                    return rest
                more = more or rest.status is not Status.NO
            elif not final and len(text) - at < len(spelling) and spelling.startswith(text[at:]):
                more = True
    if more:
        return _MORE
    if kind == "key" and names.keys is None and kind not in holes:
        run = _match_run(atoms, text, at, final, number)
        if run.status is not Status.YES:
            return run
        holes = {**holes, kind: text[at : run.end]}
        return match(atoms, text, run.end, names, final, holes, number + 1)
    return _NO


def _match_run(atoms: Sequence[Atom], text: str, at: int, final: bool, number: int) -> Match:
    """A hole of any text of its kind, up to the literal behind it."""
    atom = atoms[number]
    run = _RUNS[atom.kind].match(text, at) if isinstance(atom, Hole) else None
    if run is None:
        return _MORE if at >= len(text) and not final else _NO
    behind = atoms[number + 1] if number + 1 < len(atoms) else None
    if not isinstance(behind, Literal):
        return _MORE if run.end() == len(text) and not final else Match(Status.YES, run.end(), {})
    found = text.find(behind.text, at + 1, run.end() + len(behind.text))
    if found > at:
        return Match(Status.YES, found, {})
    if not final and partial_end(text, at + 1, behind.text) <= run.end():
        return _MORE
    return _NO
