"""Terminals that no pattern describes: sets of texts, ranges of token ids, free text.

All are minimal enough to be written down directly; none needs determinisation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from constrain.errors import LimitExceededError
from constrain.grammar.automata import Range, merge_ranges
from constrain.grammar.ir import ANYTHING, Terminal
from constrain.grammar.terminals import minimal_terminal
from constrain.grammar.tokens import shown_ids
from constrain.grammar.utf8 import byte_rows
from constrain.regex.charsets import ANY
from constrain.vocabulary import MARK_BYTE

if TYPE_CHECKING:
    from constrain.vocabulary import Vocabulary

__all__ = ["free_terminal", "ids_terminal", "set_terminal"]

_MAX_STATES = 100_000


def set_terminal(name: str, texts: Iterable[bytes]) -> Terminal:
    """The terminal whose lexemes are some texts, none of them empty."""
    rows: list[dict[int, int]] = [{}]
    ends: list[int | None] = [None]
    for text in texts:
        state = 0
        for byte in text:
            target = rows[state].get(byte)
            if target is None:
                target = rows[state][byte] = len(rows)
                rows.append({})
                ends.append(None)
            state = target
        ends[state] = ANYTHING
    # States that mean the same are one: from the leaves up, children come after their parents.
    same: dict[object, int] = {}
    kept: dict[int, int] = {}
    for state in range(len(rows) - 1, 0, -1):
        edges = tuple(sorted((byte, kept[target]) for byte, target in rows[state].items()))
        kept[state] = same.setdefault((edges, ends[state]), state)
    order = [0]
    number = {0: 0}
    result: list[tuple[Range, ...]] = []
    for state in order:
        row: list[Range] = []
        for byte, target in sorted(rows[state].items()):
            target = kept[target]
            if target not in number:
                number[target] = len(order)
                order.append(target)
            row.append((byte, byte, number[target]))
        result.append(tuple(merge_ranges(row)))
    return Terminal(name, tuple(result), tuple(ends[state] for state in order))


def ids_terminal(vocabulary: Vocabulary, ranges: Sequence[tuple[int, int]]) -> Terminal:
    """One token of some ranges of ids: its text, or its spelling where it writes none."""
    texts: set[bytes] = set()
    silent: list[tuple[int, int]] = []
    for first, last in ranges:
        for token_id in range(first, last + 1):
            text = vocabulary.tokens[token_id]
            if text is not None:
                if MARK_BYTE not in text:  # no text has it
                    texts.add(text)
            elif silent and silent[-1][1] == token_id - 1:
                silent[-1] = (silent[-1][0], token_id)
            else:
                silent.append((token_id, token_id))
    terminal = set_terminal(f"tokens {shown_ids(ranges)}", sorted(texts))
    if not silent:
        return terminal
    rows = [list(row) for row in terminal.rows]
    ends = list(terminal.ends)
    rows[0] = [*rows[0], (MARK_BYTE, MARK_BYTE, len(rows))]
    _add_ids(rows, ends, silent)
    return Terminal(terminal.name, tuple(map(tuple, rows)), tuple(ends))


def _add_ids(
    rows: list[list[Range]], ends: list[int | None], ranges: Sequence[tuple[int, int]]
) -> None:
    """Adds states that read an id of sorted ranges as three bytes; the first of them is new."""
    known: dict[tuple[tuple[tuple[int, int], ...], int], int] = {}

    def state(pieces: tuple[tuple[int, int], ...], level: int) -> int:
        """A state that reads `level` bytes, a number in one of the pieces."""
        key = (pieces, level)
        found = known.get(key)
        if found is not None:
            return found
        found = known[key] = len(rows)
        rows.append([])
        ends.append(None if level else ANYTHING)
        if level:
            unit = 256 ** (level - 1)
            inner: dict[int, list[tuple[int, int]]] = {}
            for first, last in pieces:
                for byte in range(first // unit, last // unit + 1):
                    base = byte * unit
                    inner.setdefault(byte, []).append(
                        (max(first - base, 0), min(last - base, unit - 1))
                    )
            rows[found] = merge_ranges(
                [(byte, byte, state(tuple(p), level - 1)) for byte, p in sorted(inner.items())]
            )
        return found

    state(tuple(ranges), 3)


# -- free text ---------------------------------------------------------------------------------


class _Occurrences:
    """Where texts occur (Aho and Corasick).

    `moves[state]` has the bytes that do not lead back to state 0, `found[state]` the numbers of the
    texts that end there, and `begun[state]` the code points of the longest beginning of one of the
    first `stops` texts that ends there.
    """

    def __init__(self, texts: Sequence[bytes], stops: int) -> None:
        children: list[dict[int, int]] = [{}]
        self.found: list[set[int]] = [set()]
        self.begun = [0]
        for number, text in enumerate(texts):
            state = 0
            for at, byte in enumerate(text, 1):
                target = children[state].get(byte)
                if target is None:
                    target = children[state][byte] = len(children)
                    children.append({})
                    self.found.append(set())
                    self.begun.append(0)
                state = target
                if number < stops:
                    self.begun[state] = sum(byte & 0xC0 != 0x80 for byte in text[:at])
            self.found[state].add(number)
        self.moves: list[dict[int, int]] = [{} for _ in children]
        self.moves[0] = children[0]
        order = [(state, 0) for state in children[0].values()]
        for state, fail in order:
            self.found[state] |= self.found[fail]
            self.begun[state] = self.begun[state] or self.begun[fail]
            self.moves[state] = {**self.moves[fail], **children[state]}
            order += [
                (after, self.moves[fail].get(byte, 0)) for byte, after in children[state].items()
            ]


@lru_cache(maxsize=256)
def free_terminal(
    name: str, stops: tuple[bytes, ...], excluded: tuple[bytes, ...], max_chars: int | None
) -> Terminal:
    """Text, the empty one left out, in which none of `stops` and `excluded` occurs.

    With `stops`, one of them follows, and ends it: at the first place where one occurs.  Before it
    are at most `max_chars` code points.  All are UTF-8, but for stops that are spellings of tokens
    without text; no stop contains an excluded text.

    Raises LimitExceededError if it needs more than 100,000 states.
    """
    silent = [stop for stop in stops if stop[0] == MARK_BYTE]
    written = [stop for stop in stops if stop[0] != MARK_BYTE]
    occurrences = _Occurrences((*written, *excluded), len(written))
    lengths = [len(stop.decode()) for stop in written]
    characters = [[(a, b, 0 if t == 1 else t) for a, b, t in row] for row in byte_rows(ANY)]
    counted = max_chars is not None
    most = max_chars or 0
    # A state: of the occurrences, within a character, the code points that were read.
    State = tuple[int, int, int]
    ids: dict[State, int] = {}
    order: list[State] = [(0, 0, 0)]  # the start, which is not entered again
    rows: list[list[Range]] = []
    ends: list[int | None] = [None]

    def new(end: int | None) -> int:
        if len(order) >= _MAX_STATES:
            raise LimitExceededError(
                f"{name} needs more than {_MAX_STATES} states", limit="max_chars"
            )
        order.append((-1, -1, -1))
        ends.append(end)
        return len(order) - 1

    tree: list[Range] = []
    finished = -1
    if stops:
        finished = new(ANYTHING)
    extra: dict[int, list[Range]] = {}
    if silent:
        shape = set_terminal(name, silent)
        places = [new(None) for _ in shape.rows]
        for state, row in enumerate(shape.rows):
            extra[places[state]] = [
                (a, b, finished if shape.ends[t] is not None else places[t]) for a, b, t in row
            ]
        tree = extra[places[0]]

    def step(occurrence: int, inside: int, count: int) -> int | None:
        """The state behind a byte, None if there is none."""
        found = occurrences.found[occurrence]
        if inside == 0 and found:
            if max(found) >= len(written):
                return None
            if counted and all(count - lengths[stop] > most for stop in found):
                return None
            return finished
        if inside == 0 and counted and count - occurrences.begun[occurrence] > most:
            return None
        key = (occurrence, inside, count)
        number = ids.get(key)
        if number is None:
            number = ids[key] = new(ANYTHING if inside == 0 and not stops else None)
            order[number] = key
        return number

    at = 0
    while at < len(order):
        occurrence, inside, count = order[at]
        if occurrence < 0:
            rows.append(extra.get(at, []))
            at += 1
            continue
        moves = occurrences.moves[occurrence]
        edges: list[tuple[int, int, int | None]] = []
        for first, last, target in characters[inside]:
            after = count + 1 if counted and target == 0 else count
            byte = first
            for known in sorted(byte for byte in moves if first <= byte <= last):
                if byte < known:
                    edges.append((byte, known - 1, step(0, target, after)))
                edges.append((known, known, step(moves[known], target, after)))
                byte = known + 1
            if byte <= last:
                edges.append((byte, last, step(0, target, after)))
        if inside == 0 and count <= most:
            edges += tree
        rows.append(merge_ranges([(a, b, t) for a, b, t in edges if t is not None]))
        at += 1
    return minimal_terminal(name, rows, ends)
