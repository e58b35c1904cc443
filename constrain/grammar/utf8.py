"""Sets of code points as trees over UTF-8 bytes.

A tree node is a tuple of ``(first byte, last byte, child)`` in order; child -1 ends the character.
Nodes are interned, so equal sets (and equal tails of sets) have equal numbers.  Surrogates are left
out: they occur in no text.
"""

from __future__ import annotations

from collections.abc import Iterator

from constrain.regex.charsets import CharSet

__all__ = ["END", "Utf8Trees", "byte_rows", "sequences"]

END = -1

_Sequence = tuple[tuple[int, int], ...]


class Utf8Trees:
    """Interned trees."""

    def __init__(self) -> None:
        self.nodes: list[tuple[tuple[int, int, int], ...]] = []
        self._ids: dict[tuple[tuple[int, int, int], ...], int] = {}
        self._sets: dict[CharSet, int] = {}

    def tree(self, chars: CharSet) -> int:
        """The number of the set's tree; an empty set has a node without edges."""
        found = self._sets.get(chars)
        if found is None:
            found = self._sets[chars] = self._build(list(sequences(chars)))
        return found

    def _build(self, sequences: list[_Sequence]) -> int:
        groups: dict[tuple[int, int], list[_Sequence]] = {}
        for sequence in sequences:
            groups.setdefault(sequence[0], []).append(sequence[1:])
        edges: list[tuple[int, int, int]] = []
        for (first, last), rest in sorted(groups.items()):
            child = END if rest == [()] else self._build(rest)
            if edges and edges[-1][1] + 1 == first and edges[-1][2] == child:
                edges[-1] = (edges[-1][0], last, child)
            else:
                edges.append((first, last, child))
        node = tuple(edges)
        found = self._ids.get(node)
        if found is None:
            found = self._ids[node] = len(self.nodes)
            self.nodes.append(node)
        return found


def sequences(chars: CharSet) -> Iterator[_Sequence]:
    """The code points of a set as sequences of ranges of bytes."""
    for low, high in zip(chars[::2], chars[1::2]):
        for first, last in (
            (0, 0x7F),
            (0x80, 0x7FF),
            (0x800, 0xD7FF),
            (0xE000, 0xFFFF),
            (0x10000, 0x10FFFF),
        ):
            a, b = max(low, first), min(high, last)
            if a <= b:
                yield from _split(a, b)


def _split(low: int, high: int) -> Iterator[_Sequence]:
    """Ranges of equal UTF-8 length as sequences of byte ranges; recursion is at most 6 deep."""
    if high > 0x7F:
        for tail in (1, 2, 3):
            mask = (1 << (6 * tail)) - 1
            if (low & ~mask) != (high & ~mask):
                if low & mask:
                    yield from _split(low, low | mask)
                    yield from _split((low | mask) + 1, high)
                    return
                if (high & mask) != mask:
                    yield from _split(low, (high & ~mask) - 1)
                    yield from _split(high & ~mask, high)
                    return
    yield tuple(zip(chr(low).encode(), chr(high).encode()))


def byte_rows(chars: CharSet) -> list[list[tuple[int, int, int]]]:
    """Rows of an automaton that reads one code point of a set: state 0 starts, state 1 ends."""
    trees = Utf8Trees()
    root = trees.tree(chars)
    number = {root: 0, END: 1}
    rows: list[list[tuple[int, int, int]]] = [[], []]
    order = [root]
    for node in order:
        row = []
        for first, last, child in trees.nodes[node]:
            if child not in number:
                number[child] = len(rows)
                rows.append([])
                order.append(child)
            row.append((first, last, number[child]))
        rows[number[node]] = row
    return rows
