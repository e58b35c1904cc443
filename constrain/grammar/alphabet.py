"""Classes of code points that some sets cannot tell apart, and automata over classes as bytes.

Above ASCII a class is a piece of a large set more often than not (what ``\\w`` is has hundreds of
intervals), and patterns share these sets: there the trees over UTF-8 bytes are made once for each
combination of sets.  An automaton over classes is built and minimised with few symbols; `expand`
writes it over bytes, where each state has a tree of its own, equal subtrees being one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from constrain.grammar.automata import Range, merge_ranges
from constrain.grammar.utf8 import sequences
from constrain.regex.charsets import MAX_CODE_POINT, CharSet

__all__ = ["INVALID", "Alphabet", "TooManyStatesError"]

INVALID = 0
"""The class of bytes that begin no character: special tokens."""

_FIRST = 0x80
_Node = tuple[Range, ...]


class TooManyStatesError(Exception):
    """An automaton has more states over bytes than was asked for."""


class Alphabet:
    """The classes of some sets of code points; class 0 is `INVALID`.

    Attributes:
        size: how many classes there are, `INVALID` included.
    """

    def __init__(self, sets: Iterable[CharSet]) -> None:
        found = list(dict.fromkeys(sets))
        low = [_low(chars) for chars in found]
        high = [_high(chars) for chars in found]
        known: dict[tuple[bool, ...], int] = {}
        groups = [(1 << _FIRST) - 1]
        for mask in set(low):
            groups = [part for group in groups for part in (group & mask, group & ~mask) if part]
        labels = [0] * _FIRST
        for group in groups:
            signature = tuple(bool(group & mask) for mask in low)
            label = known.setdefault(signature, len(known) + 1)
            while group:
                labels[(group & -group).bit_length() - 1] = label
                group &= group - 1
        self._low = merge_ranges((byte, byte, label) for byte, label in enumerate(labels))
        distinct = tuple(sorted(set(high)))
        places = [distinct.index(chars) for chars in high]
        members, self._nodes = _trees(distinct)
        self._high = []
        for member in members:
            signature = tuple(bool(member >> place & 1) for place in places)
            self._high.append(known.setdefault(signature, len(known) + 1))
        self.size = len(known) + 1
        self._masks = dict.fromkeys(found, 0)
        for signature, label in known.items():
            for chars, inside in zip(found, signature):
                if inside:
                    self._masks[chars] |= 1 << label

    def mask(self, chars: CharSet) -> int:
        """The classes of one of the sets, as bits."""
        return self._masks[chars]

    def expand(
        self, rows: Sequence[Sequence[Range]], limit: int, absorbing: int | None = None
    ) -> list[list[Range]]:
        """An automaton over classes (ranges of classes) as one over bytes.

        States keep their numbers, those inside of characters come behind them.  Where every
        continuation of a character leads to `absorbing`, its first byte does.  Raises
        TooManyStatesError for more than `limit` states.
        """
        result: list[list[Range]] = [[] for _ in rows]
        inner: dict[_Node, int] = {}
        known: dict[tuple[int, ...], dict[int, int]] = {}
        for state, row in enumerate(rows):
            targets = [-1] * self.size
            for first, last, target in row:
                for label in range(first, min(last, self.size - 1) + 1):
                    targets[label] = target
            low = [(a, b, targets[label]) for a, b, label in self._low if targets[label] >= 0]
            high = tuple([targets[label] for label in self._high])
            found = known.get(high)
            if found is None:
                found = known[high] = {}
                self._inner(high, found, inner, result, absorbing, limit)
            other = targets[INVALID]
            at = _FIRST
            for first, last, child in self._nodes[-1]:
                if other >= 0 and at < first:
                    low.append((at, first - 1, other))
                at = last + 1
                target = found[child] if child >= 0 else high[~child]
                if target >= 0:
                    low.append((first, last, target))
            if other >= 0:
                low.append((at, 255, other))
            result[state] = merge_ranges(low)
        return result

    def _inner(
        self,
        high: tuple[int, ...],
        found: dict[int, int],
        inner: dict[_Node, int],
        result: list[list[Range]],
        absorbing: int | None,
        limit: int,
    ) -> None:
        """The states of all nodes but the root, children first, for targets of the classes."""
        for at, node in enumerate(self._nodes[:-1]):
            edges = [
                (first, last, found[child] if child >= 0 else high[~child])
                for first, last, child in node
            ]
            if absorbing is not None and all(edge[2] == absorbing for edge in edges):
                found[at] = absorbing
                continue
            row = tuple(merge_ranges([edge for edge in edges if edge[2] >= 0]))
            if not row:
                found[at] = -1
                continue
            state = inner.get(row)
            if state is None:
                state = inner[row] = len(result)
                result.append(list(row))
                if state >= limit:
                    raise TooManyStatesError
            found[at] = state


@lru_cache(maxsize=4096)
def _low(chars: CharSet) -> int:
    """The ASCII characters of a set as bits."""
    mask = 0
    for first, last in zip(chars[::2], chars[1::2]):
        if first >= _FIRST:
            break
        mask |= (1 << min(last + 1, _FIRST)) - (1 << first)
    return mask


@lru_cache(maxsize=1024)
def _high(chars: CharSet) -> CharSet:
    """The set without ASCII."""
    found: list[int] = []
    for first, last in zip(chars[::2], chars[1::2]):
        if last >= _FIRST:
            found += (max(first, _FIRST), last)
    return tuple(found)


@lru_cache(maxsize=64)
def _trees(sets: tuple[CharSet, ...]) -> tuple[list[int], list[_Node]]:
    """Classes above ASCII, each as the sets (bits) that have it; the nodes of the tree over them.

    Children come before their parents, the root is the last node.  A child is the number of a node,
    or the complement of that of a class where the character ends.
    """
    changes: dict[int, int] = {_FIRST: 0}
    for bit, chars in enumerate(sets):
        for first, last in zip(chars[::2], chars[1::2]):
            changes[first] = changes.get(first, 0) ^ 1 << bit
            changes[last + 1] = changes.get(last + 1, 0) ^ 1 << bit
    points = sorted(changes)
    known: dict[int, int] = {}
    spelled: list[tuple[tuple[tuple[int, int], ...], int]] = []
    member = 0
    for at, point in enumerate(points):
        member ^= changes[point]
        end = points[at + 1] - 1 if at + 1 < len(points) else MAX_CODE_POINT
        if point <= end:
            label = known.setdefault(member, len(known))
            spelled.extend((sequence, label) for sequence in sequences((point, end)))
    nodes: list[_Node] = []
    ids: dict[_Node, int] = {}

    def build(found: list[tuple[tuple[tuple[int, int], ...], int]], depth: int) -> int:
        groups: dict[tuple[int, int], list[tuple[tuple[tuple[int, int], ...], int]]] = {}
        for one in found:
            groups.setdefault(one[0][depth], []).append(one)
        edges = []
        for (first, last), rest in sorted(groups.items()):
            ended = len(rest[0][0]) == depth + 1
            edges.append((first, last, ~rest[0][1] if ended else build(rest, depth + 1)))
        node = tuple(merge_ranges(edges))
        number = ids.get(node)
        if number is None:
            number = ids[node] = len(nodes)
            nodes.append(node)
        return number

    build(spelled, 0)
    return list(known), nodes
