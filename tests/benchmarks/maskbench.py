"""MaskBench for engines beside each other: verdicts and times, each engine in its own process.

``python -m tests.benchmarks.maskbench --json maskbench.json --plot maskbench.svg`` measures all
engines on all schemas and prints Markdown. Engines take turns schema by schema, all on one core;
a schema that takes longer than ``--timeout`` is stopped and counted. An interrupted run reports what
it has. What is measured, and what counts as right: see `tests.benchmarks.measuring`. Engines that
are not installed are named.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks import tables
from tests.benchmarks.engines import ENGINES
from tests.benchmarks.measuring import CLOCKS, Result, machine, shared, summarise
from tests.benchmarks.worker import UnavailableError, Worker
from tests.reference import data, vocabularies

_PROGRESS_S = 30.0


def measure(
    names: Sequence[str],
    vocabulary: str,
    schemas: Sequence[data.BenchSchema],
    **settings: Any,
) -> dict[str, Any]:
    """The engines' numbers as one JSON object; `settings` are those of `Worker`."""
    workers: dict[str, Worker] = {}
    missing: dict[str, str] = {}
    for name in names:
        try:
            workers[name] = Worker(name, vocabulary, **settings)
        except UnavailableError as error:
            missing[name] = str(error)
            _say(f"{name} is left out: {error}")
    results: dict[str, list[Result]] = {name: [] for name in workers}
    said = time.monotonic()
    try:
        for index, bench in enumerate(schemas):
            order = list(workers) if index % 2 == 0 else list(reversed(workers))
            for name in order:
                results[name].append(workers[name].measure(bench))
            if time.monotonic() - said > _PROGRESS_S:
                said = time.monotonic()
                spent = ", ".join(f"{name} {one.seconds:.0f} s" for name, one in workers.items())
                _say(f"{index + 1} of {len(schemas)} schemas: {spent}")
    except KeyboardInterrupt:
        _say("stopped: what follows is about the schemas so far")
    finally:
        for worker in workers.values():
            worker.close()
    found: dict[str, Any] = {}
    for name in names:
        if name in missing:
            found[name] = {"unavailable": missing[name]}
            continue
        worker = workers[name]
        found[name] = {
            "version": worker.version,
            "settings": worker.settings,
            **summarise(results[name]),
            "seconds": round(worker.seconds, 1),
            "cpu_seconds": round(worker.cpu_seconds, 1),
            "restarts": worker.restarts,
            "peak_memory": worker.peak_memory,
        }
    measured = list(workers)
    return {
        "schemas": min((len(results[name]) for name in measured), default=0),
        "engines": found,
        "against": {name: shared(results[measured[0]], results[name]) for name in measured[1:]},
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Verdicts and times of engines on MaskBench."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--engines", default=",".join(ENGINES), metavar="NAME,NAME")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th schema")
    parser.add_argument("--names", nargs="*", help="only schemas whose names contain one of these")
    parser.add_argument("--vocabulary", help="default: Llama 3.1's where it is, else DeepSeek's")
    parser.add_argument("--numbers", default="any", help="option of constrain (default: any)")
    parser.add_argument("--timeout", type=float, default=30.0, help="seconds for each schema")
    parser.add_argument("--memory", type=float, default=8.0, help="GiB that an engine may take")
    parser.add_argument("--core", type=int, help="the core that engines run on (default: the last)")
    parser.add_argument(
        "--clock",
        choices=list(CLOCKS),
        default="wall",
        help="cpu: processor time of the engine's process, where the machine is busy otherwise",
    )
    parser.add_argument("--no-warm", action="store_true", help="leave warm masks out")
    parser.add_argument("--json", type=Path, help="write all numbers here")
    parser.add_argument("--plot", type=Path, help="draw the times per token (needs matplotlib)")
    arguments = parser.parse_args()
    names = arguments.engines.split(",")
    for name in names:
        if name not in ENGINES and ":" not in name:
            parser.error(f"no engine is called {name!r}: there are {', '.join(ENGINES)}")
    schemas = data.maskbench(data.require_root(), every=arguments.every)
    if arguments.names:
        schemas = [s for s in schemas if any(part in s.name for part in arguments.names)]
    vocabulary = arguments.vocabulary or vocabularies.large()
    where = machine()
    core = arguments.core
    if core is None and hasattr(os, "sched_getaffinity"):
        core = max(os.sched_getaffinity(0))
    result = {
        "kind": "maskbench",
        "machine": where,
        "vocabulary": vocabulary,
        "clock": arguments.clock,
        "timeout": arguments.timeout,
        **measure(
            names,
            vocabulary,
            schemas,
            options={"numbers": arguments.numbers},
            core=core,
            clock=arguments.clock,
            warm=not arguments.no_warm,
            timeout=arguments.timeout,
            memory=int(arguments.memory * (1 << 30)),
        ),
    }
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1), encoding="utf-8")
    if arguments.plot:
        tables.plot(result, arguments.plot)
    print(tables.report(result))


if __name__ == "__main__":
    main()
