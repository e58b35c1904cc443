"""``constrain bench-model``: what constraints cost and save with a model, in the field's metrics.

Runs the same prompts in several ways: without a constraint, with it and nothing else, with forced
tokens, and with drafts.  The ways take turns in every round, so that a machine that slows down slows
all of them; the first round warms up and is not counted.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from constrain.cli import _runtime
from constrain.cli._constraint import read_schema
from constrain.cli._errors import CliError, ExitCode
from constrain.cli._options import add_sampling_options, add_speculation_option, bounded_int
from constrain.cli._output import write_text
from constrain.cli._progress import say
from constrain.cli._report import json_text, table, write_plot
from constrain.cli._tasks import TASKS, Task

__all__ = ["add_parser", "run"]

_EXAMPLES = """\
ways:
  free         no constraint
  constrained  masks, one forward pass for each token
  forced       text without an alternative is appended at once
  lookup       forced, and drafts from the text so far
  constraint   forced, and drafts of the short way to a valid text
  both         forced, and drafts of the first of these that has one
  draft        forced, and drafts of the model given by --speculate

examples:
  constrain bench-model
  constrain bench-model --batch 1,8 --ways free,constrained --rounds 5 --temperature 0
  constrain bench-model --schema ticket.json --prompt "A broken lamp." --json > bench.json
