"""From the language of messages to a grammar program, tree by tree.

`message_program` builds the automata over bytes directly: everything around the calls is one small
deterministic net; the tools are a trie of names with an edge into the arguments' own program behind
each.  What stands between the name and the arguments is a net that all tools call, so that 128 of
them cost little more than their names.  `message_expression` makes an expression of grammars of the
same tree, for a constraint inside others; it costs ten times as much.

Special tokens are matched as tokens where the vocabulary has them as such, else as their text.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

from constrain.grammar.automata import ByteDfa, ByteNfa, Range, merge_ranges
from constrain.grammar.builder import GrammarBuilder
from constrain.grammar.flatten import CALL, FOREIGN, FlatNets, flatten, special_edge, special_symbol
from constrain.grammar.ir import ANYTHING, EMPTY, Expression, Terminal
from constrain.grammar.network import build_network
from constrain.grammar.program import encode_nets
from constrain.grammar.texts import free_terminal
from constrain.program import Program
from constrain.tools.language import (
    ArgumentsNode,
    Calls,
    Chain,
    Choice,
    Embedded,
    Free,
    Node,
    Repeat,
    Space,
    Symbols,
    Text,
)
from constrain.tools.spelling import Spelling

__all__ = ["ArgumentsCompiler", "message_expression", "message_program"]

_SPACES = b" \t\r\n"
_MOST_SPACES = 8  # any layout of a call, and no endless blanks
_MAX_STATES = 50_000

ArgumentsCompiler = Callable[[ArgumentsNode, Spelling], tuple[Program, bool]]
"""The program of arguments, and whether they may be written as nothing at all."""


def message_program(tree: Node, spelling: Spelling, arguments: ArgumentsCompiler) -> Program:
    """The program of a message's language."""
    calls: list[Calls] = []
    frame = _frame(tree, calls)
    builder = _Builder(spelling, arguments, calls)
    flat = builder.flat
    flat.nets[flat.start] = builder.small(frame)
    for number, node in enumerate(calls):
        builder.add_calls(number, node)
    none = array("i")
    table = encode_nets(flat)
    return Program("grammar", none, table, none, none, (), (), 0, parts=tuple(flat.parts))


@dataclass(frozen=True, slots=True)
class _Slot:
    """The place of calls in what is around them, which is the same for all tools."""

    number: int


_Frame: TypeAlias = Node | _Slot


def _frame(node: Node, calls: list[Calls]) -> Any:
    """The tree with calls as slots, which are numbered by their places in `calls`."""
    if isinstance(node, Chain):
        return Chain(tuple(_frame(part, calls) for part in node.parts))
    if isinstance(node, Choice):
        return Choice(tuple(_frame(option, calls) for option in node.options))
    if isinstance(node, Repeat):
        return Repeat(_frame(node.part, calls), node.least, node.most)
    if not isinstance(node, Calls):
        return node
    for number, known in enumerate(calls):
        if known is node:
            return _Slot(number)
    calls.append(node)
    return _Slot(len(calls) - 1)


