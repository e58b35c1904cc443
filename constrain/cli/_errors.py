"""Exit codes of the `constrain` command and the error that carries one.

A command reports a failure by raising `CliError` with a complete sentence that names the place
(file, line, column, JSON pointer or byte offset).  ``main`` prints it as ``constrain: error: ...``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from constrain.errors import ConstrainError, GrammarError, GrammarWarning

__all__ = ["CliError", "ExitCode", "os_reason", "placed", "told_warnings"]


class ExitCode(IntEnum):
    """What the exit codes mean, for scripts."""

    OK = 0
    FAILED = 1  # some record failed, `check` found an error, or an output was cut off
    USAGE = 2  # the command line itself is wrong (argparse uses the same number)
    BAD_INPUT = 3  # something named on the command line cannot be read, used or written
    INTERNAL = 70  # a defect of constrain (EX_SOFTWARE)
    INTERRUPTED = 130  # Ctrl-C
    BROKEN_PIPE = 141  # the reader of standard output went away, as other commands report it


class CliError(Exception):
    """A failure that ends the command with `code`; the message is a sentence for the user."""

    def __init__(self, message: str, code: ExitCode = ExitCode.BAD_INPUT) -> None:
        super().__init__(message)
        self.code = code


def os_reason(error: OSError) -> str:
    """The operating system's own words ("No such file or directory"), without the errno."""
    return error.strerror or str(error) or type(error).__name__


def placed(name: str, error: ConstrainError) -> str:
    """An error of the input `name` as a sentence; compilers' FILE:LINE:COLUMN where they are known."""
    if isinstance(error, GrammarError) and error.line is not None:
        return f"{error.file or name}:{error.line}:{error.column}: {error.message}"
    return f"{name}: {error}"


@contextmanager
def told_warnings(name: str) -> Iterator[None]:
    """Warnings about the grammar `name` as lines on standard error."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", GrammarWarning)
        yield
    for warning in found:
        if issubclass(warning.category, GrammarWarning):
            sys.stderr.write(f"constrain: warning: {name}: {warning.message}\n")
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
