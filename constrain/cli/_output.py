"""Standard output, and the output of `extract`: whole lines only, resumed where a run stopped.

Invariants:

* A line goes out in one ``write`` of an unbuffered descriptor.  If the system takes only a part of
  it (a full disk, Ctrl-C in between), the file is cut back to the end of the line before, so a
  regular file never ends in part of a line unless the process was killed inside the call.
* `resume` reads an earlier output, drops a torn last line, and refuses a file that `extract` did
  not write, or wrote with another schema, prompt or model: nothing is appended to a foreign file.
* One process writes to a file at a time (an advisory lock where the platform has one).
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from constrain.cli._errors import CliError, os_reason

__all__ = ["Finished", "LineWriter", "open_output", "read_finished", "write_text"]

_LINE_START = b'{"record": '


@dataclass(frozen=True, slots=True)
class Finished:
    """What a line of an earlier output says of its record."""

    digest: str
    line: int
    failed: bool


class LineWriter:
    """Writes whole lines to a file descriptor.

    A failing write raises CliError that names the output (BrokenPipeError passes through), after
    cutting a regular file back to whole lines.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        self._descriptor = descriptor
        self._name = name
        self.lines = 0

    def write(self, line: str) -> None:
        """Write `line` (without its newline) and nothing less."""
        data = line.encode("utf-8") + b"\n"
        end = self._end()
        done = 0
        try:
            while done < len(data):
                done += os.write(self._descriptor, data[done:])
        except BaseException as error:
            if done < len(data) and end is not None:
                os.ftruncate(self._descriptor, end)
                os.lseek(self._descriptor, end, os.SEEK_SET)
            if isinstance(error, OSError) and not isinstance(error, BrokenPipeError):
                raise CliError(f"cannot write to {self._name}: {os_reason(error)}") from error
            raise
        self.lines += 1

    def truncate(self) -> None:
        """Empty the output, for a run that replaces it."""
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)

    def _end(self) -> int | None:
        """Where the next write begins, if this is a regular file that ends there."""
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            return None
        if os.lseek(self._descriptor, 0, os.SEEK_CUR) != status.st_size and not _appends(
            self._descriptor
        ):
            return None
        return status.st_size


def write_text(text: str) -> None:
    """Write `text` to standard output as UTF-8, at once.  Raises CliError if it cannot be."""
    try:
        sys.stdout.buffer.write(text.encode("utf-8"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise CliError(f"cannot write to standard output: {os_reason(error)}") from error


@contextmanager
def open_output(path: str, *, overwrite: bool, resume: bool) -> Iterator[tuple[LineWriter, int]]:
    """Open the output file; gives the writer and the descriptor (also readable, for resuming).

    Content that is to be overwritten stays until `LineWriter.truncate`.  A new file that nothing
    was written to is removed at the end.  Raises CliError if the file has content and neither
    `overwrite` nor `resume` is given, if another process writes to it, or if it cannot be opened.
    """
    created = not os.path.lexists(path)
    try:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)  # binary: a flag of Windows
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        raise CliError(f"cannot write to {path}: {os_reason(error)}") from error
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode):
            _lock(descriptor, path)
            if status.st_size and not (overwrite or resume):
                raise CliError(
                    f"{path} exists already; add --resume to finish it or --overwrite to start anew"
                )
        elif resume:
            raise CliError(f"{path} is not a regular file, so a run cannot be resumed from it")
        yield LineWriter(descriptor, path), descriptor
    finally:
        unused = created and not os.fstat(descriptor).st_size
        os.close(descriptor)
        if unused:
            os.unlink(path)


def read_finished(descriptor: int, path: str, run: str) -> dict[tuple[str, int], Finished]:
    """The records that an earlier run has written, by (file, number); drops a torn last line.

    `run` is the fingerprint of this run's schema, prompt and model.  Leaves the descriptor at the
    end of the file.  Raises CliError, with the file untouched, if a line was not written by
    `extract`, or by a run with another fingerprint.
    """
    finished: dict[tuple[str, int], Finished] = {}
    end = 0
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                if not (line.startswith(_LINE_START) or _LINE_START.startswith(line)):
                    raise _foreign(path, number)
                break
            key, entry = _entry(line, path, number, run)
            if key in finished:
                raise CliError(
                    f"{path}, line {number}: record {key[1]} of {key[0]} was written before, "
                    f"in line {finished[key].line}; use --overwrite or another --output"
                )
            finished[key] = entry
            end += len(line)
    os.ftruncate(descriptor, end)
    os.lseek(descriptor, end, os.SEEK_SET)
    return finished


def _entry(line: bytes, path: str, number: int, run: str) -> tuple[tuple[str, int], Finished]:
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise _foreign(path, number) from None
    if not isinstance(value, dict):
        raise _foreign(path, number)
    record, file, digest = value.get("record"), value.get("file"), value.get("sha256")
    if not (isinstance(record, int) and isinstance(file, str) and isinstance(digest, str)):
        raise _foreign(path, number)
    if value.get("run") != run:
        raise CliError(
            f"{path}, line {number}: written with another schema, prompt or model; "
            "use --overwrite or another --output"
        )
    return (file, record), Finished(digest, number, "error" in value)


def _foreign(path: str, number: int) -> CliError:
    return CliError(
        f"{path}, line {number}: not a line that `constrain extract` wrote; the file is unchanged"
    )


def _appends(descriptor: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return False
    return bool(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND)


def _lock(descriptor: int, path: str) -> None:
    try:
        import fcntl
    except ImportError:
        return  # no advisory locks on this platform
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CliError(f"another process is writing to {path}") from None
    except OSError:
        return  # a file system without locks
