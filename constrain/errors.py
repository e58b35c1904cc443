"""The errors constrain raises.

::

    ConstrainError(ValueError)
    ├── SchemaError          a JSON Schema is malformed            (pointer)
    ├── RegexError           a regular expression is malformed     (pattern, position)
    ├── GrammarError         a grammar is malformed                (line, column, file)
    ├── UnsupportedError     a keyword or feature is not enforced  (feature, pointer)
    ├── UnsatisfiableError   nothing can ever be valid             (pointer)
    ├── LimitExceededError   a limit was reached                   (limit, needed, place)
    ├── TokenizerError       a tokenizer cannot be read exactly    (reason)
    └── TokenRejectedError   a token is not allowed here           (token_id, text, expected)

Every error carries its place in fields, so that callers need not parse messages.  What has no effect
in a grammar is no error but a `GrammarWarning`.
"""

from __future__ import annotations

__all__ = [
    "ConstrainError",
    "GrammarError",
    "GrammarWarning",
    "LimitExceededError",
    "RegexError",
    "SchemaError",
    "TokenRejectedError",
    "TokenizerError",
    "UnsatisfiableError",
    "UnsupportedError",
]


class ConstrainError(ValueError):
    """Base of every error raised by constrain."""


class _PlacedError(ConstrainError):
    """An error at a JSON pointer of a schema ("" is the whole schema, None is unknown)."""

    def __init__(self, message: str, *, pointer: str | None = None) -> None:
        self.message = message
        self.pointer = pointer
        super().__init__(
            message if pointer is None else f"{message} (at {pointer or 'the root'!s})"
        )


class SchemaError(_PlacedError):
    """A JSON Schema is malformed: `pointer` names the place."""


class UnsupportedError(_PlacedError):
    """Something is well formed but not enforced, so it is refused rather than ignored."""

    def __init__(self, message: str, *, feature: str = "", pointer: str | None = None) -> None:
        self.feature = feature
        super().__init__(message, pointer=pointer)


class UnsatisfiableError(_PlacedError):
    """No text can ever satisfy the constraint."""


class RegexError(ConstrainError):
    """A regular expression is malformed at `position` (a code point index) of `pattern`."""

    def __init__(
        self,
        message: str,
        *,
        pattern: str = "",
        position: int | None = None,
        pointer: str | None = None,
    ) -> None:
        self.message = message
        self.pattern = pattern
        self.position = position
        self.pointer = pointer
        where = "" if position is None else f" at position {position} of {pattern!r}"
        place = "" if pointer is None else f" (at {pointer or 'the root'})"
        super().__init__(f"{message}{where}{place}")


class GrammarError(ConstrainError):
    """A grammar is malformed at `line` and `column` (both from 1) of its text, or of `file`."""

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        file: str | None = None,
    ) -> None:
        self.message = message
        self.line = line
        self.column = column
        self.file = file
        where = [] if file is None else [str(file)]
        where += [] if line is None else [f"line {line}, column {column}"]
        super().__init__(f"{message} ({', '.join(where)})" if where else message)


class GrammarWarning(UserWarning):
    """A grammar holds something that has no effect, such as a rule that nothing uses."""


class LimitExceededError(ConstrainError):
    """A limit was reached; `limit` is the name of the parameter that sets it.

    `needed` is a value of that parameter that would do, where one is known: the number of tokens
    of the shortest completion, for a token budget.  Where the place is known that was too much,
    `pointer` is its JSON pointer in a schema, or `line` and `column` (from 1) its place in a text.
    """

    def __init__(
        self,
        message: str,
        *,
        limit: str,
        needed: int | None = None,
        pointer: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.limit = limit
        self.needed = needed
        self.pointer = pointer
        self.line = line
        self.column = column
        if pointer is not None:
            message += f" (at {_short(pointer) or 'the root'})"
        elif line is not None:
            message += f" (line {line}, column {column})"
        super().__init__(message)


def _short(pointer: str) -> str:
    """A pointer for people: what is nested too deeply has a long one."""
    return pointer if len(pointer) <= 200 else f"{pointer[:90]}...{pointer[-90:]}"


class TokenizerError(ConstrainError):
    """A tokenizer whose tokens cannot be read exactly as bytes."""


class TokenRejectedError(ConstrainError):
    """A token that the constraint does not allow here."""

    def __init__(
        self, message: str, *, token_id: int, text: bytes | None = None, expected: str = ""
    ) -> None:
        self.token_id = token_id
        self.text = text
        self.expected = expected
        super().__init__(message)
