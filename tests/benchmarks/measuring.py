"""How one engine is measured on one schema, and what numbers come out of many.

Cold, as a server meets them: the schema is compiled afresh and each of its instances is fed once.
Per token the time is that of mask, check and advance together, as MaskBench counts. A text counts
as accepted if each of its tokens is allowed when its turn comes and the end of sequence is allowed
behind it. Afterwards each valid instance is fed again, and its masks are the warm ones.
"""

from __future__ import annotations

import gc
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.engines import CompileError
from tests.reference.data import BenchSchema
from tests.reference.vocabularies import TestVocabulary

Clock = Callable[[], int]
CLOCKS: dict[str, Clock] = {"wall": time.perf_counter_ns, "cpu": time.process_time_ns}
"""Wall time; or the processor time of the process, for machines that do other things as well."""

STATUSES = ("ok", "refused", "timeout", "crash")


@dataclass
class Result:
    """What one engine did with one schema. Times are nanoseconds.

    Attributes:
        status: "ok", "refused" (a typed error), "timeout", or "crash" (the process died, or an
            exception came where none may come).
        compile, matcher, first: from the start until the schema is compiled, until it has a first
            sequence, until that has its first mask.
        mask, token: of each token of each instance: its mask; its mask, check and advance.
        warm, empty: masks of a second sequence with the same text; calls that do nothing.
    """

    schema: str
    status: str = "ok"
    error: str = ""
    compile: int = 0
    matcher: int = 0
    first: int = 0
    mask: list[int] = field(default_factory=list)
    token: list[int] = field(default_factory=list)
    warm: list[int] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    instances: int = 0
    wrong_accept: int = 0
    wrong_reject: int = 0

    @property
    def whole(self) -> int:
        """Compilation, first sequence, and all tokens of all instances."""
        return self.matcher + sum(self.token)

    @property
    def right(self) -> bool:
        """Whether the schema compiles and every instance is judged as its label says."""
        return self.status == "ok" and not self.wrong_accept and not self.wrong_reject


def feed(session: Any, ids: Sequence[int], eos: int, result: Result, clock: Clock) -> bool:
    """Feed one instance; returns whether all of it and the end were allowed."""
    for token in [*ids, eos]:
        start = clock()
        session.mask()
        masked = clock()
        allowed = session.allows(token)
        taken = allowed and token != eos and session.advance(token)
        end = clock()
        result.mask.append(masked - start)
        result.token.append(end - start)
        if not allowed or not (taken or token == eos):
            return False
    return True


def feed_again(session: Any, ids: Sequence[int], result: Result, clock: Clock) -> None:
    """The warm masks of a text that was fed before, each beside a call that does nothing."""
    for token in ids:
        start = clock()
        session.mask()
        masked = clock()
        session.nothing()
        end = clock()
        result.warm.append(masked - start)
        result.empty.append(end - masked)
        if not session.advance(token):
            return


def measure_schema(
    engine: Any,
    bench: BenchSchema,
    vocabulary: TestVocabulary,
    *,
    clock: Clock = time.perf_counter_ns,
    warm: bool = True,
) -> Result:
    """Compile one schema and feed its instances. Exceptions other than refusals come through."""
    result = Result(bench.name, instances=len(bench.tests))
    start = clock()
    try:
        compiled = engine.compile(bench.schema)
    except CompileError as error:
        result.status, result.error = "refused", str(error)
        return result
    done = clock()
    session = engine.start(compiled)
    started = clock()
    session.mask()
    result.first = clock() - start
    result.compile, result.matcher = done - start, started - start
    eos = vocabulary.eos_ids[0]
    accepted_texts = []
    for _, text, valid in bench.texts():
        ids = vocabulary.encode(text)
        accepted = feed(engine.start(compiled), ids, eos, result, clock)
        if accepted:
            accepted_texts.append(ids)
        if accepted != valid:
            result.wrong_accept += accepted
            result.wrong_reject += valid
    if warm:
        for ids in accepted_texts:
            feed_again(engine.start(compiled), ids, result, clock)
    return result


def settle() -> None:
    """Ready for timing: what lives now is never collected again, and nothing while it is timed."""
    gc.collect()
    gc.freeze()
    gc.disable()


def run_on(core: int | None) -> int:
    """Keep this process, and what it starts, on one core (by default the last that it may use)."""
    # Threads of engines written in Rust are counted by this.
    os.environ["RAYON_NUM_THREADS"] = "1"
    if not hasattr(os, "sched_setaffinity"):
        return -1
    chosen = sorted(os.sched_getaffinity(0))[-1] if core is None else core
    os.sched_setaffinity(0, {chosen})
    return chosen


