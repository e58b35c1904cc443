"""Grammars as languages of strings: from nets over bytes to one automaton over code points.

A string of a JSON Schema may have to belong to a grammar (``x-grammar``).  Strings are decided by
automata without a stack, so the grammar must need none: left, right and other harmless recursion
has become loops by now (see `constrain.grammar.network`), and what calls itself still is refused.

The nets are run together as sets of (state, stack, obligations); every such set is a state.  Cost:
about linear in what it makes, which a limit bounds.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from constrain.errors import LimitExceededError, UnsatisfiableError, UnsupportedError
from constrain.grammar.automata import ByteDfa, Range, merge_ranges, strong_components, sweep
from constrain.grammar.builder import GrammarBuilder
from constrain.grammar.flatten import CALL, MARK, FlatNets, called, flatten, special_edge
from constrain.grammar.ir import ANYTHING, Expression, Grammar
from constrain.grammar.network import build_network
from constrain.program import Program
from constrain.regex.charsets import from_pairs
from constrain.regex.program import ProgramBuilder

if TYPE_CHECKING:
    from constrain.vocabulary import Vocabulary

__all__ = ["StringGrammarBuilder", "string_program"]

_MAX_STATES = 20_000

_Item = tuple[int, int, tuple[tuple[int, int], ...], frozenset[int]]
"""A net, a state of it, where to return to, and the obligations on what follows."""


class StringGrammarBuilder(GrammarBuilder):
    """Builds a grammar whose texts are strings: without tokens and without JSON inside."""

    def embedded(self, program: Program, name: str, skips: tuple[int, ...] = ()) -> Expression:
        """Raises UnsupportedError."""
        raise UnsupportedError(f"{name} in the grammar of a string", feature="nested JSON")

    def _vocabulary(self, what: str) -> Vocabulary:
        raise UnsupportedError(
            f"{what} in the grammar of a string, which has no tokens", feature="token reference"
        )


def string_program(grammar: Grammar) -> array[int]:
    """The regex program of the texts of a grammar.

    The grammar is one of a `StringGrammarBuilder`.  Raises UnsupportedError if it needs a stack,
    UnsatisfiableError if it has no text, LimitExceededError if it needs more than 20,000 states.
    """
    flat = flatten(grammar, build_network(grammar))
    _check_recursion(flat)
    dfa = _Runner(flat).automaton().reduced()
    if not dfa.finals:
        raise UnsatisfiableError(f"the grammar's start rule {grammar.start!r} derives no text")
    return _over_code_points(dfa)


def _check_recursion(flat: FlatNets) -> None:
    graph = {
        at: [number for row in flat.nets[at].special for number in called(row)]
        for at in flat.reachable()
    }
    for component in strong_components(graph):
        if len(component) > 1 or component[0] in graph[component[0]]:
            name = flat.names[min(component)]
            raise UnsupportedError(
                f"the rule {name!r} calls itself in a way that needs a stack, which strings have "
                "not",
                feature="recursion",
            )


class _Runner:
    """Sets of items as states of one automaton."""

    def __init__(self, flat: FlatNets) -> None:
        self.flat = flat

    def automaton(self) -> ByteDfa:
        start = self.close([(self.flat.start, 0, (), frozenset())])
        ids = {start: 0}
        order = [start]
        rows: list[list[Range]] = []
        for items in order:
            row: list[Range] = []
            for first, last, moves in self.moves(items):
                found = self.close(moves)
                if not found:
                    continue
                number = ids.get(found)
                if number is None:
                    number = ids[found] = len(order)
                    order.append(found)
                    if number >= _MAX_STATES:
                        raise LimitExceededError(
                            f"the grammar of a string needs more than {_MAX_STATES} states",
                            limit="max_states",
                        )
                row.append((first, last, number))
            rows.append(merge_ranges(row))
        finals = {at for at, items in enumerate(order) if any(map(self.accepts, items))}
        return ByteDfa(rows, [{} for _ in rows], finals)

    def accepts(self, item: _Item) -> bool:
        """The text may end here."""
        net, state, stack, obligations = item
        return (
            not stack
            and state in self.flat.nets[net].finals
            and all(self.flat.obligation_ends[one] for one in obligations)
        )

    def close(self, items: Iterable[_Item]) -> frozenset[_Item]:
        """What is reached without reading."""
        todo = list(items)
        found = set(todo)
        while todo:
            net, state, stack, obligations = todo.pop()
            new: list[_Item] = []
            if stack and state in self.flat.nets[net].finals:
                new.append((*stack[-1], stack[:-1], obligations))
            for symbol, target in self.flat.nets[net].special[state].items():
                kind, number = special_edge(symbol)
                if kind == CALL:
                    new.append((number, 0, (*stack, (net, target)), obligations))
                elif kind == MARK:
                    new.append((net, target, stack, obligations | {number}))
            for item in new:
                if item not in found:
                    found.add(item)
                    todo.append(item)
        return frozenset(found)

    def moves(self, items: frozenset[_Item]) -> Iterator[tuple[int, int, list[_Item]]]:
        """Ranges of bytes, and what they lead to."""
        listed = list(items)
        sources: list[list[Range]] = []
        for at, (net, state, _, obligations) in enumerate(listed):
            sources.append([(a, b, at) for a, b, _ in self.flat.nets[net].rows[state]])
            # Cuts where obligations tell bytes apart; they lead nowhere by themselves.
            sources += [
                [(a, b, -1) for a, b, _ in self.flat.obligation_rows[one]] for one in obligations
            ]
        for first, last, found in sweep([row for row in sources if row]):
            moves = []
            for at in found:
                if at < 0:
                    continue
                net, state, stack, obligations = listed[at]
                left = {_look(self.flat.obligation_rows[one], first) for one in obligations}
                if None not in left:
                    target: Any = _look(self.flat.nets[net].rows[state], first)
                    kept = frozenset(one for one in left if one is not None and one != ANYTHING)
                    moves.append((net, target, stack, kept))
            if moves:
                yield first, last, moves


def _look(row: Iterable[Range], byte: int) -> int | None:
    for first, last, target in row:
        if first <= byte <= last:
            return target
    return None


def _joined(pieces: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    flat = from_pairs(pieces)
    return list(zip(flat[::2], flat[1::2]))


# -- from bytes to code points -------------------------------------------------------------------


def _over_code_points(dfa: ByteDfa) -> array[int]:
    """The same language over code points: states between characters, and sets of them as edges."""
    memo: dict[tuple[int, int], dict[int, list[tuple[int, int]]]] = {}

    def tails(state: int, count: int) -> dict[int, list[tuple[int, int]]]:
        """By state: the values of `count` continuation bytes that lead there."""
        key = (state, count)
        if key in memo:
            return memo[key]
        found: dict[int, list[tuple[int, int]]] = {}
        unit = 64 ** (count - 1)
        for first, last, target in dfa.rows[state]:
            first, last = max(first, 0x80), min(last, 0xBF)
            if first > last:
                continue
            low, high = (first & 0x3F) * unit, ((last & 0x3F) + 1) * unit - 1
            if count == 1:
                found.setdefault(target, []).append((low, high))
                continue
            for after, pieces in tails(target, count - 1).items():
                if pieces == [(0, unit - 1)]:
                    found.setdefault(after, []).append((low, high))
                    continue
                for base in range(low, high + 1, unit):
                    found.setdefault(after, []).extend((base + a, base + b) for a, b in pieces)
        memo[key] = {after: _joined(pieces) for after, pieces in found.items()}
        return memo[key]

    number = {0: 0}
    order = [0]
    states: list[tuple[bool, list[tuple[tuple[int, ...], int]]]] = []
    for state in order:
        edges: dict[int, list[tuple[int, int]]] = {}
        for first, last, target in dfa.rows[state]:
            if first <= 0x7F:
                edges.setdefault(target, []).append((first, min(last, 0x7F)))
            for byte in range(max(first, 0xC2), min(last, 0xF4) + 1):
                count = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
                base = (byte & (0x7F >> (count + 1))) * 64**count
                for after, pieces in tails(target, count).items():
                    edges.setdefault(after, []).extend((base + a, base + b) for a, b in pieces)
        for target in edges:
            if target not in number:
                number[target] = len(order)
                order.append(target)
        row = [(from_pairs(pairs), number[target]) for target, pairs in edges.items()]
        states.append((state in dfa.finals, row))
    builder = ProgramBuilder()
    return builder.finish(builder.automaton(states))