"""
_WAYS = ("free", "constrained", "forced", "lookup", "constraint", "both", "draft")

_BUILT_IN = ("lookup", "constraint", "both")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``constrain``."""
    parser = commands.add_parser(
        "bench-model",
        help="measure what constraints cost and save with a model",
        description="Generate the same texts without a constraint, with it, with forced tokens and "
        "with drafts, and compare latencies, tokens per second, forward passes and masks. Without "
        "--schema, the texts are arguments of small function calls.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", metavar="NAME", help="a local folder or a hub name")
    parser.add_argument("--device", metavar="NAME", help="a torch device (default: cuda or cpu)")
    parser.add_argument(
        "--dtype", metavar="NAME", help="float32, float16, bfloat16 (default: auto)"
    )
    parser.add_argument(
        "--schema", action="append", default=[], metavar="FILE", help="a JSON Schema; repeatable"
    )
    parser.add_argument("--prompt", metavar="TEXT", help="the user message that goes with --schema")
    parser.add_argument(
        "--extra-properties",
        choices=("schema", "forbid"),
        default="forbid",
        help="whether objects get properties that they do not declare (default: forbid)",
    )
    parser.add_argument(
        "--whitespace",
        choices=("bounded", "any", "compact", "spaced"),
        default="bounded",
        help="whitespace that texts may have (default: bounded)",
    )
    parser.add_argument(
        "--escapes",
        choices=("plain", "any"),
        default="plain",
        help="escapes in strings: only those that JSON requires, or any (default: plain)",
    )
    parser.add_argument(
        "--batch", type=_batches, default=[1], metavar="N,N", help="batch sizes (default: 1)"
    )
    parser.add_argument(
        "--ways",
        type=_ways,
        metavar="WAY,WAY",
        help="which of the ways below (default: all but draft, which needs --speculate)",
    )
    parser.add_argument(
        "--tasks", type=bounded_int(1), default=4, metavar="N", help="how many texts (default: 4)"
    )
    parser.add_argument(
        "--rounds", type=bounded_int(1), default=1, metavar="N", help="counted rounds (default: 1)"
    )
    add_sampling_options(parser, temperature=1.0, max_tokens=160)
    add_speculation_option(parser.add_argument_group("drafts"))
    parser.add_argument("--json", action="store_true", help="write JSON instead of a table")
    parser.add_argument("--plot", metavar="FILE", help="draw the main metrics as an SVG file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> ExitCode:
    """Run the command.  Raises CliError."""
    ways = _chosen_ways(args)
    tasks = _tasks(args)
    specs = [_spec(task, args) for task in tasks]
    model, tokenizer, vocabulary = _runtime.open_model(
        args.model, device=args.device, dtype=args.dtype
    )
    bench = _Bench(model, tokenizer, vocabulary, tasks, specs, args)
    started = time.monotonic()
    for number in range(args.rounds + 1):
        for batch in args.batch:
            for way in ways:
                bench.round(way, batch, counted=number > 0)
        elapsed = time.monotonic() - started
        say(f"round {number} of {args.rounds}{'' if number else ' (warm-up)'}: {elapsed:.0f} s")
    columns = bench.columns()
    extra = bench.comparison(ways, args.batch)
    if args.json:
        write_text(json_text(columns, model=args.model, comparison=dict(extra)))
    else:
        write_text(table(columns, [(name, list(cells)) for name, cells in extra]))
    if args.plot is not None:
        write_plot(args.plot, "constrain bench-model", columns)
    return ExitCode.OK


class _Bench:
    """The runs so far, by way and batch size."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        vocabulary: Any,
        tasks: Sequence[Task],
        specs: Sequence[Any],
        args: argparse.Namespace,
    ) -> None:
        import constrain

        self._model = model
        self._tokenizer = tokenizer
        self._tasks = tasks
        self._compiled = [constrain.compile(spec, vocabulary) for spec in specs]
        self._args = args
        self._drafts = {name: _runtime.speculation(name) for name in _BUILT_IN}
        if args.speculate not in (None, *_BUILT_IN):
            self._drafts["draft"] = _runtime.speculation(args.speculate)
        self._runs: dict[tuple[str, int], list[Any]] = {}
        self._results: dict[tuple[str, int], list[Any]] = {}

    def round(self, way: str, batch: int, *, counted: bool) -> None:
        """Generate all tasks in one way, `batch` at a time."""
        from constrain.decoding import generate_batch

        args = self._args
        for first in range(0, max(len(self._tasks), batch), batch):
            chosen = [(first + i) % len(self._tasks) for i in range(batch)]
            results = generate_batch(
                self._model,
                self._tokenizer,
                [self._tasks[i].messages for i in chosen],
                None if way == "free" else [self._compiled[i] for i in chosen],
                max_tokens=args.max_tokens,
                temperature=args.temperature,
                top_k=args.top_k,
                top_p=args.top_p,
                seed=args.seed if args.seed is None else args.seed + first,
                forced="off" if way in ("free", "constrained") else "text",
                speculation=self._drafts.get(way),
                measure=not counted,
            )
            kept = self._runs if counted else self._results
            kept.setdefault((way, batch), []).append([result.timings for result in results])

    def columns(self) -> dict[str, Any]:
        """The metrics of each way; what the masks remove comes from the warm-up."""
        from dataclasses import replace

        from constrain.decoding import Metrics

        found = {}
        for (way, batch), runs in self._runs.items():
            removed = Metrics.of(*self._results[way, batch]).probability_removed
            found[f"{way}, batch {batch}"] = replace(Metrics.of(*runs), probability_removed=removed)
        return found

    def comparison(
        self, ways: Sequence[str], batches: Sequence[int]
    ) -> list[tuple[str, list[str]]]:
        """Rows that compare: latency of a step with that of free text, speed with plain masks."""
        columns = self.columns()

        def ratio(way: str, batch: int, base: str, field: str) -> str:
            here = getattr(columns[f"{way}, batch {batch}"], field)
            there = getattr(columns.get(f"{base}, batch {batch}"), field, None)
            return f"{here / there:.3f}" if here and there else "-"

        pairs = [(way, batch) for batch in batches for way in ways]
        pairs = [pair for pair in self._runs if pair in pairs]
        return [
            (
                "latency of a step by that of free text",
                [ratio(*pair, "free", "step_latency_p50") for pair in pairs],
            ),
            (
                "total tokens per second by those of plain masks",
                [ratio(*pair, "constrained", "total_tokens_per_second") for pair in pairs],
            ),
        ]


def _tasks(args: argparse.Namespace) -> list[Task]:
    """The texts to generate.  Raises CliError."""
    if args.prompt is not None and not args.schema:
        raise CliError("--prompt goes with --schema", ExitCode.USAGE)
    if not args.schema:
        return list(TASKS[: args.tasks])
    request = args.prompt or "Make up an example, as JSON."
    return [Task(Path(path).stem, request, read_schema(path)) for path in args.schema]


def _spec(task: Task, args: argparse.Namespace) -> Any:
    import constrain

    try:
        spec = constrain.JsonSchema(
            task.schema,
            extra_properties=args.extra_properties,
            whitespace=args.whitespace,
            escapes=args.escapes,
        )
        _runtime.compile_alone(spec)
    except constrain.ConstrainError as error:
        raise CliError(f"{task.name}: {error}") from error
    return spec


def _chosen_ways(args: argparse.Namespace) -> list[str]:
    has_draft = args.speculate not in (None, *_BUILT_IN)
    ways = args.ways or [way for way in _WAYS if way != "draft" or has_draft]
    if "draft" in ways and not has_draft:
        raise CliError("the way draft needs --speculate with the name of a model", ExitCode.USAGE)
    return ways


def _ways(text: str) -> list[str]:
    found = text.split(",")
    for way in found:
        if way not in _WAYS:
            raise argparse.ArgumentTypeError(f"{way!r} is none of {', '.join(_WAYS)}")
    return found


def _batches(text: str) -> list[int]:
    return [bounded_int(1)(part) for part in text.split(",")]
