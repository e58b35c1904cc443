"""Terminals from Python regular expressions, with the lexemes that Lark would find.

At a position of the text Lark takes the match ``m`` that `re` finds there, and then the matches
that `re` finds in every shorter prefix of ``m`` (``lexer="dynamic_complete"``).  So what a terminal
can be depends on the order in which `re` tries alternatives (``a|ab`` is never "ab") and, with
lookahead, on the text behind the lexeme.  For an ignored terminal only ``m`` itself counts.

We simulate `re`: a state is the list of its threads in order of priority, where a thread that
matched cuts those below it.  Lookahead is a set of threads that a thread carries: an obligation,
which every byte reduces.  This gives two automata:

* over the bytes of the lexeme (`_Lexemes.forward`);
* from each of its states over the bytes *behind* the lexeme (`_Lexemes.behind`), where we watch
  whether ``m``, or a match in a prefix of ``m``, is the lexeme.  Without lookahead everything
  behind is fine for an ordinary terminal, and nothing is simulated.

Lookbehind sees one character, inside of the terminal; at the start of a terminal it would depend on
what was read before, and is refused by name, as are backreferences, atomic groups and possessive
quantifiers.  `$` and `\\b` are kinds of lookahead here.

Cost: states times ranges of bytes; a limit bounds the states.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from constrain.errors import LimitExceededError, RegexError
from constrain.grammar.automata import Range, merge_ranges, row_classes
from constrain.grammar.ir import ANYTHING, Obligations, Terminal
from constrain.grammar.partition import Numbers, live_states
from constrain.grammar.regex_threads import GHOST, MATCH, Threads
from constrain.grammar.utf8 import byte_rows
from constrain.regex.charsets import CharSet

__all__ = [
    "chars_terminal",
    "literal_terminal",
    "minimal_terminal",
    "regex_terminal",
    "whole_terminal",
]

_MAX_STATES = 20_000
_FAIL = -1

# How a match of the run over the whole text relates to the lexeme that we ask about.
_OTHER, _LEXEME, _LONGER = 0, 1, 2


def literal_terminal(name: str, text: bytes) -> Terminal:
    """The terminal whose only lexeme is `text`, which is not empty."""
    rows: list[tuple[Range, ...]] = [((byte, byte, at + 1),) for at, byte in enumerate(text)]
    return Terminal(name, (*rows, ()), (*(None for _ in text), ANYTHING), text=text)


@lru_cache(maxsize=1024)
def chars_terminal(name: str, chars: CharSet) -> Terminal:
    """The terminal of the code points of a set, one at a time."""
    rows = tuple(tuple(row) for row in byte_rows(chars))
    return Terminal(name, rows, tuple(ANYTHING if s == 1 else None for s in range(len(rows))))


@lru_cache(maxsize=1024)
def regex_terminal(name: str, pattern: str, flags: int = 0, *, ignored: bool = False) -> Terminal:
    """The terminal of a pattern of Python's `re`.

    Raises RegexError (malformed), UnsupportedError (named features, see above) and
    LimitExceededError (more than 20,000 states).
    """
    lexemes = _Lexemes(_threads(pattern, flags), complete=not ignored)
    return lexemes.terminal(name)


@lru_cache(maxsize=1024)
def whole_terminal(pattern: str, flags: int, limit: int = _MAX_STATES) -> tuple[Terminal, bool]:
    """The texts that ``re.fullmatch`` accepts, the empty one left out, and whether that is one.

    Everything around the text is out of sight: anchors and lookaheads speak of the text alone.
    Raises what `regex_terminal` raises; LimitExceededError for more than `limit` states.
    """
    threads = _threads(pattern, flags, whole=True)
    start = threads.start()
    # A state: the threads in no order, and the context.
    order: list[Any] = [(frozenset(start[0]), start[1])]
    ids: dict[Any, int] = {}
    rows: list[list[Range]] = []
    for state in order:
        row: list[Range] = []
        for first, last in threads.ranges(state):
            target = threads.step_all(state, first)
            if not target[0]:
                continue
            number = ids.get(target)
            if number is None:
                number = ids[target] = len(order)
                order.append(target)
                if number >= limit:
                    raise _too_large(pattern, limit)
            row.append((first, last, number))
        rows.append(merge_ranges(row))
    ends = [threads.matched(state) for state in order]
    begins = [None, *(ANYTHING if end else None for end in ends[1:])]
    return minimal_terminal(f"/{pattern}/", rows, begins), ends[0]


def _threads(pattern: str, flags: int, *, whole: bool = False) -> Threads:
    try:
        return Threads(pattern, flags, whole=whole)
    except re.error as error:
        raise RegexError(error.msg, pattern=pattern, position=error.pos) from error
    except OverflowError as error:
        raise LimitExceededError(
            "regular expression: a repeat is too long", limit="repeat"
        ) from error
    except RecursionError as error:
        raise LimitExceededError("regular expression: nesting too deep", limit="nesting") from error


def _too_large(pattern: str, limit: int, what: str = "") -> LimitExceededError:
    return LimitExceededError(
        f"the terminal {pattern!r} needs more than {limit} states{what}", limit="terminal_states"
    )


class _Lexemes:
    def __init__(self, threads: Threads, *, complete: bool) -> None:
        self.threads = threads
        self.complete = complete
        self.rows: list[list[Range]] = []
        self.states: list[Any] = []

    # -- over the lexeme -----------------------------------------------------------------------

    def forward(self) -> None:
        """The reachable states of the simulation; state 0 is not entered again."""
        threads = self.threads
        start = threads.start()
        ids: dict[Any, int] = {}
        order: list[Any] = [start]
        for state in order:
            row: list[Range] = []
            for first, last in threads.ranges(state):
                target = threads.step(state, first)
                if not target[0]:
                    continue
                number = ids.get(target)
                if number is None:
                    number = ids[target] = len(order)
                    order.append(target)
                    if number >= _MAX_STATES:
                        raise _too_large(threads.pattern, _MAX_STATES)
                row.append((first, last, number))
            self.rows.append(merge_ranges(row))
        self.states = order

    # -- behind the lexeme ---------------------------------------------------------------------
    #
    # A state: (tagged threads in order, context, whether a prefix had the lexeme as its match).

    def behind_start(self, state: Any) -> Any:
        tagged = tuple((*t, _LEXEME if t[0] == MATCH else _OTHER) for t in state[0])
        return self._settle(tagged, state[1], False)

    def _settle(self, tagged: tuple[Any, ...], context: Any, found: bool) -> Any:
        if self.complete and not found and self.threads.at_boundary(context):
            found = self._winner(tagged) == _LEXEME
        return tagged, context, found

    def _winner(self, tagged: tuple[Any, ...]) -> int | None:
        """The match if the text ended here."""
        for pc, _, obligations, tag in tagged:
            if pc <= MATCH and self.threads.at_end(obligations):
                return tag
        return None

    def behind_step(self, state: Any, byte: int) -> Any:
        """The next state, True or False once it is decided."""
        tagged, context, found = state
        threads = self.threads
        parts = []
        seen: set[Any] = set()
        after = threads.next_context(context, byte)
        done = False
        for pc, node, obligations, tag in tagged:
            if pc <= MATCH and not obligations:
                # It holds, whatever comes: the match unless a thread above matches.
                parts.append((GHOST, None, obligations, tag))
                done = True
                break
            for thread in threads.step_thread((pc, node, obligations), byte, after):
                if thread in seen:
                    continue
                seen.add(thread)
                ended = thread[0] <= MATCH
                if ended and pc > MATCH:
                    label = _LONGER if found else _OTHER
                else:
                    label = tag
                parts.append((*thread, label))
                if ended and not thread[2]:
                    done = True
                    break
            if done:
                break
        if not parts:
            return False
        if done and len(parts) == 1:
            return parts[0][3] != _OTHER
        return self._settle(tuple(parts), after, found)

    def behind(self) -> tuple[list[int], Obligations]:
        """Per state of the lexeme its obligation (_FAIL: no lexeme ends here), and the automaton."""
        ids: dict[Any, int] = {True: 0, False: 1}
        order: list[Any] = [True, False]
        rows: list[list[Range]] = [[], []]

        def number(state: Any) -> int:
            found = ids.get(state)
            if found is None:
                found = ids[state] = len(order)
                order.append(state)
                if found >= _MAX_STATES:
                    raise _too_large(self.threads.pattern, _MAX_STATES, " for what may follow it")
            return found

        begins: list[int] = []
        for at, state in enumerate(self.states):
            # A match of the state itself is what decides; without one no lexeme can end here.
            if at == 0 or not any(thread[0] == MATCH for thread in state[0]):
                begins.append(1)
                continue
            begins.append(number(self._decided(self.behind_start(state))))
        at = 2
        while at < len(order):
            state = order[at]
            row = [
                (first, last, number(self._decided(self.behind_step(state, first))))
                for first, last in self.threads.all_ranges(state[0], state[1])
            ]
            rows.append(merge_ranges(row))
            at += 1
        ends = [True, False]
        ends += [self._winner(state[0]) in (_LEXEME, _LONGER) for state in order[2:]]
        return _minimal(begins, rows, ends)

    def _decided(self, state: Any) -> Any:
        """Threads at the head that matched for good decide."""
        if isinstance(state, bool):
            return state
        first = state[0][0]
        if first[0] <= MATCH and not first[2]:
            return first[3] != _OTHER
        return state

    # -- both ----------------------------------------------------------------------------------

    def terminal(self, name: str) -> Terminal:
        """The minimal automaton."""
        self.forward()
        if self.complete and not self.threads.looks_ahead:
            begins = [
                ANYTHING if at and any(t[0] == MATCH for t in state[0]) else _FAIL
                for at, state in enumerate(self.states)
            ]
            obligations = Obligations()
        else:
            begins, obligations = self.behind()
        ends = [None if end == _FAIL else end for end in begins]
        return minimal_terminal(name, self.rows, ends, obligations)


def _minimal(
    begins: Sequence[int], rows: list[list[Range]], ends: list[bool]
) -> tuple[list[int], Obligations]:
    """Minimises the automaton of obligations; 0 is always met, _FAIL never."""
    rows = [[(0, 255, 0)], [(0, 255, 1)], *rows[2:]]
    # What can never be met any more is broken: kept, it would be a dead end.
    met = [0, *(state for state, end in enumerate(ends) if end)]
    live = live_states(met, [[target for _, _, target in row] for row in rows])
    rows = [[(a, b, t if t in live else 1) for a, b, t in row] for row in rows]
    begins = [state if state in live else 1 for state in begins]
    number = Numbers(row_classes([int(e) for e in ends], rows))
    number(0)
    number(1)

    def rename(state: int) -> int:
        # What is never met has no number of its own.
        found = number(state)
        return found if found == 0 else found - 1 or _FAIL

    starts = [rename(state) for state in begins]
    result: list[tuple[Range, ...]] = [()]
    at = 2
    while at < len(number.order):
        row = [(a, b, rename(t)) for a, b, t in rows[number.order[at]]]
        result.append(tuple(r for r in merge_ranges(row) if r[2] != _FAIL))
        at += 1
    at_end = [ends[state] for state in number.order]
    return starts, Obligations(tuple(result), (at_end[0], *at_end[2:]))


def minimal_terminal(
    name: str,
    rows: Sequence[Sequence[Range]],
    ends: Sequence[int | None],
    obligations: Obligations | None = None,
) -> Terminal:
    """The terminal of an automaton whose start nothing enters: minimal and trim."""
    live = live_states(
        (state for state, end in enumerate(ends) if end is not None),
        [[target for _, _, target in row] for row in rows],
    )
    obligations = obligations or Obligations()
    if 0 not in live:
        return Terminal(name, ((),), (None,), obligations)
    if len(live) < len(rows):
        rows = [[r for r in row if r[2] in live] if s in live else [] for s, row in enumerate(rows)]
    # The start is a class of its own, so that nothing enters it; so are states that lead nowhere.
    kinds = [2 if end is None else end + 3 for end in ends]
    labels = [0, *(kinds[s] if s in live else 1 for s in range(1, len(rows)))]
    number = Numbers(row_classes(labels, rows))
    number(0)
    result = [
        tuple(merge_ranges([(a, b, number(t)) for a, b, t in rows[state]]))
        for state in number.order
    ]
    return Terminal(name, tuple(result), tuple(ends[s] for s in number.order), obligations)
