"""The prompt of a command: an argument, or standard input."""

from __future__ import annotations

import sys

from constrain.cli._errors import CliError
from constrain.cli._json import JsonInputError, decode_utf8

__all__ = ["read_prompt"]


def read_prompt(given: str) -> str:
    """The prompt; "-" is standard input, as UTF-8.  Raises CliError."""
    if given != "-":
        return given
    try:
        return decode_utf8(sys.stdin.buffer.read()).rstrip("\n")
    except JsonInputError as error:
        raise CliError(f"standard input: {error}") from error
