"""Equivalence of the states of deterministic automata, of whatever kind.

An automaton is given by its successors and a *signature*: what a state can do, in terms of the
classes of its successors.  Cost: about linear where few cycles are alike; else a worklist refinement
that visits a state again only when the class of a successor was split.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Protocol

__all__ = ["Classes", "Numbers", "live_states", "partition"]

_LOOK = 6
"""Steps by which states are told apart before all of them are refined."""


class Classes(Protocol):
    """The class of each state."""

    def __getitem__(self, state: int, /) -> int: ...


Signature = Callable[[int, Classes], Hashable]


def partition(
    classes: list[int], successors: Sequence[Sequence[int]], signature: Signature
) -> list[int]:
    """The coarsest refinement of `classes` (one per state) that `signature` cannot split.

    `signature(state, classes)` is hashable and depends on the classes of `successors[state]` alone.

    States are merged from the leaves up, where a state that closes a cycle stays alone; that is all
    there is to merge unless such a state is like another one, which is found out by refinement.
    """
    order, closing = _postorder(successors)
    merged = [-1] * len(classes)
    for number, state in enumerate(closing):
        merged[state] = number
    known: dict[Hashable, int] = {}
    leaders = list(closing)  # a state of each class
    for state in order:
        if merged[state] < 0:
            key = (classes[state], signature(state, merged))
            found = known.get(key)
            if found is None:
                found = known[key] = len(leaders)
                leaders.append(state)
            merged[state] = found
    if not closing or _tell_apart(classes, leaders, len(closing), signature):
        return merged
    view = _View(merged)
    inner = [[merged[target] for target in successors[state]] for state in leaders]
    refined = _refine([classes[state] for state in leaders], inner, leaders, view, signature)
    return [refined[label] for label in merged]


class _Kinds:
    """What states are like when looked at to some depth: equal states have equal kinds."""

    __slots__ = ("below", "classes", "found", "known", "signature")

    def __init__(self, classes: Sequence[int], signature: Signature, below: _Kinds | None) -> None:
        self.classes = classes
        self.signature = signature
        self.below: Classes = [0] * len(classes) if below is None else below
        self.known: dict[Hashable, int] = {}
        self.found: dict[int, int] = {}

    def __getitem__(self, state: int) -> int:
        found = self.found.get(state)
        if found is None:
            key = (self.classes[state], self.signature(state, self.below))
            found = self.found[state] = self.known.setdefault(key, len(self.known))
        return found


def _tell_apart(
    classes: Sequence[int], states: Sequence[int], count: int, signature: Signature
) -> bool:
    """Whether none of the first `count` states is like another one, as a short look shows."""
    kinds: _Kinds | None = None
    others, ours = list(states), list(states[:count])
    for _ in range(_LOOK):
        kinds = _Kinds(classes, signature, kinds)
        alike: dict[int, int] = {}
        for state in others:
            alike[kinds[state]] = alike.get(kinds[state], 0) + 1
        ours = [state for state in ours if alike[kinds[state]] > 1]
        if not ours:
            return True
        wanted = {kinds[state] for state in ours}
        others = [state for state in others if kinds[state] in wanted]
    return False


class _View:
    """Classes of states by way of the classes of what they were merged to."""

    __slots__ = ("classes", "merged")

    def __init__(self, merged: list[int]) -> None:
        self.merged = merged
        self.classes: list[int] = []

    def __getitem__(self, state: int) -> int:
        return self.classes[self.merged[state]]


def _postorder(successors: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """All states, successors first as far as there is no cycle; and the states by which a search
    in depth finds cycles: without them there is none."""
    order: list[int] = []
    closing: list[int] = []
    # 0: not seen, 1: on the way, 2: on the way and closing a cycle, 3: done
    mark = bytearray(len(successors))
    for root in range(len(successors)):
        if mark[root]:
            continue
        mark[root] = 1
        work = [(root, iter(successors[root]))]
        while work:
            state, edges = work[-1]
            for target in edges:
                if not mark[target]:
                    mark[target] = 1
                    work.append((target, iter(successors[target])))
                    break
                if mark[target] == 1:
                    mark[target] = 2
                    closing.append(target)
            else:
                work.pop()
                mark[state] = 3
                order.append(state)
    return order, closing


def _refine(
    classes: list[int],
    successors: Sequence[Sequence[int]],
    states: Sequence[int],
    view: _View,
    signature: Signature,
) -> list[int]:
    """The refinement for representatives: a worklist of those of which a successor's class was
    split.  `states` are the representatives, `view` is what `signature` sees."""
    predecessors: list[list[int]] = [[] for _ in classes]
    for state, targets in enumerate(successors):
        for target in set(targets):
            predecessors[target].append(state)
    members: dict[int, set[int]] = {}
    for state, label in enumerate(classes):
        members.setdefault(label, set()).add(state)
    classes = view.classes = list(classes)
    fresh = max(members, default=-1) + 1
    dirty: set[int] = set(range(len(classes)))
    while dirty:
        affected: dict[int, list[int]] = {}
        for state in dirty:
            affected.setdefault(classes[state], []).append(state)
        dirty = set()
        moves: list[tuple[int, list[int]]] = []
        for label, touched in affected.items():
            everyone = members[label]
            if len(everyone) == 1:
                continue
            groups: dict[Hashable, list[int]] = {}
            for state in touched:
                groups.setdefault(signature(states[state], view), []).append(state)
            keep: Hashable = None
            if len(touched) < len(everyone):
                # Members that are not dirty all have one signature: that of any of them.
                known = set(touched)
                calm = next(state for state in everyone if state not in known)
                keep = signature(states[calm], view)
            else:
                keep = max(groups, key=lambda key: len(groups[key]))
            for key, group in groups.items():
                if key != keep:
                    moves.append((label, group))
        for label, group in moves:
            members[label].difference_update(group)
            members[fresh] = set(group)
            for state in group:
                classes[state] = fresh
            fresh += 1
        for _, group in moves:
            for state in group:
                dirty.update(predecessors[state])
    return classes


class Numbers:
    """Numbers for classes of states, in the order in which they are first asked for.

    `order` has the first state of each class that was asked for.
    """

    __slots__ = ("_classes", "_known", "order")

    def __init__(self, classes: Sequence[int]) -> None:
        self._classes = classes
        self._known: dict[int, int] = {}
        self.order: list[int] = []

    def __call__(self, state: int) -> int:
        label = self._classes[state]
        found = self._known.get(label)
        if found is None:
            found = self._known[label] = len(self.order)
            self.order.append(state)
        return found


def live_states(finals: Iterable[int], successors: Sequence[Iterable[int]]) -> set[int]:
    """States from which a final one is reached."""
    predecessors: list[list[int]] = [[] for _ in successors]
    for state, targets in enumerate(successors):
        for target in targets:
            predecessors[target].append(state)
    live = set(finals)
    todo = list(live)
    while todo:
        for state in predecessors[todo.pop()]:
            if state not in live:
                live.add(state)
                todo.append(state)
    return live
