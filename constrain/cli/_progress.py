"""Progress on standard error: a bar where rich and a terminal are at hand, else plain lines.

Plain lines come at most every `_INTERVAL` seconds, so that a log stays short.  Nothing is written
to standard output, which may carry the records.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

__all__ = ["Progress", "say"]

_INTERVAL = 10.0


def say(message: str) -> None:
    """A line on standard error, ``constrain: ...``."""
    sys.stderr.write(f"constrain: {message}\n")
    sys.stderr.flush()


class Progress:
    """Counts records and tokens; use it as a context manager around the run."""

    def __init__(self, total: int, done: int, *, quiet: bool = False) -> None:
        self.total = total
        self.done = done
        self.failed = 0
        self.tokens = 0
        self._quiet = quiet
        self._started = time.monotonic()
        self._said = self._started
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        self._started = self._said = time.monotonic()
        if not self._quiet and sys.stderr.isatty():
            self._open_bar()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def add_tokens(self, count: int) -> None:
        """Count generated tokens, as they come or at the end of a record."""
        self.tokens += count
        self._show()

    def add_record(self, *, failed: bool) -> None:
        """Count a record that was written."""
        self.done += 1
        self.failed += failed
        self._show()

    @property
    def rate(self) -> float:
        """Tokens per second since the run began."""
        return self.tokens / max(time.monotonic() - self._started, 1e-9)

    def summary(self) -> str:
        """ "24 of 24 records, 0 failed, 3120 tokens, 27.9 tokens/s"."""
        return (
            f"{self.done} of {self.total} records, {self.failed} failed, "
            f"{self.tokens} tokens, {self.rate:.1f} tokens/s"
        )

    def _open_bar(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar
        except ImportError:
            return
        self._bar = Bar(
            TextColumn("{task.completed}/{task.total} records"),
            BarColumn(),
            TextColumn("{task.fields[failed]} failed  {task.fields[rate]:.1f} tokens/s"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._bar.start()
        self._task = self._bar.add_task(
            "extract", total=self.total, completed=self.done, failed=0, rate=0.0
        )

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, failed=self.failed, rate=self.rate)
        elif not self._quiet and time.monotonic() - self._said >= _INTERVAL:
            self._said = time.monotonic()
            say(self.summary())
