"""``constrain extract``: one validated JSON value for each record of the inputs.

A run has four steps: the constraint is compiled, the inputs are read through once (so that a file
that cannot be read is reported before a model is loaded, and an earlier output is compared with
them), the model is loaded, and records are generated in batches and written in the order of the
inputs.  A record that fails is written with its error.  What an interrupted run loses is the batch
that it was working on, which the resumed run does again.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

from constrain.cli import _runtime
from constrain.cli._constraint import add_constraint_options, build_constraint
from constrain.cli._errors import CliError, ExitCode
from constrain.cli._extraction import Plan, answers, line, make_plan
from constrain.cli._options import (
    add_model_options,
    add_sampling_options,
    bounded_int,
    sampling_of,
)
from constrain.cli._output import Finished, LineWriter, open_output, read_finished
from constrain.cli._progress import Progress, say
from constrain.cli._records import FORMATS, Record, Source, open_sources

__all__ = ["add_parser", "run"]

_DESCRIPTION = """\
Extract one JSON value from each record of JSONL, CSV, TSV or text files (a text file is one
record).  Every record gives one line of JSON on standard output or in --output:

  {"record": 3, "file": "tickets.jsonl", "id": "T-3", "sha256": ..., "run": ..., "data": {...}}

or, if it failed, "error": {"kind": ..., "message": ...} in place of "data".  Kinds: "record" (the
record cannot be used), "max_tokens" (the output was cut off), "dead_end" (the model's tokens cannot
finish it), "validation" (the output is no value of the model class), "generation" (the model failed
on it, for instance on a too long prompt).
"""

_EXAMPLES = """\
examples:
  constrain extract tickets.jsonl --schema ticket.json
  constrain extract invoices.csv --model-class billing:Invoice --output invoices.out.jsonl
  constrain extract letters/*.txt --schema letter.json --prompt 'Letter: {record}' -o letters.jsonl

an interrupted run is continued with the same command and --resume; to try failed records again,
remove their lines from the output first.
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the parser of ``constrain``."""
    parser = commands.add_parser(
        "extract",
        help="extract one JSON value from each record of files",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "inputs", metavar="INPUT", nargs="+", help='an input file ("-": standard input)'
    )
    parser.add_argument(
        "--input-format", choices=FORMATS, help="the format of the inputs (default: by extension)"
    )
    parser.add_argument(
        "--prompt",
        metavar="TEMPLATE",
        help="the user message; {record} is the record, {name} one of its fields, {schema} the "
        "schema, {outline} its shape in short, {{ and }} are braces (default: {record}); "
        "--system is a template too, by default with the outline",
    )
    add_constraint_options(parser, text=False)
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", metavar="FILE", help="write there, not to standard output")
    mode = group.add_mutually_exclusive_group()
    mode.add_argument(
        "--resume", action="store_true", help="continue an output that an earlier run began"
    )
    mode.add_argument("--overwrite", action="store_true", help="replace an output that exists")
    group.add_argument("--quiet", action="store_true", help="no progress, only errors")
    add_model_options(parser)
    add_sampling_options(parser, temperature=0.0, max_tokens=512)
    parser.add_argument(
        "--batch-size",
        type=bounded_int(1),
        default=8,
        metavar="N",
        help="records that are generated together (default: 8)",
    )
    parser.add_argument(
        "--workers",
        type=bounded_int(1),
        metavar="N",
        help="generate in N workers of Ray, each with the model; lines come in the order in which "
        "they are finished",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> ExitCode:
    """Run the command.  Raises CliError."""
    if (args.resume or args.overwrite) and args.output is None:
        option = "--resume" if args.resume else "--overwrite"
        raise CliError(f"{option} needs --output", ExitCode.USAGE)
    plan = make_plan(
        build_constraint(args),
        extra_properties=args.extra_properties,
        system=args.system,
        prompt=args.prompt,
        model=args.model,
    )
    sources = open_sources(args.inputs, args.input_format)
    total = _survey(sources)
    with ExitStack() as stack:
        finished: dict[tuple[str, int], Finished] = {}
        if args.output is None:
            # Nothing is buffered above the descriptor, so that lines stay whole.
            writer = LineWriter(sys.stdout.fileno(), "standard output")
        else:
            _refuse_own_input(args.output, sources)
            writer, descriptor = stack.enter_context(
                open_output(args.output, overwrite=args.overwrite, resume=args.resume)
            )
            if args.resume:
                finished = read_finished(descriptor, args.output, plan.fingerprint)
                _compare(sources, finished, args.output)
        progress = Progress(total, len(finished), quiet=args.quiet)
        progress.failed = sum(entry.failed for entry in finished.values())
        if len(finished) < total:
            lines = _lines(args, plan, _pending(sources, finished), progress)
            if args.overwrite:
                writer.truncate()
            _write(lines, writer, progress, can_resume=args.output is not None)
        if not args.quiet:
            say(progress.summary())
        return ExitCode.FAILED if progress.failed else ExitCode.OK


def _lines(
    args: argparse.Namespace,
    plan: Plan,
    records: Iterator[tuple[int, Record]],
    progress: Progress,
) -> Iterator[tuple[str, bool]]:
    """Opens the model, here or in workers; then gives lines of output, and whether they failed."""
    sampling = sampling_of(args)
    if args.workers is not None:
        from constrain.integrations import ray_data

        found = ray_data.extract_lines(
            list(records),
            plan,
            sampling,
            args.model,
            workers=args.workers,
            batch_size=args.batch_size,
        )
        return _counted(found, progress)
    engine = _runtime.open_engine(args.model, plan.constraint.spec)
    return _local_lines(engine, plan, sampling, _batches(records, args.batch_size), progress)


def _counted(
    found: Iterator[tuple[str, bool, int]], progress: Progress
) -> Iterator[tuple[str, bool]]:
    for text, failed, tokens in found:
        progress.add_tokens(tokens)
        yield text, failed


def _local_lines(
    engine: _runtime.Engine,
    plan: Plan,
    sampling: _runtime.Sampling,
    batches: Iterator[tuple[int, list[Record]]],
    progress: Progress,
) -> Iterator[tuple[str, bool]]:
    for first, batch in batches:
        # By position in the input, so that a resumed batch draws what it would have.
        seed = None if sampling.seed is None else sampling.seed + first
        found = answers(engine, plan, replace(sampling, seed=seed), batch, progress)
        for record, answer in zip(batch, found):
            yield line(record, plan.fingerprint, answer), answer.error is not None


def _write(
    lines: Iterator[tuple[str, bool]], writer: LineWriter, progress: Progress, *, can_resume: bool
) -> None:
    try:
        with progress:
            for text, failed in lines:
                writer.write(text)
                progress.add_record(failed=failed)
    except KeyboardInterrupt:
        hint = "; the same command with --resume goes on from here" if can_resume else ""
        say(f"{progress.summary()}{hint}")
        raise


def _survey(sources: list[Source]) -> int:
    """The number of records; raises CliError for a file that cannot be read as its format."""
    return sum(1 for source in sources for _ in source.records())


def _compare(sources: list[Source], finished: dict[tuple[str, int], Finished], output: str) -> None:
    """Check that what is `finished` belongs to these inputs as they are now."""
    missing = dict(finished)
    for source in sources:
        for record in source.records():
            entry = missing.pop((record.file, record.number), None)
            if entry is not None and entry.digest != record.digest:
                raise CliError(
                    f"{record.place} has changed since line {entry.line} of {output} was written; "
                    "use --overwrite or another --output"
                )
    for (file, number), entry in missing.items():
        raise CliError(
            f"{output}, line {entry.line}: record {number} of {file} is not among the inputs; "
            "resume with the inputs of the first run, named in the same way"
        )


def _refuse_own_input(output: str, sources: list[Source]) -> None:
    for source in sources:
        if (
            source.content is None
            and os.path.exists(output)
            and os.path.samefile(output, source.file)
        ):
            raise CliError(f"{output} is an input, so it cannot be the output", ExitCode.USAGE)


def _pending(
    sources: list[Source], finished: dict[tuple[str, int], Finished]
) -> Iterator[tuple[int, Record]]:
    """The records to do, each with its position among all."""
    position = 0
    for source in sources:
        for record in source.records():
            if (record.file, record.number) not in finished:
                yield position, record
            position += 1


def _batches(
    records: Iterator[tuple[int, Record]], size: int
) -> Iterator[tuple[int, list[Record]]]:
    """Batches of records, each with the position of its first."""
    first = 0
    batch: list[Record] = []
    for position, record in records:
        if not batch:
            first = position
        batch.append(record)
        if len(batch) == size:
            yield first, batch
            batch = []
    if batch:
        yield first, batch
