"""The threads of Python's regular expression matcher, stepped over characters in order of priority.

Characters are classes of code points that the pattern cannot tell apart
(`constrain.grammar.alphabet`).  A thread is ``(pc, obligations)``: an instruction, and the lookaheads
that are still open.  ``pc == MATCH`` is a thread that reached the end of the pattern just now; for as
long as it has open obligations it stays in the list as ``GHOST``.  An obligation is ``(negative,
frozenset of threads)``: any (or none) of the threads must match.

A simulation state is ``(threads in order, context)``.  The context says which of the sets that
lookbehind asks for had the character before: per set True, False, or None (nothing was read yet).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from constrain.errors import LimitExceededError, UnsupportedError
from constrain.grammar.alphabet import Alphabet
from constrain.regex.charsets import ANY, CharSet, complement, from_python_class
from constrain.regex.python_syntax import (
    REFUSED,
    behind_chars,
    item_chars,
    sre_constants,
    sre_parse,
)

__all__ = ["GHOST", "MATCH", "Threads"]

MATCH = 0
GHOST = -1
_MAX_INSTRUCTIONS = 50_000
_MAX_WORK = 1_000_000
"""Threads that may be looked at: a second or two."""
_NEWLINE: CharSet = (10, 10)
_NONE: frozenset[Any] = frozenset()

# Instructions: ("match",), ("set", classes as bits, next), ("split", targets), ("behind", set index, wanted,
# at start, next), ("ahead", negative, first, next), ("fail",)
Thread = tuple[int, frozenset]


class Threads:
    """A pattern as instructions, and the steps of its threads."""

    def __init__(self, pattern: str, flags: int, *, whole: bool = False) -> None:
        """`whole`: the pattern's own text is all there is, so that its start is known and the order
        of threads does not matter.  Raises re.error, UnsupportedError and LimitExceededError.
        """
        self.pattern = pattern
        self.whole = whole
        self.code: list[tuple[Any, ...]] = [("match",)]
        self.sets: list[CharSet] = []  # what lookbehind asks for
        self._set_index: dict[CharSet, int] = {}
        self.looks_ahead = False
        self.work = 0
        self._groups: dict[frozenset[int], list[tuple[int, ...]]] = {}
        tree = sre_parse.parse(pattern, flags)
        self.first = self._sequence(list(tree), MATCH, tree.state.flags)
        read = [instruction[1] for instruction in self.code if instruction[0] == "set"]
        self.alphabet = Alphabet((*read, *self.sets))
        self.masks = [self.alphabet.mask(chars) for chars in self.sets]
        self.code = [
            ("set", self.alphabet.mask(instruction[1]), instruction[2])
            if instruction[0] == "set"
            else instruction
            for instruction in self.code
        ]

    # -- translation ---------------------------------------------------------------------------

    def _emit(self, *instruction: Any) -> int:
        if len(self.code) >= _MAX_INSTRUCTIONS:
            raise LimitExceededError(
                f"the pattern {self.pattern[:60]!r} is too long with its repeats written out",
                limit="repeat",
            )
        self.code.append(instruction)
        return len(self.code) - 1

    def _unsupported(self, feature: str) -> UnsupportedError:
        return UnsupportedError(
            f"{feature} in the terminal {self.pattern!r} is not supported", feature=feature
        )

    def _sequence(self, items: Sequence[Any], after: int, flags: int) -> int:
        for op, argument in reversed(items):
            after = self._item(str(op), argument, after, flags)
        return after

    def _item(self, op: str, argument: Any, after: int, flags: int) -> int:
        if op in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            chars = item_chars(op, argument, flags)
            return self._emit("set", chars, after)
        if op == "BRANCH":
            return self._emit(
                "split", tuple(self._sequence(list(t), after, flags) for t in argument[1])
            )
        if op == "SUBPATTERN":
            _, added, removed, tree = argument
            return self._sequence(list(tree), after, (flags | added) & ~removed)
        if op in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._repeat(argument, after, flags, greedy=op == "MAX_REPEAT")
        if op == "AT":
            return self._at(str(argument), after, flags)
        if op in ("ASSERT", "ASSERT_NOT"):
            direction, tree = argument
            negative = op == "ASSERT_NOT"
            if direction < 0:
                return self._behind(tree, after, flags, negative)
            return self._ahead(self._sequence(list(tree), MATCH, flags), after, negative)
        if op == "FAILURE":
            return self._emit("split", ())
        raise self._unsupported(REFUSED.get(op, op.lower()))

    def _ahead(self, first: int, after: int, negative: bool) -> int:
        self.looks_ahead = True
        return self._emit("ahead", negative, first, after)

    def _repeat(self, argument: Any, after: int, flags: int, *, greedy: bool) -> int:
        least, most, tree = argument
        items = list(tree)

        def split(more: int, less: int) -> tuple[int, int]:
            return (more, less) if greedy else (less, more)

        if most is sre_constants.MAXREPEAT:
            at = self._emit("split", ())
            self.code[at] = ("split", split(self._sequence(items, at, flags), after))
        else:
            at = after
            for _ in range(most - least):
                at = self._emit("split", split(self._sequence(items, at, flags), after))
        for _ in range(least):
            at = self._sequence(items, at, flags)
        return at

    def _at(self, name: str, after: int, flags: int) -> int:
        multiline = bool(flags & re.MULTILINE)
        if name in ("AT_BEGINNING_STRING", "AT_BEGINNING"):
            if name == "AT_BEGINNING" and multiline:
                return self._emit("behind", self._context(_NEWLINE), True, True, after)
            # Never inside of a terminal; at its start it depends on the position in the text.
            return self._emit("behind", self._context(()), True, True, after)
        one = self._emit("set", ANY, MATCH)
        if name == "AT_END_STRING":
            return self._ahead(one, after, True)
        if name == "AT_END":
            other = self._emit("set", complement(_NEWLINE), MATCH)
            if multiline:
                return self._ahead(other, after, True)
            line = self._emit("set", _NEWLINE, one)
            return self._ahead(self._emit("split", (other, line)), after, True)
        if name in ("AT_BOUNDARY", "AT_NON_BOUNDARY"):
            word = from_python_class("w", bool(flags & re.ASCII))
            before = self._context(word)
            behind = self._emit("set", word, MATCH)
            # A boundary: a word character on exactly one side.
            boundary = name == "AT_BOUNDARY"
            no_word = self._ahead(behind, after, True)
            has_word = self._ahead(behind, after, False)
            inside = self._emit("behind", before, True, False, no_word if boundary else has_word)
            outside = self._emit("behind", before, False, True, has_word if boundary else no_word)
            return self._emit("split", (inside, outside))
        raise self._unsupported(name.lower())

    def _context(self, chars: CharSet) -> int:
        found = self._set_index.get(chars)
        if found is None:
            found = self._set_index[chars] = len(self.sets)
            self.sets.append(chars)
        return found

    def _behind(self, tree: Any, after: int, flags: int, negative: bool) -> int:
        """Lookbehind for one character, or for the start."""
        chars, at_start = behind_chars(tree, flags)
        if chars is None:
            raise self._unsupported("lookbehind for more than one character")
        at_start = at_start != negative
        return self._emit("behind", self._context(chars), not negative, at_start, after)

    # -- contexts ------------------------------------------------------------------------------

    def next_context(self, context: tuple[Any, ...], label: int) -> tuple[Any, ...]:
        """Which sets have the character of a class."""
        return tuple([bool(mask >> label & 1) for mask in self.masks]) if context else context

    def _holds(self, context: tuple[Any, ...], instruction: tuple[Any, ...]) -> bool:
        """Whether the lookbehind of an instruction holds."""
        _, index, wanted, at_start, _ = instruction
        held = context[index]
        if held is not None:
            return (held is True) == wanted
        if not self.whole:
            raise self._unsupported("lookbehind (or an anchor) at the start")
        return at_start

    # -- threads -------------------------------------------------------------------------------

    def start(self) -> tuple[tuple[Thread, ...], tuple[Any, ...]]:
        """The simulation state before the first character."""
        context = (None,) * len(self.sets)
        return self._ordered([(self.first, _NONE)], context), context

    def _ordered(self, threads: Sequence[Thread], context: tuple[Any, ...]) -> tuple[Thread, ...]:
        """Threads in order, with splits and assertions resolved; a match cuts what is below."""
        result: list[Thread] = []
        seen: set[Thread] = set()
        for thread in threads:
            for found in self._expand(thread, context, seen):
                result.append(found)
                if found[0] <= MATCH and not found[1]:
                    return tuple(result)
        return tuple(result)

    def _expand(self, thread: Thread, context: tuple[Any, ...], seen: set[Thread]) -> list[Thread]:
        result: list[Thread] = []
        todo = [thread]
        known = len(seen)
        while todo:
            thread = todo.pop()
            if thread in seen:
                continue
            seen.add(thread)
            pc, obligations = thread
            instruction = self.code[pc]
            kind = instruction[0]
            if kind in ("match", "set"):
                result.append(thread)
                if kind == "match" and not obligations and not self.whole:
                    break
            elif kind == "split":
                todo.extend((target, obligations) for target in reversed(instruction[1]))
            elif kind == "behind":
                if self._holds(context, instruction):
                    todo.append((instruction[4], obligations))
            else:
                _, negative, first, after = instruction
                inner = self._set_closure([(first, _NONE)], context)
                if inner is True:
                    if not negative:
                        todo.append((after, obligations))
                elif not inner:
                    if negative:
                        todo.append((after, obligations))
                else:
                    todo.append((after, obligations | {(negative, inner)}))
        self.work += len(seen) - known
        if self.work > _MAX_WORK:
            raise LimitExceededError(
                f"the pattern {self.pattern[:60]!r} is too ambiguous for one automaton",
                limit="terminal_states",
            )
        return result

    def _set_closure(self, threads: Sequence[Thread], context: tuple[Any, ...]) -> Any:
        """Threads of a lookahead, whose order does not matter; True: one matched."""
        seen: set[Thread] = set()
        result: list[Thread] = []
        for thread in threads:
            for found in self._expand(thread, context, seen):
                if found[0] <= MATCH and not found[1]:
                    return True
                result.append(found)
        return frozenset(result)

    def step_thread(
        self, thread: Thread, label: int, after: tuple[Any, ...], seen: set[Thread] | None = None
    ) -> list[Thread]:
        """What one thread becomes, in order, but for what is in `seen` already."""
        pc, obligations = thread
        reduced: Any = obligations
        if pc <= MATCH:
            # Without obligations it was decided before.
            reduced = self._reduce(obligations, label, after) if obligations else None
            return [] if reduced is None else [(GHOST, reduced)]
        _, classes, target = self.code[pc]
        if not classes >> label & 1:
            return []
        if obligations:
            reduced = self._reduce(obligations, label, after)
            if reduced is None:
                return []
        return self._expand((target, reduced), after, set() if seen is None else seen)

    def _reduce(self, obligations: frozenset, label: int, after: tuple[Any, ...]) -> Any:
        """The obligations behind a character; None: one is broken."""
        result = set()
        for negative, threads in obligations:
            inner: set[Thread] = set()
            matched = False
            for thread in threads:
                for found in self.step_thread(thread, label, after):
                    if found[0] <= MATCH and not found[1]:
                        matched = True
                    inner.add(found)
            if matched:
                if negative:
                    return None
            elif inner:
                result.add((negative, frozenset(inner)))
            elif not negative:
                return None
        return frozenset(result)

    def step(self, state: Any, label: int) -> Any:
        """The simulation state behind a character; without threads nothing continues."""
        threads, context = state
        after = self.next_context(context, label)
        result: list[Thread] = []
        seen: set[Thread] = set()
        expanded: set[Thread] = set()
        for thread in threads:
            for found in self.step_thread(thread, label, after, expanded):
                if found in seen:
                    continue
                seen.add(found)
                result.append(found)
                if found[0] <= MATCH and not found[1]:
                    return tuple(result), after
        return tuple(result), after

    def step_all(self, state: Any, label: int) -> Any:
        """The same where the order of threads does not matter: a match counts at the end alone."""
        threads, context = state
        after = self.next_context(context, label)
        seen: set[Thread] = set()
        result = {
            found
            for thread in threads
            if thread[0] != MATCH
            for found in self.step_thread(thread, label, after, seen)
        }
        return frozenset(result), after

    def matched(self, state: Any) -> bool:
        """A thread of a state of `step_all` matches if the text ends here."""
        return any(pc == MATCH and self.at_end(obligations) for pc, obligations in state[0])

    def at_end(self, obligations: frozenset) -> bool:
        """The obligations are met if the text ends here."""
        return all(
            negative != any(t[0] <= MATCH and self.at_end(t[1]) for t in threads)
            for negative, threads in obligations
        )

    # -- groups --------------------------------------------------------------------------------

    def groups(self, threads: Iterable[Any]) -> list[tuple[int, ...]]:
        """The classes of characters, grouped by what threads (and contexts) can tell apart."""
        masks = set(self.masks)
        self._collect(threads, masks)
        key = frozenset(masks)
        found = self._groups.get(key)
        if found is None:
            parts = [(1 << self.alphabet.size) - 1]
            for mask in masks:
                parts = [p for part in parts for p in (part & mask, part & ~mask) if p]
            labels = range(self.alphabet.size)
            found = [tuple(label for label in labels if part >> label & 1) for part in parts]
            self._groups[key] = found
        return found

    def _collect(self, threads: Iterable[Any], masks: set[int]) -> None:
        for thread in threads:
            if thread[0] > MATCH:
                masks.add(self.code[thread[0]][1])
            for _, inner in thread[1]:
                self._collect(inner, masks)