class _Builder:
    """Net 0 is the message, the nets behind it are those of its slots, and then all others."""

    def __init__(
        self, spelling: Spelling, arguments: ArgumentsCompiler, calls: list[Calls]
    ) -> None:
        self.flat = FlatNets()
        self._spelling = spelling
        self._arguments = arguments
        self._nets = 1 + len(calls)
        self._middles: dict[int, tuple[int | None, bool]] = {}
        self._parts: dict[int, tuple[int, bool]] = {}

    def small(self, node: _Frame) -> ByteDfa:
        """The automaton of a tree; what was made for another message is used again."""
        made = self._spelling.made
        found = made.get(node)
        if found is None:
            nfa = ByteNfa()
            nfa.finals = {self.add(nfa, node, nfa.state())}
            found = nfa.determinise(0, _MAX_STATES).reduced()
            if not self.flat.parts and len(self.flat.obligation_rows) == 1:
                made[node] = found
        return found

    def add(self, nfa: ByteNfa, node: _Frame, at: int) -> int:
        """Adds what reads a node from a state; gives the state behind it."""
        if isinstance(node, Chain):
            for part in node.parts:
                at = self.add(nfa, part, at)
            return at
        if isinstance(node, Choice):
            after = nfa.state()
            for option in node.options:
                nfa.empty[self.add(nfa, option, at)].append(after)
            return after
        if isinstance(node, Repeat):
            return self._repeated(nfa, node, at)
        if isinstance(node, Text):
            return _literal(nfa, self._spelling.of(node.text), at)
        if isinstance(node, Space):
            return _some(nfa, _SPACES, 0, max(_MOST_SPACES, len(node.text)), at)
        if isinstance(node, Symbols):
            return _some(nfa, node.characters.encode(), node.least, node.most, at)
        if isinstance(node, Free):
            return self._terminal(nfa, free_text(node.stops, node.first), at)
        if isinstance(node, Embedded):
            return self._embedded(nfa, node, at)
        if isinstance(node, _Slot):
            after = nfa.state()
            nfa.special[at].append((special_symbol(CALL, 1 + node.number), after))
            return after
        raise TypeError(f"{type(node).__name__} is no part of a message outside of calls")

    def _repeated(self, nfa: ByteNfa, node: Repeat, at: int) -> int:
        for _ in range(node.least):
            at = self.add(nfa, node.part, at)
        after = nfa.state()
        if node.most is None:
            loop = nfa.state()
            nfa.empty[at].append(loop)
            nfa.empty[loop].append(after)
            nfa.empty[self.add(nfa, node.part, loop)].append(loop)
            return after
        nfa.empty[at].append(after)
        for _ in range(node.most - node.least):
            at = self.add(nfa, node.part, at)
            nfa.empty[at].append(after)
        return after

    @staticmethod
    def _terminal(nfa: ByteNfa, terminal: Terminal, at: int) -> int:
        """A terminal, or nothing."""
        start, after = nfa.embed(terminal.rows), nfa.state()
        nfa.empty[at] += [start, after]
        for state, end in enumerate(terminal.ends):
            if end == ANYTHING:
                nfa.empty[start + state].append(after)
        return after

    def _embedded(self, nfa: ByteNfa, node: Embedded, at: int) -> int:
        """Another specification: a foreign program, or the nets of its grammar beside ours."""
        after = nfa.state()
        if not callable(getattr(node.spec, "expression", None)):
            number = self._add_part(node.spec.program())
            nfa.special[at].append((special_symbol(FOREIGN, number), after))
            return after
        builder = GrammarBuilder(self._spelling.vocabulary)
        grammar = builder.grammar(builder.part(node.spec))
        inner = flatten(grammar, build_network(grammar))
        moved = self._moved(inner)
        start = nfa.embed(moved[inner.start].rows)
        nfa.empty[at].append(start)
        for state, special in enumerate(moved[inner.start].special):
            nfa.special[start + state] += [(x, t + start) for x, t in special.items()]
        for final in moved[inner.start].finals:
            nfa.empty[start + final].append(after)
        return after

    def _moved(self, inner: FlatNets) -> dict[int, ByteDfa]:
        """The nets of another grammar, numbered behind ours; all but its start are kept."""
        flat, offset = self.flat, self._nets
        obligations = len(flat.obligation_rows) - 1
        parts = len(flat.parts)
        self._nets += max(inner.nets, default=-1) + 1
        flat.parts += inner.parts
        for row, ends in zip(inner.obligation_rows[1:], inner.obligation_ends[1:]):
            flat.obligation_rows.append(
                tuple((a, b, t + obligations if t != ANYTHING else t) for a, b, t in row)
            )
            flat.obligation_ends.append(ends)

        def symbol(old: int) -> int:
            kind, number = special_edge(old)
            if kind == CALL:
                return special_symbol(kind, number + offset)
            if kind == FOREIGN:
                return special_symbol(kind, number + parts)
            return special_symbol(kind, number + obligations)

        result: dict[int, ByteDfa] = {}
        for number, net in inner.nets.items():
            special = [{symbol(x): t for x, t in row.items()} for row in net.special]
            result[number] = ByteDfa(net.rows, special, net.finals)
            if number != inner.start:
                flat.nets[number + offset] = result[number]
        return result

    # -- calls ---------------------------------------------------------------------------------

    def add_calls(self, slot: int, calls: Calls) -> None:
        """A trie of the names; behind each the middle, the arguments and the closing."""
        trie: list[dict[int, int]] = [{}]
        special: list[dict[int, int]] = [{}]
        extra: dict[int, list[Range]] = {}
        finals: set[int] = set()
        closings: dict[int, int] = {}

        def state() -> int:
            trie.append({})
            special.append({})
            return len(trie) - 1

        def closing_start(closing: Chain) -> int:
            start = closings.get(id(closing))
            if start is None:
                start = closings[id(closing)] = len(trie)
                dfa = self.small(closing)
                for number, row in enumerate(dfa.rows):
                    extra[state()] = [(a, b, t + start) for a, b, t in row]
                    if number in dfa.finals:
                        finals.add(start + number)
            return start

        for case in calls.cases:
            at = 0
            for byte in case.name.encode():
                target = trie[at].get(byte)
                if target is None:
                    target = trie[at][byte] = state()
                at = target
            number, empty = self._part(case.arguments)
            behind = closing_start(case.closing)
            middle, nullable = self._middle(case.middle)
            ready = at
            if middle is not None:
                ready = state()
                special[at][special_symbol(CALL, middle)] = ready
                if nullable:
                    special[at][special_symbol(FOREIGN, number)] = behind
            special[ready][special_symbol(FOREIGN, number)] = behind
            if empty:
                # nothing at all is written for them: the closing follows the middle
                extra[ready] = extra[behind] + extra.get(ready, [])
                if behind in finals:
                    finals.add(ready)
        rows = [
            sorted([*((b, b, t) for b, t in row.items()), *extra.get(number, ())])
            for number, row in enumerate(trie)
        ]
        self.flat.nets[1 + slot] = _deterministic(rows, special, finals)

    def _new_net(self) -> int:
        self._nets += 1
        return self._nets - 1

    def _middle(self, node: Chain) -> tuple[int | None, bool]:
        """The net of what stands before the arguments (None: nothing does), and if it may be empty."""
        found = self._middles.get(id(node))
        if found is None:
            dfa = self.small(node)
            nullable = 0 in dfa.finals
            if len(dfa.rows) == 1 and not dfa.rows[0]:
                found = (None, True)
            else:
                number = self._new_net()
                self.flat.nets[number] = _without_empty(dfa)
                found = (number, nullable)
            self._middles[id(node)] = found
        return found

    def _part(self, node: ArgumentsNode) -> tuple[int, bool]:
        found = self._parts.get(id(node))
        if found is None:
            program, empty = self._arguments(node, self._spelling)
            found = self._parts[id(node)] = (self._add_part(program), empty)
        return found

    def _add_part(self, program: Program) -> int:
        self.flat.parts.append(program)
        return len(self.flat.parts) - 1


