"""What a grammar is after parsing and before any transformation.

A grammar is a set of named rules over terminals.  The body of a rule is an expression, nested
tuples::

    ("term", number of a terminal)
    ("rule", name)
    ("seq", expressions)
    ("alt", expressions)
    ("repeat", expression, least, most or None)

A terminal is a language over bytes that is read as one lexeme.  It is an automaton whose states may
end the lexeme *under an obligation* on what follows it: lookahead, or the rule that an ignored
terminal takes the longest match.  In the place of a terminal may stand an embedded program
(`Embedded`), whose texts another machine reads.  Only recognition matters; names are for messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from constrain.grammar.automata import Range
from constrain.program import Program

__all__ = [
    "ANYTHING",
    "EMPTY",
    "NOTHING",
    "Embedded",
    "Expression",
    "Grammar",
    "Obligations",
    "Terminal",
]

Expression = tuple[Any, ...]

EMPTY: Expression = ("seq", ())
"""The empty text."""

NOTHING: Expression = ("alt", ())
"""No text."""

ANYTHING = 0
"""The obligation that every continuation meets."""


@dataclass(frozen=True, slots=True)
class Obligations:
    """Deterministic automata of what may follow.

    State 0 is met by everything.  `rows[state]` has the ranges of bytes that may follow; a byte
    without a range breaks the obligation.  `at_end[state]`: the text may end here.
    """

    rows: tuple[tuple[Range, ...], ...] = ((),)
    at_end: tuple[bool, ...] = (True,)


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal's automaton: no lexeme is empty, and state 0 has no incoming edge.

    `ends[state]` is None inside a lexeme, else the obligation (a state of `obligations`) under
    which the lexeme may end here.  `text` is the only lexeme of a terminal that has just one.
    """

    name: str
    rows: tuple[tuple[Range, ...], ...]
    ends: tuple[int | None, ...]
    obligations: Obligations = field(default_factory=Obligations)
    text: bytes | None = None

    @property
    def empty(self) -> bool:
        """There is no lexeme."""
        return all(end is None for end in self.ends)


@dataclass(frozen=True, slots=True, eq=False)
class Embedded:
    """A program of kind "json" in the place of a terminal; none of its texts is empty."""

    name: str
    program: Program

    @property
    def empty(self) -> bool:
        """Whether it has texts is for its machine to decide."""
        return False


@dataclass(slots=True)
class Grammar:
    """Rules, terminals and the start rule.

    `skips[terminal]`: the (ignored) terminals of which any number may stand behind a terminal.
    """

    rules: dict[str, Expression]
    terminals: list[Terminal | Embedded]
    start: str
    skips: dict[int, tuple[int, ...]] = field(default_factory=dict)
