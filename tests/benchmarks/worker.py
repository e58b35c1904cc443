"""One engine in a process of its own, which its master may kill.

The master (`Worker`) sends schemas and gets a `Result` for each. A schema that takes longer than
its time, or that ends the process, is a result as well; the process is then started again.
"""

from __future__ import annotations

import gc
import multiprocessing
import resource
import signal
import sys
import time
import traceback
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import Any

from tests.benchmarks import engines
from tests.benchmarks.measuring import CLOCKS, Result, measure_schema, run_on, settle
from tests.benchmarks.timing import WARM_UP
from tests.reference import vocabularies
from tests.reference.data import BenchSchema

_CONTEXT = multiprocessing.get_context("spawn")
_START_LIMIT_S = 300.0
_END_LIMIT_S = 10.0


class UnavailableError(Exception):
    """The engine cannot be run here; the message says what is missing."""


class Worker:
    """The master's side of an engine.

    Args:
        engine: a name of `engines.ENGINES`, or ``module:Class``.
        vocabulary: its name, as `tests.reference.vocabularies` has it.
        options: of constrain's `JsonSchema`; the other engines ignore them.
        core: which core it runs on.
        clock: "wall" or "cpu".
        warm: whether to measure warm masks as well.
        timeout: seconds for each schema, compilation and all instances together.
        memory: bytes of address space that it may take beyond what it takes at its start.

    Raises:
        UnavailableError: it cannot be started.
    """

    def __init__(
        self,
        engine: str,
        vocabulary: str,
        *,
        options: dict[str, Any] | None = None,
        core: int | None = None,
        clock: str = "wall",
        warm: bool = True,
        timeout: float = 30.0,
        memory: int = 8 << 30,
    ) -> None:
        self.engine = engine
        self.timeout = timeout
        self.peak_memory = 0
        self.seconds = 0.0
        self.cpu_seconds = 0.0  # of what it answered
        self.restarts = -1
        self._arguments = (engine, vocabulary, options or {}, core, clock, warm, memory)
        self._start()

    def measure(self, bench: BenchSchema) -> Result:
        """The result for one schema."""
        begin = time.monotonic()
        try:
            self._connection.send(bench)
            if self._connection.poll(self.timeout):
                answer, spent, self.peak_memory = self._connection.recv()
                self.cpu_seconds += spent
                return Result(**answer)
            status, error = "timeout", f"no answer within {self.timeout:g} s"
        except (EOFError, OSError):
            self._process.join(_END_LIMIT_S)
            status, error = "crash", f"the process ended with {self._process.exitcode}"
        finally:
            self.seconds += time.monotonic() - begin
        self.close()
        self._start()
        return Result(bench.name, status, error, instances=len(bench.tests))

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.kill()
        self._process.join(_END_LIMIT_S)

    def _start(self) -> None:
        self.restarts += 1
        self._connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(
            target=_serve, args=(theirs, *self._arguments), daemon=True
        )
        self._process.start()
        theirs.close()
        message: dict[str, Any] = {"unavailable": f"it did not start within {_START_LIMIT_S:g} s"}
        try:
            if self._connection.poll(_START_LIMIT_S):
                message = self._connection.recv()
        except EOFError:
            message = {"unavailable": "its process died while it started"}
        if "unavailable" in message:
            self.close()
            raise UnavailableError(message["unavailable"])
        self.version, self.settings = message["version"], message["settings"]


def _serve(
    connection: Connection,
    name: str,
    vocabulary_name: str,
    options: dict[str, Any],
    core: int | None,
    clock: str,
    warm: bool,
    memory: int,
) -> None:
    """The engine's side: answer until the master hangs up."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the master's business
    sys.setrecursionlimit(20_000)
    run_on(core)
    try:
        vocabulary = vocabularies.load(vocabulary_name)
        engine = engines.load(name)(vocabulary, options)
        measure_schema(engine, WARM_UP, vocabulary)
    except ImportError as error:
        connection.send({"unavailable": f"{error} (pip install {name})"})
        return
    except Exception as error:
        connection.send({"unavailable": f"{type(error).__name__}: {error}"})
        return
    _limit_memory(memory)
    settle()
    connection.send({"version": engine.version, "settings": engine.settings})
    while True:
        try:
            bench = connection.recv()
        except EOFError:
            return
        gc.collect()  # here, not when it is another engine's turn
        begin = time.process_time()
        try:
            result = measure_schema(engine, bench, vocabulary, clock=CLOCKS[clock], warm=warm)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # engines in Rust raise their panics as such
            frame = traceback.extract_tb(error.__traceback__)[-1].name
            reason = f"{type(error).__name__} in {frame}: {error}"
            result = Result(bench.name, "crash", reason[:300], instances=len(bench.tests))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        connection.send((asdict(result), time.process_time() - begin, peak))
        del result


def _limit_memory(more: int) -> None:
    """Bound the address space at what is taken now and `more` bytes."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + more, hard))
