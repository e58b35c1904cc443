"""Regular expressions and sets of texts as parts of grammars.

A part's language is that of the whole text under the expression: what is around it is out of sight.
An expression becomes one automaton; where that would be too large (``.*a.{20}``), it becomes rules
over its classes of characters instead, which the grammar machine follows in parallel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from constrain.errors import LimitExceededError
from constrain.grammar.builder import GrammarBuilder, one_of, sequence
from constrain.grammar.ir import EMPTY, NOTHING, Expression
from constrain.grammar.terminals import whole_terminal
from constrain.grammar.texts import set_terminal
from constrain.regex.python_syntax import item_chars, sre_constants, sre_parse

__all__ = ["choice_expression", "regex_expression"]

_MAX_STATES = 2_000


def choice_expression(builder: GrammarBuilder, options: Sequence[str]) -> Expression:
    """One of some texts."""
    texts = [option.encode() for option in options if option]
    found = NOTHING
    if texts:
        found = builder.terminal(set_terminal("one of some texts", texts), key=tuple(texts))
    return found if len(texts) == len(options) else ("repeat", found, 0, 1)


def regex_expression(builder: GrammarBuilder, pattern: str, flags: int) -> Expression:
    """The texts that ``re.fullmatch`` accepts.

    Raises RegexError, UnsupportedError and LimitExceededError.
    """
    try:
        terminal, nullable = whole_terminal(pattern, flags, _MAX_STATES)
    except LimitExceededError as error:
        if error.limit != "terminal_states":
            raise
        tree = sre_parse.parse(pattern, flags)
        written = _Written(builder).sequence(list(tree), tree.state.flags)
        if written is not None:
            return written
        terminal, nullable = whole_terminal(pattern, flags)
    found = builder.terminal(terminal)
    return ("repeat", found, 0, 1) if nullable else found


class _Written:
    """A parsed pattern as an expression; None if it looks around."""

    def __init__(self, builder: GrammarBuilder) -> None:
        self.builder = builder

    def sequence(self, items: Sequence[Any], flags: int) -> Expression | None:
        found = []
        for op, argument in items:
            one = self.item(str(op), argument, flags)
            if one is None:
                return None
            found.append(one)
        return sequence(found) if found else EMPTY

    def item(self, op: str, argument: Any, flags: int) -> Expression | None:
        if op in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            return self.builder.chars(item_chars(op, argument, flags), "a class of characters")
        if op == "BRANCH":
            options = [self.sequence(list(tree), flags) for tree in argument[1]]
            return None if None in options else one_of(o for o in options if o is not None)
        if op == "SUBPATTERN":
            _, added, removed, tree = argument
            return self.sequence(list(tree), (flags | added) & ~removed)
        if op in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, tree = argument
            inner = self.sequence(list(tree), flags)
            if inner is None:
                return None
            bound = None if most is sre_constants.MAXREPEAT else int(most)
            return ("repeat", inner, least, bound)
        return None