def machine() -> dict[str, Any]:
    """What a measurement was made on, and how busy that was when this was called."""
    name = platform.processor() or platform.machine()
    path = Path("/proc/cpuinfo")
    if path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return {
        "processor": name,
        "cores": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "load": round(load, 2),
    }


def statistics(values: Sequence[int] | np.ndarray) -> dict[str, float]:
    """Average, median, 99th percentile and maximum, in microseconds; {} without values."""
    if not len(values):
        return {}
    micro = np.asarray(values, dtype=np.float64) / 1000.0
    p50, p99 = np.percentile(micro, [50, 99])
    return {
        "avg": float(micro.mean()),
        "p50": float(p50),
        "p99": float(p99),
        "max": float(micro.max()),
        "count": len(values),
    }


_SHARES = [1 - 10 ** (-step / 8) for step in range(49)]


def tail(values: Sequence[int] | np.ndarray) -> list[tuple[float, float]]:
    """(share of values that are larger, µs) from all down to one in a million, for a plot."""
    if not len(values):
        return []
    micro = np.sort(np.asarray(values, dtype=np.float64)) / 1000.0
    shares = [share for share in _SHARES if (1 - share) * len(micro) >= 1]
    found = [(1 - share, float(np.quantile(micro, share))) for share in shares]
    return [*found, (1 / len(micro), float(micro[-1]))]


TIMES = ("compile", "matcher", "first", "whole", "mask", "token", "warm", "empty", "beyond")
_EACH = ("compile", "matcher", "first", "whole")  # one number for each schema, not a list


def gather(results: Iterable[Result], what: str) -> np.ndarray:
    """All times of one kind (of `TIMES`), of the schemas that compiled, as int64."""
    compiled = [result for result in results if result.status == "ok"]
    if what == "beyond":  # a warm mask beyond the call that does nothing behind it
        return gather(compiled, "warm") - gather(compiled, "empty")
    if what in _EACH:
        return np.array([getattr(result, what) for result in compiled], dtype=np.int64)
    lists = [np.asarray(getattr(result, what), dtype=np.int64) for result in compiled]
    return np.concatenate(lists) if lists else np.zeros(0, dtype=np.int64)


def summarise(results: Sequence[Result]) -> dict[str, Any]:
    """The numbers of one engine as a JSON object: verdicts, times in µs, what was slowest.

    "wrong" has the wrong accepts and wrong rejects of each schema that has any.
    """
    count = {status: sum(r.status == status for r in results) for status in STATUSES}
    compiled = [result for result in results if result.status == "ok"]
    slowest = sorted(compiled, key=lambda r: max(r.token, default=0), reverse=True)[:10]
    long = sorted(compiled, key=lambda r: r.matcher, reverse=True)[:10]
    reasons = {r.schema: r.error[:200] for r in results if r.status not in ("ok", "refused")}
    return {
        "schemas": len(results),
        "compiled": count["ok"],
        **{status: count[status] for status in STATUSES if status != "ok"},
        "right": sum(result.right for result in results),
        "wrong_accept": sum(result.wrong_accept for result in results),
        "wrong_reject": sum(result.wrong_reject for result in results),
        **{what: statistics(gather(results, what)) for what in TIMES},
        "tail": tail(gather(results, "token")),
        "slowest_tokens": {r.schema: max(r.token, default=0) / 1000 for r in slowest},
        "slowest_compiles": {r.schema: r.matcher / 1000 for r in long},
        "problems": reasons,
        "wrong": {
            r.schema: [r.wrong_accept, r.wrong_reject]
            for r in compiled
            if r.wrong_accept or r.wrong_reject
        },
    }


def shared(one: Sequence[Result], other: Sequence[Result]) -> dict[str, Any]:
    """Two engines on the schemas that both compile: {"schemas": n, "one": ..., "other": ...}."""
    both = {r.schema for r in one if r.status == "ok"} & {
        r.schema for r in other if r.status == "ok"
    }
    found: dict[str, Any] = {"schemas": len(both)}
    for side, results in (("one", one), ("other", other)):
        chosen = [result for result in results if result.schema in both]
        found[side] = {what: statistics(gather(chosen, what)) for what in TIMES}
    return found


def compared(made: Mapping[str, Any], results: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """`engines` and `against` of a report: engines by name, the first beside each of the others."""
    first, *others = made
    return {
        "engines": {
            name: {
                "version": engine.version,
                "settings": engine.settings,
                **summarise(results[name]),
            }
            for name, engine in made.items()
        },
        "against": {name: shared(results[first], results[name]) for name in others},
    }