def _deterministic(
    rows: list[list[Range]], special: list[dict[int, int]], finals: set[int]
) -> ByteDfa:
    """The automaton of sorted rows, which are nearly always deterministic as they are."""
    if all(a[1] < b[0] for row in rows for a, b in pairwise(row)):
        return ByteDfa(rows, special, finals)
    nfa = ByteNfa()
    nfa.embed(rows)
    nfa.special = [list(row.items()) for row in special]
    nfa.finals = finals
    return nfa.determinise(0, _MAX_STATES)


def _without_empty(dfa: ByteDfa) -> ByteDfa:
    """The automaton for all texts but the empty one; its start is not entered again."""
    if 0 not in dfa.finals:
        return dfa
    rows = [[(a, b, t + 1) for a, b, t in row] for row in dfa.rows]
    special = [{x: t + 1 for x, t in row.items()} for row in dfa.special]
    return ByteDfa([rows[0], *rows], [special[0], *special], {final + 1 for final in dfa.finals})


def _literal(nfa: ByteNfa, data: bytes, at: int) -> int:
    for byte in data:
        target = nfa.state()
        nfa.ranges[at].append((byte, byte, target))
        at = target
    return at


def _some(nfa: ByteNfa, characters: bytes, least: int, most: int, at: int) -> int:
    """From `least` to `most` of some bytes."""
    ranges = _byte_ranges(characters)
    after = nfa.state()
    for count in range(most + 1):
        if count >= least:
            nfa.empty[at].append(after)
        if count < most:
            target = nfa.state()
            nfa.ranges[at] += [(first, last, target) for first, last in ranges]
            at = target
    return after


