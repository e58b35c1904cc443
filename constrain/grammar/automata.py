"""Automata of grammars: nondeterministic builders, determinisation, minimisation.

Two kinds, both deterministic once built, with state 0 as their start:

* over symbols (`SymbolDfa`): a row is a dict from a symbol (an int: a rule if it is not negative,
  else the complement of a terminal's number) to a state;
* over bytes (`ByteDfa`): a row is a sorted list of disjoint ranges ``(first, last, state)``, beside
  edges that consume nothing: calls of other nets and marks (see `constrain.grammar.flatten`).

Ranges keep a row short where a class of characters has hundreds of bytes.  Cost: determinisation is
linear in what it makes, which a limit bounds; for minimisation see `constrain.grammar.partition`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from constrain import limits
from constrain.errors import LimitExceededError
from constrain.grammar.partition import Classes, Numbers, live_states, partition

__all__ = [
    "ByteDfa",
    "ByteNfa",
    "Range",
    "SymbolDfa",
    "SymbolNfa",
    "merge_ranges",
    "row_classes",
    "strong_components",
    "sweep",
]

Range = tuple[int, int, int]

_MAX_WORK = 1_000_000
"""Members of the sets of states that one determinisation may look at: a second or two."""


def _too_large(limit: int) -> LimitExceededError:
    return LimitExceededError(f"the grammar needs more than {limit} states", limit="max_states")


def strong_components(graph: Mapping[int, Iterable[int]]) -> list[list[int]]:
    """Strongly connected components, callees first (Tarjan's algorithm without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in graph:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        work = [(root, iter(graph[root]))]
        while work:
            node, edges = work[-1]
            for target in edges:
                if target not in graph:
                    continue
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = stack.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    found.append(component)
    return found


# -- over symbols ------------------------------------------------------------------------------


class SymbolDfa:
    """A deterministic automaton over symbols: `rows`, `finals`, start 0."""

    __slots__ = ("finals", "rows")

    def __init__(self, rows: list[dict[int, int]], finals: set[int]) -> None:
        self.rows = rows
        self.finals = finals

    def rules(self) -> set[int]:
        """Rules that are called."""
        return {symbol for row in self.rows for symbol in row if symbol >= 0}

    def without_empty(self) -> SymbolDfa:
        """The language without the empty word; the start of the result has no incoming edge."""
        if 0 not in self.finals and not any(0 in row.values() for row in self.rows):
            return self
        shifted = [{x: t + 1 for x, t in row.items()} for row in self.rows]
        return SymbolDfa([dict(shifted[0]), *shifted], {state + 1 for state in self.finals})

    def reduced(self, dead: set[int] | None = None) -> SymbolDfa:
        """Minimal and trim; edges with a symbol of `dead` are dropped first."""
        rows = self.rows
        if dead:
            rows = [{x: t for x, t in row.items() if x not in dead} for row in rows]
        live = live_states(self.finals, [row.values() for row in rows])
        if 0 not in live:
            return SymbolDfa([{}], set())
        rows = [
            {x: t for x, t in row.items() if t in live} if state in live else {}
            for state, row in enumerate(rows)
        ]
        # States that lead nowhere have a class of their own and are not reached.
        start = [2 if s not in live else int(s in self.finals) for s in range(len(rows))]

        def signature(state: int, classes: Classes) -> Hashable:
            return frozenset((x, classes[t]) for x, t in rows[state].items())

        classes = partition(start, [list(row.values()) for row in rows], signature)
        number = Numbers(classes)
        number(0)
        result = [{x: number(t) for x, t in rows[state].items()} for state in number.order]
        finals = {at for at, state in enumerate(number.order) if state in self.finals}
        return SymbolDfa(result, finals)


class SymbolNfa:
    """A builder of automata over symbols."""

    def __init__(self) -> None:
        self.edges: list[list[tuple[int, int]]] = []
        self.empty: list[list[int]] = []
        self.finals: set[int] = set()

    def state(self) -> int:
        """A new state."""
        self.edges.append([])
        self.empty.append([])
        return len(self.edges) - 1

    def embed(self, dfa: SymbolDfa) -> int:
        """Copies the states and edges of `dfa`; returns where its start is."""
        offset = len(self.edges)
        for row in dfa.rows:
            self.edges.append([(x, t + offset) for x, t in row.items()])
            self.empty.append([])
        return offset

    def determinise(self, start: int = 0, limit: int = 100_000) -> SymbolDfa:
        """The deterministic automaton, at most `limit` states."""
        first = _closure([start], self.empty)
        ids = {first: 0}
        order = [first]
        rows: list[dict[int, int]] = []
        finals: set[int] = set()
        closed: dict[frozenset[int], frozenset[int]] = {}
        work = 0
        for at, states in enumerate(order):
            work += len(states)
            if at % 1024 == 1023:
                limits.check()
            if work > _MAX_WORK:
                raise _too_large(limit)
            targets: dict[int, set[int]] = {}
            for state in states:
                for symbol, target in self.edges[state]:
                    targets.setdefault(symbol, set()).add(target)
            if not self.finals.isdisjoint(states):
                finals.add(len(rows))
            row: dict[int, int] = {}
            for symbol, found in targets.items():
                key = frozenset(found)
                closure = closed.get(key)
                if closure is None:
                    closure = closed[key] = _closure(key, self.empty)
                number = ids.get(closure)
                if number is None:
                    number = ids[closure] = len(order)
                    order.append(closure)
                    if number >= limit:
                        raise _too_large(limit)
                row[symbol] = number
            rows.append(row)
        return SymbolDfa(rows, finals)


def _closure(states: Iterable[int], empty: Sequence[Sequence[int]]) -> frozenset[int]:
    todo = list(states)
    found = set(todo)
    while todo:
        for target in empty[todo.pop()]:
            if target not in found:
                found.add(target)
                todo.append(target)
    return frozenset(found)


# -- over bytes --------------------------------------------------------------------------------


def merge_ranges(ranges: Iterable[Range]) -> list[Range]:
    """Sorted disjoint ranges with neighbours of one target joined."""
    merged: list[Range] = []
    for first, last, target in ranges:
        if merged and merged[-1][2] == target and merged[-1][1] + 1 == first:
            merged[-1] = (merged[-1][0], last, target)
        else:
            merged.append((first, last, target))
    return merged


class ByteDfa:
    """Deterministic over bytes and over the symbols of `special` edges; start 0.

    `special[state]` maps a symbol (an int) to a state without consuming anything.
    """

    __slots__ = ("finals", "rows", "special")

    def __init__(
        self, rows: list[list[Range]], special: list[dict[int, int]], finals: set[int]
    ) -> None:
        self.rows = rows
        self.special = special
        self.finals = finals

    def reduced(self) -> ByteDfa:
        """Minimal and trim."""
        rows, special = self.rows, self.special
        successors = _successors(rows, special)
        live = live_states(self.finals, successors)
        if 0 not in live:
            return ByteDfa([[]], [{}], set())
        if len(live) < len(rows):
            rows = [
                [r for r in row if r[2] in live] if s in live else [] for s, row in enumerate(rows)
            ]
            special = [
                {x: t for x, t in row.items() if t in live} if s in live else {}
                for s, row in enumerate(special)
            ]
            successors = _successors(rows, special)
        start = [2 if s not in live else int(s in self.finals) for s in range(len(rows))]

        number = Numbers(partition(start, successors, _signature(rows, special)))
        number(0)
        new_rows: list[list[Range]] = []
        new_special: list[dict[int, int]] = []
        for state in number.order:
            row = [(a, b, number(t)) for a, b, t in rows[state]]
            new_rows.append(row if len(row) == 1 else merge_ranges(row))
            new_special.append({x: number(t) for x, t in special[state].items()})
        finals = {at for at, state in enumerate(number.order) if state in self.finals}
        return ByteDfa(new_rows, new_special, finals)


def row_classes(labels: list[int], rows: Sequence[Sequence[Range]]) -> list[int]:
    """The classes of the states of an automaton over bytes, which `labels` tell apart at least."""
    return partition(labels, [[r[2] for r in row] for row in rows], _signature(rows, None))


def _signature(
    rows: Sequence[Sequence[Range]], special: Sequence[Mapping[int, int]] | None
) -> Callable[[int, Classes], Hashable]:
    def signature(state: int, classes: Classes) -> Hashable:
        row = rows[state]
        ranges: Hashable
        if len(row) == 1:
            first, last, target = row[0]
            ranges = first, last, classes[target]
        else:
            ranges = tuple(merge_ranges((a, b, classes[t]) for a, b, t in row))
        extra = special[state] if special is not None else None
        if not extra:
            return ranges
        return ranges, frozenset((x, classes[t]) for x, t in extra.items())

    return signature


def _successors(
    rows: Sequence[Sequence[Range]], special: Sequence[Mapping[int, int]]
) -> list[list[int]]:
    return [
        [r[2] for r in row] + [*extra.values()] if extra else [r[2] for r in row]
        for row, extra in zip(rows, special)
    ]


class ByteNfa:
    """A builder of automata over bytes and special symbols."""

    def __init__(self) -> None:
        self.ranges: list[list[Range]] = []
        self.special: list[list[tuple[int, int]]] = []
        self.empty: list[list[int]] = []
        self.finals: set[int] = set()

    def state(self) -> int:
        """A new state."""
        self.ranges.append([])
        self.special.append([])
        self.empty.append([])
        return len(self.ranges) - 1

    def embed(self, rows: Sequence[Sequence[Range]]) -> int:
        """Copies rows; returns where state 0 of them is."""
        offset = len(self.ranges)
        for row in rows:
            self.ranges.append([(a, b, t + offset) for a, b, t in row])
            self.special.append([])
            self.empty.append([])
        return offset

    def determinise(self, start: int, limit: int) -> ByteDfa:
        """The deterministic automaton, at most `limit` states."""
        first = _closure([start], self.empty)
        ids = {first: 0}
        order = [first]
        rows: list[list[Range]] = []
        special: list[dict[int, int]] = []
        finals: set[int] = set()
        closed: dict[tuple[int, ...], int] = {}
        ranges_of, special_of, empty = self.ranges, self.special, self.empty

        def number(targets: tuple[int, ...]) -> int:
            found = closed.get(targets)
            if found is None:
                if len(targets) == 1 and not empty[targets[0]]:
                    closure = frozenset(targets)
                else:
                    closure = _closure(targets, empty)
                found = ids.get(closure)
                if found is None:
                    found = ids[closure] = len(order)
                    order.append(closure)
                    if found >= limit:
                        raise _too_large(limit)
                closed[targets] = found
            return found

        work = 0
        for at, states in enumerate(order):
            work += len(states)
            if at % 1024 == 1023:
                limits.check()
            if work > _MAX_WORK:
                raise _too_large(limit)
            if not self.finals.isdisjoint(states):
                finals.add(len(rows))
            sources = [ranges_of[state] for state in states if ranges_of[state]]
            rows.append([(a, b, number(t)) for a, b, t in sweep(sources)])
            extra: dict[int, set[int]] = {}
            for state in states:
                for symbol, target in special_of[state]:
                    extra.setdefault(symbol, set()).add(target)
            special.append({x: number(tuple(sorted(t))) for x, t in extra.items()} if extra else {})
        return ByteDfa(rows, special, finals)


def sweep(sources: list[list[Range]]) -> list[tuple[int, int, tuple[int, ...]]]:
    """The ranges on which the set of targets does not change."""
    if not sources:
        return []
    if len(sources) == 1:
        row = sources[0]
        if all(row[i][1] < row[i + 1][0] for i in range(len(row) - 1)):
            return [(a, b, (t,)) for a, b, t in row]
    opens: dict[int, list[int]] = {}
    closes: dict[int, list[int]] = {}
    for row in sources:
        for first, last, target in row:
            opens.setdefault(first, []).append(target)
            closes.setdefault(last + 1, []).append(target)
    points = sorted(opens.keys() | closes.keys())
    active: dict[int, int] = {}
    result: list[tuple[int, int, tuple[int, ...]]] = []
    for at, point in enumerate(points):
        for target in closes.get(point, ()):
            active[target] -= 1
            if not active[target]:
                del active[target]
        for target in opens.get(point, ()):
            active[target] = active.get(target, 0) + 1
        if active:
            result.append((point, points[at + 1] - 1, tuple(active)))
    return result
