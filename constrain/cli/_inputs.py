"""Files named on the command line, and options that exclude each other."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from constrain.cli._errors import CliError, ExitCode, os_reason
from constrain.cli._json import JsonInputError, decode_utf8

__all__ = ["input_name", "read_bytes", "read_text", "require_one"]


def input_name(path: str) -> str:
    """How messages speak of a file; "-" is standard input."""
    return "standard input" if path == "-" else path


def read_bytes(path: str, what: str) -> bytes:
    """The bytes of the file `path` ("-": standard input), which is said to be a `what`."""
    try:
        if path == "-":
            return sys.stdin.buffer.read()
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise CliError(f"cannot read the {what} {path}: {os_reason(error)}") from error


def read_text(path: str, what: str) -> str:
    """The same as text; raises CliError with the place of what is no UTF-8."""
    try:
        return decode_utf8(read_bytes(path, what))
    except JsonInputError as error:
        raise CliError(f"{input_name(path)}: {error}") from error


def require_one(given: Sequence[str], known: Sequence[str], nothing: str) -> None:
    """Raise CliError unless exactly one of the arguments that exclude each other is given.

    Args:
        given: those that are, as users write them.
        known: all of them.
        nothing: the message where there is none.
    """
    if len(given) != 1:
        problem = f"{' and '.join(given)} exclude each other" if given else nothing
        raise CliError(f"{problem}; give one of {', '.join(known)}", ExitCode.USAGE)
