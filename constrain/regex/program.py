"""Regex programs: flat int32 arrays that the core turns into automata.

A program describes a language of whole texts: searching, anchors and flags are already expressed in
it.  Layout, all int32::

    version (1), number of sets, number of nodes,
    sets:  number of intervals, (first, last) * n      sorted, disjoint code point intervals
    nodes: operator, operands                          children before parents; the last is the root

A node may be the child of several parents.

======== ============================ ==============================================================
operator operands                     meaning
======== ============================ ==============================================================
SET      set                          one code point of the set (of an empty set: nothing matches)
SEQ      n, node * n                  one after the other; of none: the empty text
ALT      n, node * n                  any of them; of none: nothing matches
REPEAT   node, least, most (-1: any)  so many times
LOOK     negative (0/1), node         the node matches (does not match) here, and nothing is consumed
BEHIND   set, start (0/1)             the previous code point is in the set, or (if start is 1) there
                                      is none
END                                   the text ends here
AUTOMATON n, state * n                 a text that leads from the first state to a final one; a state
                                      is: final (0/1), n, (set, state) * n, with disjoint sets
======== ============================ ==============================================================

Surrogates may stand in sets, but occur in no text.  Cost: the program of a pattern is linear in the
pattern's length, plus the intervals of the distinct sets that it uses.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from constrain.regex.charsets import ANY, CharSet, complement

__all__ = ["MAX_NESTING", "MAX_REPEAT", "ProgramBuilder"]

VERSION = 1
SET, SEQ, ALT, REPEAT, LOOK, BEHIND, END, AUTOMATON = range(1, 9)

MAX_NESTING = 500
"""Groups nested more deeply are refused."""

MAX_REPEAT = 2**31 - 2
"""No text is longer: a larger upper bound of a repeat is no bound."""


class ProgramBuilder:
    """Collects sets and nodes; every method that makes a node returns its number."""

    def __init__(self) -> None:
        self._sets: dict[CharSet, int] = {}
        self._nodes: array[int] = array("i")
        self._count = 0
        self._memo: dict[object, int] = {}
        self.set_of: dict[int, CharSet] = {}
        """The set of each SET node."""

    def _set_index(self, intervals: CharSet) -> int:
        return self._sets.setdefault(intervals, len(self._sets))

    def _add(self, *words: int) -> int:
        self._nodes.extend(words)
        self._count += 1
        return self._count - 1

    def set(self, intervals: CharSet) -> int:
        """One code point of a normalised set."""
        node = self._memo.get(intervals)
        if node is None:
            node = self._memo[intervals] = self._add(SET, self._set_index(intervals))
            self.set_of[node] = intervals
        return node

    def char(self, code_point: int) -> int:
        """Exactly this code point."""
        node = self._memo.get(code_point)
        if node is None:
            node = self._memo[code_point] = self.set((code_point, code_point))
        return node

    def seq(self, nodes: Sequence[int]) -> int:
        """The nodes one after the other."""
        return nodes[0] if len(nodes) == 1 else self._add(SEQ, len(nodes), *nodes)

    def alt(self, nodes: Sequence[int]) -> int:
        """Any of the nodes."""
        return nodes[0] if len(nodes) == 1 else self._add(ALT, len(nodes), *nodes)

    def repeat(self, node: int, least: int, most: int | None) -> int:
        """The node `least` to `most` times; None is no bound.  `least` is at most MAX_REPEAT."""
        if most is not None and most > MAX_REPEAT:
            most = None
        return self._add(REPEAT, node, least, -1 if most is None else most)

    def look(self, node: int, *, negative: bool) -> int:
        """A lookahead."""
        return self._add(LOOK, int(negative), node)

    def behind(self, intervals: CharSet, *, start: bool) -> int:
        """The previous code point is in the set; `start` is the answer at the start of the text."""
        key = ("behind", intervals, start)
        node = self._memo.get(key)
        if node is None:
            node = self._memo[key] = self._add(BEHIND, self._set_index(intervals), int(start))
        return node

    def end(self) -> int:
        """The end of the text."""
        node = self._memo.get("end")
        if node is None:
            node = self._memo["end"] = self._add(END)
        return node

    def anything(self) -> int:
        """Any text."""
        node = self._memo.get("anything")
        if node is None:
            node = self._memo["anything"] = self.repeat(self.set(ANY), 0, None)
        return node

    def automaton(self, states: Sequence[tuple[bool, Sequence[tuple[CharSet, int]]]]) -> int:
        """A deterministic automaton: per state whether it is final, and its edges."""
        words = [AUTOMATON, len(states)]
        for final, edges in states:
            words += (int(final), len(edges))
            for chars, target in edges:
                words += (self._set_index(chars), target)
        return self._add(*words)

    def boundary(self, word: CharSet, *, negative: bool) -> int:
        """``\\b``: just one of the neighbours here is in `word`; negative: ``\\B``."""
        other = complement(word)
        before = self.behind(word, start=False)
        not_before = self.behind(other, start=True)
        after = self.look(self.set(word), negative=False)
        not_after = self.look(self.set(word), negative=True)
        if negative:
            after, not_after = not_after, after
        return self.alt([self.seq([before, not_after]), self.seq([not_before, after])])

    def finish(self, root: int) -> array[int]:
        """The program whose root is this node."""
        if root != self._count - 1:
            self._add(SEQ, 1, root)
        program = array("i", (VERSION, len(self._sets), self._count))
        for intervals in self._sets:
            program.append(len(intervals) // 2)
            program.extend(intervals)
        program.extend(self._nodes)
        return program