def _byte_ranges(characters: bytes) -> list[tuple[int, int]]:
    merged = merge_ranges((byte, byte, 0) for byte in sorted(set(characters)))
    return [(first, last) for first, last, _ in merged]


@lru_cache(maxsize=64)
def free_text(stops: tuple[str, ...], first: str) -> Terminal:
    """Texts in which no stop occurs and which begin, blanks aside, with no character of `first`.

    The empty text is left out.
    """
    base = free_terminal("free text", (), tuple(stop.encode() for stop in stops), None)
    if not first:
        return base
    count = len(base.rows)
    refused = set(first.encode())
    rows: list[list[Range]] = []
    for row in base.rows:  # while there were blanks only
        edges: list[Range] = []
        for low, high, target in row:
            for byte in range(low, high + 1):
                if byte in _SPACES:
                    edges.append((byte, byte, target))
                elif byte not in refused:
                    edges.append((byte, byte, target + count))
        rows.append(merge_ranges(edges))
    rows += [[(a, b, t + count) for a, b, t in row] for row in base.rows]
    return Terminal("free text", tuple(map(tuple, rows)), (*base.ends, *base.ends))


# -- as a part of other grammars -----------------------------------------------------------------


def message_expression(
    tree: Node, builder: GrammarBuilder, arguments: ArgumentsCompiler
) -> Expression:
    """The texts of a message as an expression of a grammar that is being built."""
    return _Expressions(builder, arguments).of(tree)


class _Expressions:
    def __init__(self, builder: GrammarBuilder, arguments: ArgumentsCompiler) -> None:
        self._builder = builder
        self._arguments = arguments
        self._spelling = Spelling(builder.vocabulary)
        self._rules: dict[int, tuple[Node, Expression]] = {}
        builder.uses_vocabulary = True

    def of(self, node: Node) -> Expression:
        builder = self._builder
        if isinstance(node, Chain):
            return ("seq", tuple(map(self.of, node.parts))) if node.parts else EMPTY
        if isinstance(node, Choice):
            return ("alt", tuple(map(self.of, node.options)))
        if isinstance(node, Repeat):
            return ("repeat", self.of(node.part), node.least, node.most)
        if isinstance(node, Text):
            return builder.literal(self._spelling.of(node.text))
        if isinstance(node, Space):
            blanks = self._symbols(_SPACES)
            return ("repeat", blanks, 0, max(_MOST_SPACES, len(node.text)))
        if isinstance(node, Symbols):
            symbols = self._symbols(node.characters.encode())
            return ("repeat", symbols, node.least, node.most)
        if isinstance(node, Free):
            key = ("free", node)
            return ("repeat", builder.terminal(free_text(node.stops, node.first), (), key), 0, 1)
        if isinstance(node, Embedded):
            return builder.part(node.spec)
        if isinstance(node, Calls):
            return self._shared(node, self._calls)
        return self._shared(node, self._arguments_of)

    def _symbols(self, characters: bytes) -> Expression:
        rows = (tuple((a, b, 1) for a, b in _byte_ranges(characters)), ())
        key = ("symbols", characters)
        return self._builder.terminal(Terminal("symbols", rows, (None, ANYTHING)), (), key)

    def _calls(self, node: Calls) -> Expression:
        options = []
        for case in node.cases:
            name = self._builder.literal(case.name.encode())
            parts = (self.of(case.middle), self.of(case.arguments), self.of(case.closing))
            options.append(("seq", (name, *parts)))
        return ("alt", tuple(options))

    def _arguments_of(self, node: ArgumentsNode) -> Expression:
        program, empty = self._arguments(node, self._spelling)
        found = self._builder.embedded(program, f"arguments of {node.tool.name}")
        return ("repeat", found, 0, 1) if empty else found

    def _shared(self, node: Any, make: Callable[[Any], Expression]) -> Expression:
        """A rule for what occurs in several places."""
        found = self._rules.get(id(node))
        if found is None:
            name = self._builder.fresh(type(node).__name__.lower())
            found = self._rules[id(node)] = (node, self._builder.define(name, make(node)))
        return found[1]
