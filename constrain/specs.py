"""Constraints on whole texts: `Regex` and `Choice`.

Specifications are immutable values, equal by content; `program` gives what a machine executes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from constrain.errors import ConstrainError, UnsatisfiableError
from constrain.program import Program
from constrain.schema import JsonSchema
from constrain.schema.builder import ProgramBuilder

__all__ = ["Choice", "JsonSchema", "Regex"]


@dataclass(frozen=True, slots=True)
class Regex:
    """Texts that match a regular expression as a whole, in the syntax of Python's `re`.

    Args:
        pattern: the expression.
        flags: flags of `re`, as with `re.compile`: IGNORECASE, MULTILINE, DOTALL, VERBOSE, ASCII.

    Raises (by `program`): RegexError with the position; UnsupportedError for what is no regular
    language, as backreferences are.
    """

    pattern: str
    flags: int = 0
    _program: list[Program] = field(
        default_factory=list, init=False, repr=False, compare=False, hash=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, str):
            raise ConstrainError(f"a pattern is a str, found {type(self.pattern).__name__}")
        if isinstance(self.flags, bool) or not isinstance(self.flags, int):
            raise ConstrainError(f"flags are an int, found {type(self.flags).__name__}")

    def program(self) -> Program:
        """The program, compiled on the first call and kept."""
        if not self._program:
            from constrain.regex import compile_python

            builder = ProgramBuilder()
            root = builder.regex(compile_python(self.pattern, int(self.flags)))
            self._program.append(builder.build("text", root))
        return self._program[0]

    def unsatisfiable_error(self) -> UnsatisfiableError:
        """The error for a pattern that is known to match nothing."""
        return UnsatisfiableError(f"no text matches the regular expression {self.pattern!r}")


@dataclass(frozen=True, slots=True, init=False)
class Choice:
    """Exactly one of some texts.

    Args:
        options: the texts, at least one; repetitions do not matter.

    Raises:
        ConstrainError: an option is not a str, or has a lone surrogate, which no text has.
        UnsatisfiableError: there is no option.
    """

    options: tuple[str, ...]

    def __init__(self, options: Iterable[str]) -> None:
        if isinstance(options, (str, bytes)):
            raise ConstrainError("the options are a list of str, not one str")
        try:
            found = tuple(options)
        except TypeError:
            raise ConstrainError(
                f"the options are a list of str, found {type(options).__name__}"
            ) from None
        for index, option in enumerate(found):
            if not isinstance(option, str):
                raise ConstrainError(f"option {index} must be a str, found {type(option).__name__}")
            try:
                option.encode()
            except UnicodeEncodeError:
                raise ConstrainError(
                    f"option {index} has a lone surrogate, which no text can have: {option!r}"
                ) from None
        if not found:
            raise UnsatisfiableError("a choice needs at least one option")
        object.__setattr__(self, "options", tuple(dict.fromkeys(map(str.__str__, found))))

    def program(self) -> Program:
        """The program: one STRINGS node."""
        builder = ProgramBuilder()
        return builder.build("text", builder.one_of_strings(self.options))
