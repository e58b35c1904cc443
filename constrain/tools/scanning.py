"""Finding in prose where something begins: a call, a thinking section, a mark, the end.

All beginnings of a format are tried at every place where the first literal text of one of them
occurs, or may be about to.  Where a longer one may still come, it is waited for.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from constrain.tools.formats import TaggedArguments, ToolFormat
from constrain.tools.matching import Match, Names, Status, match, partial_end, skip_space
from constrain.tools.templates import (
    Atom,
    Hole,
    Literal,
    Space,
    compile_template,
    join,
    strip_spaces,
)

__all__ = ["Found", "Openings"]


class Found(NamedTuple):
    """What begins, or may begin, at a place of the text."""

    kind: str  # call, reasoning, mark, stop
    status: Status
    match: Match
    template: str


class _Opening(NamedTuple):
    kind: str
    atoms: tuple[Atom, ...]
    template: str
    head: str  # the literal text it begins with, "" where it begins with a name


def _text_atoms(text: str) -> tuple[Atom, ...]:
    return compile_template(text.replace("$", "$$"), frozenset(), "text")


class Openings:
    """The beginnings that a format knows; `prose`: calls may follow prose."""

    def __init__(self, form: ToolFormat, names: Names, prose: bool) -> None:
        self._form = form
        self._prose = prose
        self._names = names
        self._calls: list[_Opening] = []
        for template in (form.call, *form.variants):
            atoms = form.opening(True, template)
            if form.after_text.strip():
                self._add(self._calls, "call", join(_text_atoms(form.after_text), atoms), template)
            self._add(self._calls, "call", atoms, template)
        self._next: list[_Opening] = []
        for template in (form.call, *form.variants):
            self._add(self._next, "call", form.opening(False, template), template)
        self._others: list[_Opening] = []
        self._fresh: list[_Opening] = []
        if form.reasoning is not None:
            if form.reasoning.begin.strip():
                self._add(self._fresh, "reasoning", _text_atoms(form.reasoning.begin), "")
            self._add(self._fresh, "mark", _text_atoms(form.reasoning.end), "")
        if form.text is not None:
            for mark in (form.text.begin, form.text.end):
                if mark.strip():
                    self._add(self._others, "mark", _text_atoms(mark), "")
        for stop in form.stop:
            self._add(self._others, "stop", _text_atoms(stop), "")
        self._pattern: dict[tuple[bool, bool], tuple[list[_Opening], re.Pattern[str] | None]] = {}

    def other_closings(self, template: str) -> list[tuple[Atom, ...]]:
        """What follows the arguments in other spellings of a call that begins as `template` does."""
        form = self._form
        opening = form.opening(True, template)
        return [
            form.closing(other)
            for other in (form.call, *form.variants)
            if other != template and form.opening(True, other) == opening
        ]

    @staticmethod
    def _add(openings: list[_Opening], kind: str, atoms: tuple[Atom, ...], template: str) -> None:
        atoms = strip_spaces(atoms)
        head = atoms[0].text if atoms and isinstance(atoms[0], (Literal, Space)) else ""
        openings.append(_Opening(kind, atoms, template, head))

    def _list(self, fresh: bool, calls: bool) -> tuple[list[_Opening], re.Pattern[str] | None]:
        key = (fresh, calls)
        if key not in self._pattern:
            chosen = [
                *(self._calls if calls else ()),
                *(self._fresh if fresh else ()),
                *self._others,
            ]
            heads = sorted({one.head for one in chosen if one.head}, key=len, reverse=True)
            if any(isinstance(one.atoms[0], Hole) for one in chosen):
                heads.extend(self._names.names)
            pattern = re.compile("|".join(map(re.escape, heads))) if heads else None
            self._pattern[key] = (chosen, pattern)
        return self._pattern[key]

    def find(self, text: str, final: bool, fresh: bool, calls: bool) -> tuple[int, Found | None]:
        """The first place where something begins or may begin.

        Args:
            text: the prose so far.
            final: nothing more comes.
            fresh: no prose was written yet, so a thinking section may begin.
            calls: calls may begin; for formats whose calls follow no prose, at the start only.

        Returns the index up to which the text is prose, and what begins there (None: nothing).
        """
        openings, pattern = self._list(fresh, calls)
        at = 0
        while pattern is not None:
            hit = pattern.search(text, at)
            place = hit.start() if hit else len(text)
            if not final:
                for one in openings:
                    for head in (one.head,) if one.head else self._names.names:
                        place = min(place, partial_end(text, at, head))
            if place >= len(text):
                break
            found = self._at(text, place, final, openings, text[:place].strip() == "")
            if found is not None:
                return place, found
            at = place + 1
        return len(text), None

    def _at(
        self, text: str, at: int, final: bool, openings: list[_Opening], at_start: bool
    ) -> Found | None:
        waiting: Found | None = None
        for one in openings:
            if one.kind == "reasoning" or (one.kind == "call" and not self._prose):
                if not at_start:
                    continue
            elif one.kind == "mark" and one in self._fresh and not at_start:
                continue
            found = match(one.atoms, text, at, self._names, final)
            status = found.status
            if status is Status.YES and one.kind == "call":
                status = self._arguments_follow(text, found, one, final)
            if status is Status.YES and waiting is None:
                return Found(one.kind, status, found, one.template)
            if status is Status.MORE and waiting is None:
                waiting = Found(one.kind, status, found, one.template)
        return waiting

    def next_call(self, text: str, at: int, final: bool) -> tuple[Match, str]:
        """Whether another call follows directly at `at`."""
        waiting: tuple[Match, str] | None = None
        for one in self._next:
            found = match(one.atoms, text, at, self._names, final)
            status = found.status
            if status is Status.YES:
                status = self._arguments_follow(text, found, one, final)
            if status is Status.YES:
                return found, one.template
            if status is Status.MORE and waiting is None:
                waiting = (Match(Status.MORE, 0, {}), one.template)
        return waiting or (Match(Status.NO, 0, {}), "")

    def _arguments_follow(self, text: str, found: Match, one: _Opening, final: bool) -> Status:
        """Whether a name that has no text behind it ends here: arguments or the end must follow."""
        if not isinstance(self._form.arguments, TaggedArguments):
            return Status.YES
        if not isinstance(one.atoms[-1], Hole):
            return Status.YES
        at = skip_space(text, found.end)
        head = self._form.parameter_atoms()[:1]
        closing = strip_spaces(self._form.closing(one.template))[:1]
        return max(
            match(head, text, at, self._names, final).status,
            match(closing, text, at, self._names, final).status,
        )
