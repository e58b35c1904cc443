"""A slow reading of grammar programs, and judges for grammars.

`SlowMachine` executes a program on explicit stacks, one tuple per stack, without merging anything:
obvious, exponential on ambiguous grammars, and independent of the core.  Of an embedded program it
keeps the text read so far, and asks at every byte whether that is a JSON text which satisfies it.
`LarkJudge` asks Lark's own Earley parser.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from typing import Any

from tests.reference.composite import blanks_fit
from tests.reference.program_semantics import holds


class SlowMachine:
    """Executes a program of kind "grammar" on bytes; a state is a set of (state, obligations,
    stack), where a state may be the text of an embedded program: ``(number, bytes)``, and a return
    state is on the stack."""

    def __init__(self, program: Any) -> None:
        table = list(program.args)
        self.parts = program.parts
        at = 9
        version, states, ranges, calls, marks, foreigns, obligations, obligation_ranges, start = (
            table[:at]
        )
        if version != 2:
            raise AssertionError("another version of the layout")
        self.start_state = start

        def take(count: int) -> list[int]:
            nonlocal at
            found = table[at : at + count]
            at += count
            return found

        range_begin, call_begin, mark_begin, foreign_begin = (take(states + 1) for _ in range(4))
        self.final = take(states)
        flat = take(2 * ranges)
        self.rows = [flat[2 * a : 2 * b] for a, b in itertools.pairwise(range_begin)]
        flat = take(3 * calls)
        self.calls = [flat[3 * a : 3 * b] for a, b in itertools.pairwise(call_begin)]
        flat = take(2 * marks)
        self.marks = [flat[2 * a : 2 * b] for a, b in itertools.pairwise(mark_begin)]
        flat = take(2 * foreigns)
        self.foreigns = [flat[2 * a : 2 * b] for a, b in itertools.pairwise(foreign_begin)]
        begin = take(obligations + 1)
        self.at_end = take(obligations)
        flat = take(2 * obligation_ranges)
        self.obligations = [flat[2 * a : 2 * b] for a, b in itertools.pairwise(begin)]
        if at != len(table):
            raise AssertionError("the table is longer than its header says")

    @staticmethod
    def _look(row: Sequence[int], byte: int) -> int | None:
        for bytes_, target in zip(row[::2], row[1::2]):
            if bytes_ & 0xFF <= byte <= bytes_ >> 8:
                return target
        return None

    def start(self) -> frozenset[Any]:
        """The items before the first byte."""
        return self._close({(self.start_state, frozenset(), ())})

    def _close(self, items: set[Any]) -> frozenset[Any]:
        todo = list(items)
        found = set(items)
        while todo:
            state, obligations, stack = todo.pop()
            new = []
            if self._ends(state) and stack:
                new.append((stack[-1], obligations, stack[:-1]))
            if isinstance(state, int):
                marks = self.marks[state]
                for obligation, target in zip(marks[::2], marks[1::2]):
                    new.append((target, obligations | {obligation}, stack))
                calls = self.calls[state]
                for callee, back in zip(calls[::3], calls[1::3]):
                    new.append((callee, obligations, (*stack, back)))
                foreigns = self.foreigns[state]
                for number, back in zip(foreigns[::2], foreigns[1::2]):
                    new.append(((number, b""), obligations, (*stack, back)))
            for item in new:
                if item not in found:
                    found.add(item)
                    todo.append(item)
        return frozenset(found)

    def _ends(self, state: Any) -> bool:
        """The net, or the embedded text, may end here."""
        if isinstance(state, int):
            return bool(self.final[state])
        number, text = state
        part = self.parts[number]
        if not text or not blanks_fit(part.whitespace, text):
            return False
        try:
            value = json.loads(text.decode())
        except ValueError:
            return False
        return holds(part, value)

    def _read(self, state: Any, byte: int) -> Any:
        if isinstance(state, int):
            return self._look(self.rows[state], byte)
        number, text = state
        return number, text + bytes((byte,))

    def step(self, items: frozenset[Any], byte: int) -> frozenset[Any]:
        """The items behind a byte; none: the text is no prefix of a valid one (with embedded
        programs there may be items all the same)."""
        result = set()
        for state, obligations, stack in items:
            target = self._read(state, byte)
            if target is None:
                continue
            left = {self._look(self.obligations[o], byte) for o in obligations}
            if None not in left:
                result.add((target, frozenset(left - {0}), stack))
        return self._close(result)

    def accepts(self, text: bytes) -> bool:
        """The whole text is valid."""
        items = self.start()
        for byte in text:
            items = self.step(items, byte)
            if len(items) > 200_000:
                raise OverflowError("too ambiguous for the slow machine")
        return any(
            self._ends(state) and not stack and all(self.at_end[o] for o in obligations)
            for state, obligations, stack in items
        )


class LarkJudge:
    """What Lark's Earley parser with the lexer "dynamic_complete" accepts."""

    def __init__(self, text: str, start: str = "start") -> None:
        import lark

        self.errors: type[Exception] = lark.exceptions.LarkError
        self.lark = lark.Lark(text, parser="earley", lexer="dynamic_complete", start=start)
        self.lark.parser.parser.Tree = None  # recognition alone: no trees

    def accepts(self, text: str) -> bool:
        """The whole text is valid."""
        try:
            self.lark.parse(text)
        except self.errors:
            return False
        except RuntimeError as error:
            # Lark finds several complete parses, and gives up for that.
            if "multiple start" not in str(error):
                raise
        return True


def mutate(text: str, alphabet: Sequence[str], rnd: random.Random) -> str:
    """One or two small changes."""
    chars = list(text)
    for _ in range(rnd.choice((1, 1, 2))):
        kind = rnd.random()
        at = rnd.randrange(len(chars) + 1)
        if kind < 0.3 and chars:
            del chars[at % len(chars)]
        elif kind < 0.6:
            chars.insert(at, rnd.choice(alphabet))
        elif kind < 0.8 and chars:
            chars[at % len(chars)] = rnd.choice(alphabet)
        elif chars:
            other = rnd.randrange(len(chars))
            at %= len(chars)
            chars[at], chars[other] = chars[other], chars[at]
    return "".join(chars)
