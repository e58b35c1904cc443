"""Minimisation of automata against plain refinement, and the spelling of token ids."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from constrain import Vocabulary
from constrain.grammar.automata import ByteDfa
from constrain.grammar.texts import ids_terminal


@st.composite
def _automata(draw: st.DrawFn) -> ByteDfa:
    count = draw(st.integers(1, 9))
    state = st.integers(-1, count - 1)
    rows, special = [], []
    for _ in range(count):
        targets = draw(st.tuples(state, state))
        rows.append([(97 + n, 97 + n, target) for n, target in enumerate(targets) if target >= 0])
        extra = draw(st.sampled_from([-1, -1, -1, 0, count - 1]))
        special.append({7: extra} if extra >= 0 else {})
    finals = draw(st.sets(st.integers(0, count - 1)))
    return ByteDfa(rows, special, finals)


def _plain(dfa: ByteDfa) -> int:
    """States of the minimal trim automaton, by refining until nothing changes."""
    edges = [
        {**{first: target for first, _, target in row}, **{-x: t for x, t in extra.items()}}
        for row, extra in zip(dfa.rows, dfa.special)
    ]
    live = set(dfa.finals)
    while True:
        more = {s for s, row in enumerate(edges) if live.intersection(row.values())} - live
        if not more:
            break
        live |= more
    if 0 not in live:
        return 1
    edges = [{x: t for x, t in row.items() if t in live} for row in edges]
    classes = [int(s in dfa.finals) for s in range(len(edges))]
    while True:
        keys = [
            (classes[s], frozenset((x, classes[t]) for x, t in edges[s].items()))
            for s in range(len(edges))
        ]
        order = {key: n for n, key in enumerate(dict.fromkeys(keys))}
        refined = [order[key] for key in keys]
        if len(set(refined)) == len(set(classes)):
            break
        classes = refined
    seen = {0}
    todo = [0]
    while todo:
        for target in edges[todo.pop()].values():
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return len({classes[s] for s in seen})


def _words(dfa: ByteDfa, length: int) -> set[str]:
    found = set()
    todo = [(0, "")]
    while todo:
        state, word = todo.pop()
        if state in dfa.finals:
            found.add(word)
        if len(word) < length:
            todo += [(t, word + chr(first)) for first, last, t in dfa.rows[state]]
            todo += [
                (t, word + chr(byte))
                for first, last, t in dfa.rows[state]
                for byte in range(first + 1, last + 1)
            ]
            todo += [(t, word + "<") for t in dfa.special[state].values()]
    return found


@settings(max_examples=400, deadline=None)
@given(_automata())
def test_reduced_is_minimal_and_equal(dfa: ByteDfa) -> None:
    reduced = dfa.reduced()
    assert len(reduced.rows) == _plain(dfa)
    assert _words(reduced, 6) == _words(dfa, 6)


_RANGES = st.lists(
    st.tuples(st.integers(0, 70_000), st.integers(0, 70_000)), min_size=1, max_size=3
)
_TEXTLESS = Vocabulary([b"a", *(None for _ in range(70_001))], [70_001])


@settings(max_examples=60, deadline=None)
@given(_RANGES, st.lists(st.integers(0, 70_000), max_size=20))
def test_ranges_of_ids_are_spelled_exactly(
    pairs: list[tuple[int, int]], samples: list[int]
) -> None:
    ranges = tuple(sorted((min(pair), max(pair)) for pair in pairs))
    terminal = ids_terminal(_TEXTLESS, ranges)

    def read(data: bytes) -> bool:
        state = 0
        for byte in data:
            row = [t for first, last, t in terminal.rows[state] if first <= byte <= last]
            if not row:
                return False
            (state,) = row
        return terminal.ends[state] is not None

    edges = [bound + step for pair in ranges for bound in pair for step in (-1, 0, 1)]
    for token_id in (*samples, *edges, 1, 255, 256, 65_535, 65_536):
        if 1 <= token_id <= 70_000:
            inside = any(first <= token_id <= last for first, last in ranges)
            assert read(b"\xff" + token_id.to_bytes(3, "big")) == inside, token_id
    assert read(b"a") == any(first == 0 for first, _ in ranges)
