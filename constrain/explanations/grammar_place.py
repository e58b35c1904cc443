"""Which rules of a grammar are being read at the end of a text, and which terminals they expect.

A chart parser over the grammar as its front ends built it (`constrain.grammar.ir`), by bytes.  It
leaves lookahead aside and counts repetitions up to a bound only, so that it may name a rule too
many; what is allowed is decided by the machine alone.  Its work is bounded: beyond the bound it
names no rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain._programs import byte_matcher
from constrain.errors import UnsatisfiableError
from constrain.grammar.ir import Embedded, Expression, Grammar, Terminal

if TYPE_CHECKING:
    from constrain.program import Program

__all__ = ["Active", "active_terminals"]

_MAX_WORK = 400_000
_MAX_COPIES = 40
_MAX_AROUND = 6

_Item = tuple[str, int, int]
"""Rule, state of its automaton, offset at which the rule began."""


@dataclass(frozen=True, slots=True)
class Active:
    """A terminal that is read (from offset `start` on) or may begin (`start` is the text's end).

    ``rule``: the rule that asks for it; ``around``: the rules around that, innermost first.
    ``program``: what is embedded in the terminal's place, or None; ``literal``: the terminal's only
    text, or None.
    """

    terminal: str
    start: int
    rule: str
    around: tuple[str, ...]
    program: Program | None = None
    literal: bytes | None = None


class _SpentError(Exception):
    pass


def active_terminals(grammar: Grammar, text: bytes) -> list[Active]:
    """The terminals at the end of `text`, which begins a text; [] where that is too much work."""
    chart = _Chart(grammar)
    try:
        for byte in text:
            chart.step(byte)
    except _SpentError:
        return []
    return list(chart.active())


class _Automaton:
    """A rule's body; state 0 is the start, state 1 the end."""

    def __init__(self, body: Expression) -> None:
        self.empty: list[list[int]] = [[], []]
        self.terms: list[list[tuple[int, int]]] = [[], []]
        self.rules: list[list[tuple[str, int]]] = [[], []]
        self.empty[self.add(body, 0)].append(1)

    def state(self) -> int:
        self.empty.append([])
        self.terms.append([])
        self.rules.append([])
        return len(self.empty) - 1

    def add(self, node: Expression, at: int) -> int:
        """Adds an expression behind a state; gives the state behind it."""
        kind = node[0]
        if kind == "term":
            after = self.state()
            self.terms[at].append((node[1], after))
        elif kind == "rule":
            after = self.state()
            self.rules[at].append((node[1], after))
        elif kind == "seq":
            after = at
            for part in node[1]:
                after = self.add(part, after)
        elif kind == "alt":
            after = self.state()
            for part in node[1]:
                self.empty[self.add(part, at)].append(after)
        else:
            after = self.repeat(node[1], node[2], node[3], at)
        return after

    def repeat(self, part: Expression, least: int, most: int | None, at: int) -> int:
        for _ in range(min(least, _MAX_COPIES)):
            at = self.add(part, at)
        if most is not None and most - least <= _MAX_COPIES and least <= _MAX_COPIES:
            after = self.state()
            self.empty[at].append(after)
            for _ in range(most - least):
                at = self.add(part, at)
                self.empty[at].append(after)
            return after
        hub = self.state()
        self.empty[at].append(hub)
        self.empty[self.add(part, hub)].append(hub)
        return hub


class _Thread:
    """A terminal in progress, for everyone who waits for it since the same offset.

    `behind`: the terminal behind which this one is skipped, else its own number.
    """

    __slots__ = ("begun", "behind", "matcher", "number", "start", "state", "waiting")

    def __init__(self, number: int, behind: int, start: int) -> None:
        self.number, self.behind, self.start = number, behind, start
        self.state = 0
        self.begun = False
        self.matcher: Any = None
        self.waiting: dict[_Item, None] = {}


class _Chart:
    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.automata: dict[str, _Automaton] = {}
        self.left = _MAX_WORK
        self.offset = 0
        self.callers: dict[tuple[str, int], dict[_Item, None]] = {}
        self.threads: list[_Thread] = []
        self._begin()
        self._push((grammar.start, 0, 0))
        self._close()

    def _begin(self) -> None:
        self.seen: set[_Item] = set()
        self.todo: list[_Item] = []
        self.starting: dict[tuple[int, int], _Thread] = {}
        self.emptied: set[str] = set()

    def _push(self, item: _Item) -> None:
        if item not in self.seen:
            self.seen.add(item)
            self.todo.append(item)
            self.left -= 1
            if self.left < 0:
                raise _SpentError

    def _automaton(self, rule: str) -> _Automaton:
        found = self.automata.get(rule)
        if found is None:
            found = self.automata[rule] = _Automaton(self.grammar.rules[rule])
        return found

    def _close(self) -> None:
        """Predict and complete at the present offset."""
        here = self.offset
        while self.todo:
            rule, state, origin = self.todo.pop()
            automaton = self._automaton(rule)
            for after in automaton.empty[state]:
                self._push((rule, after, origin))
            for number, after in automaton.terms[state]:
                self._start(number, number, (rule, after, origin))
            for name, after in automaton.rules[state]:
                callers = self.callers.setdefault((name, here), {})
                callers[rule, after, origin] = None
                if name in self.emptied:
                    self._push((rule, after, origin))
                self._push((name, 0, here))
            if state == 1:
                if origin == here:
                    self.emptied.add(rule)
                for caller in list(self.callers.get((rule, origin), ())):
                    self._push(caller)
        self.threads += self.starting.values()

    def _start(self, number: int, behind: int, item: _Item) -> None:
        thread = self.starting.get((number, behind))
        if thread is None:
            thread = self.starting[number, behind] = _Thread(number, behind, self.offset)
            terminal = self.grammar.terminals[number]
            if isinstance(terminal, Embedded):
                try:
                    thread.matcher = byte_matcher(terminal.program)
                except UnsatisfiableError:
                    del self.starting[number, behind]
                    return
        thread.waiting[item] = None

    def step(self, byte: int) -> None:
        """Read a byte."""
        alive = [thread for thread in self.threads if self._read(thread, byte)]
        self.left -= len(alive)
        if self.left < 0:
            raise _SpentError
        self.offset += 1
        self._begin()
        for thread in alive:
            if self._ends(thread):
                for item in thread.waiting:
                    self._push(item)
                    for skipped in self.grammar.skips.get(thread.behind, ()):
                        self._start(skipped, thread.behind, item)
        self.threads = alive
        self._close()

    def _read(self, thread: _Thread, byte: int) -> bool:
        thread.begun = True
        if thread.matcher is not None:
            return bool(thread.matcher.try_advance(byte))
        terminal: Any = self.grammar.terminals[thread.number]
        for first, last, target in terminal.rows[thread.state]:
            if first <= byte <= last:
                thread.state = target
                return True
        return False

    def _ends(self, thread: _Thread) -> bool:
        if thread.matcher is not None:
            return bool(thread.matcher.is_accepting)
        terminal: Any = self.grammar.terminals[thread.number]
        return terminal.ends[thread.state] is not None

    def active(self) -> Iterator[Active]:
        """The threads that can read another byte, those that have begun first."""
        for thread in sorted(self.threads, key=lambda thread: thread.start):
            terminal = self.grammar.terminals[thread.number]
            if isinstance(terminal, Terminal) and not terminal.rows[thread.state]:
                continue
            if thread.number != thread.behind:
                continue  # what is ignored belongs to no rule
            name, program, literal = terminal.name, None, None
            if isinstance(terminal, Embedded):
                program = terminal.program
            elif terminal.text is not None:
                literal = terminal.text
                name = repr(literal.decode(errors="backslashreplace"))
            told: set[tuple[str, ...]] = set()
            for rule, _, origin in thread.waiting:
                # rules that Lark makes of repetitions stand for those around them
                rules = [r for r in (rule, *self._around(rule, origin)) if not r.startswith("__")]
                around = tuple(rules or [rule])
                if around not in told:
                    told.add(around)
                    yield Active(name, thread.start, around[0], around[1:], program, literal)

    def _around(self, rule: str, origin: int) -> Iterator[str]:
        seen = {(rule, origin)}
        for _ in range(_MAX_AROUND):
            callers = self.callers.get((rule, origin), {})
            found = next(((r, o) for r, _, o in callers if (r, o) not in seen), None)
            if found is None:
                return
            seen.add(found)
            rule, origin = found
            yield rule
