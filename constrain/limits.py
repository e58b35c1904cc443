"""Limits on what compiling may cost: set by `constrain.compile`, asked by the front ends.

The limits of the compilation that is under way belong to the thread (a context variable).  Outside
of one, as in ``spec.program()``, the defaults hold.  Loops that may take long call `check`; the
native core looks at the same deadline (``poll.hpp``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

from constrain.errors import LimitExceededError

__all__ = ["MAX_NESTING", "MAX_SECONDS", "MAX_STATES", "applied", "check", "max_nesting", "states"]

MAX_SECONDS = 60.0
MAX_NESTING = 2_000
MAX_STATES = 400_000


class _Limits:
    __slots__ = ("deadline", "nesting", "seconds", "states")

    def __init__(self, seconds: float, nesting: int, states: int) -> None:
        self.seconds = seconds
        self.deadline = math.inf if math.isinf(seconds) else monotonic() + seconds
        self.nesting = nesting
        self.states = states


_DEFAULT = _Limits(math.inf, MAX_NESTING, MAX_STATES)
_current: ContextVar[_Limits | None] = ContextVar("constrain_limits", default=None)


def _now() -> _Limits:
    return _current.get() or _DEFAULT


@contextmanager
def applied(seconds: float, nesting: int, states: int) -> Iterator[None]:
    """Compile under these limits."""
    token = _current.set(_Limits(seconds, nesting, states))
    try:
        yield
    finally:
        _current.reset(token)


def remaining_seconds() -> float:
    """What is left of the time; infinity where it is not limited."""
    return _now().deadline - monotonic()


def check(
    *, pointer: str | None = None, line: int | None = None, column: int | None = None
) -> None:
    """Raise LimitExceededError where the time is up; the place is where the work stands."""
    limits = _now()
    if monotonic() > limits.deadline:
        raise LimitExceededError(
            f"compiling took longer than {limits.seconds:g} seconds",
            limit="max_seconds",
            pointer=pointer,
            line=line,
            column=column,
        )


def max_nesting() -> int:
    """How deep brackets of a schema may be nested."""
    return _now().nesting


def states(builtin: int) -> int:
    """How many states an automaton may need that is refused beyond `builtin` by itself."""
    return min(_now().states, builtin)
