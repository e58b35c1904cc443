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
terminal takes the longest match.  Only recognition matters; names are for messages.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from constrain.grammar.automata import Range

__all__ = ["ANYTHING", "Expression", "Grammar", "Obligations", "Terminal"]

Expression = tuple[Any, ...]

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
    which the lexeme may end here.
    """

    name: str
    rows: tuple[tuple[Range, ...], ...]
    ends: tuple[int | None, ...]
    obligations: Obligations = field(default_factory=Obligations)

    @property
    def empty(self) -> bool:
        """There is no lexeme."""
        return all(end is None for end in self.ends)


@dataclass(slots=True)
class Grammar:
    """Rules, terminals, the start rule, and the terminals that may stand anywhere."""

    rules: dict[str, Expression]
    terminals: list[Terminal]
    start: str
    ignored: list[int] = field(default_factory=list)
