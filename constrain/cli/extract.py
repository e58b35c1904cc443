"""``constrain extract``: one validated JSON value for each record of the inputs.

A run has four steps: the constraint is compiled, the inputs are read through once (so that a file
that cannot be read is reported before a model is loaded, and an earlier output is compared with
them), the model is loaded, and records are generated in batches and written in the order of the
inputs.  A record that fails is written with its error.  What an interrupted run loses is the batch
that it was working on, which the resumed run does again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

from constrain.cli import _runtime
from constrain.cli._constraint import (
    Constraint,
    add_constraint_options,
    build_constraint,
)
from constrain.cli._errors import CliError, ExitCode
from constrain.cli._json import JsonInputError, parse_json, tidy_json
from constrain.cli._options import (
    add_model_options,
    add_sampling_options,
    bounded_int,
    sampling_of,
)
from constrain.cli._outline import outline, schema_text
from constrain.cli._output import Finished, LineWriter, open_output, read_finished
from constrain.cli._progress import Progress, say
from constrain.cli._records import FORMATS, Record, Source, open_sources
from constrain.cli._template import Template, TemplateFieldError

__all__ = ["add_parser", "run"]

DEFAULT_SYSTEM = "You extract data. Answer with one JSON value of this shape:\n{outline}"
DEFAULT_PROMPT = "{record}"

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


@dataclass(frozen=True)
class _Plan:
    """What is the same for every record of a run."""

    constraint: Constraint
    system: Template
    prompt: Template
    extras: dict[str, str]
    fingerprint: str


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
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> ExitCode:
    """Run the command.  Raises CliError."""
    if (args.resume or args.overwrite) and args.output is None:
        option = "--resume" if args.resume else "--overwrite"
        raise CliError(f"{option} needs --output", ExitCode.USAGE)
    plan = _plan(args)
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
            engine = _runtime.open_engine(args.model, plan.constraint.spec)
            if args.overwrite:
                writer.truncate()
            _run(args, engine, plan, _pending(sources, finished), writer, progress)
        if not args.quiet:
            say(progress.summary())
        return ExitCode.FAILED if progress.failed else ExitCode.OK


def _run(
    args: argparse.Namespace,
    engine: _runtime.Engine,
    plan: _Plan,
    records: Iterator[tuple[int, Record]],
    writer: LineWriter,
    progress: Progress,
) -> None:
    sampling = sampling_of(args)
    try:
        with progress:
            for first, batch in _batches(records, args.batch_size):
                if args.seed is not None:
                    # By position in the input, so that a resumed batch draws what it would have.
                    sampling = replace(sampling, seed=args.seed + first)
                answers = _extract(engine, plan, sampling, batch, progress)
                for record, answer in zip(batch, answers):
                    writer.write(_line(record, plan.fingerprint, answer))
                    progress.add_record(failed=answer.error is not None)
    except KeyboardInterrupt:
        hint = "" if args.output is None else "; the same command with --resume goes on from here"
        say(f"{progress.summary()}{hint}")
        raise


@dataclass(frozen=True)
class _Answer:
    """The JSON text of a record's data, or its error (and the text that came, if any)."""

    data: str | None = None
    error: tuple[str, str] | None = None  # kind, message
    text: str | None = None


def _extract(
    engine: _runtime.Engine,
    plan: _Plan,
    sampling: _runtime.Sampling,
    batch: list[Record],
    progress: Progress,
) -> list[_Answer]:
    """The answers of a batch, in its order."""
    answers: list[_Answer | None] = [None] * len(batch)
    prompts: list[_runtime.Messages] = []
    positions: list[int] = []
    for position, record in enumerate(batch):
        if record.value is None:
            answers[position] = _Answer(error=("record", record.problem or "not usable"))
            continue
        try:
            system = plan.system.render(record.value, plan.extras)
            prompt = plan.prompt.render(record.value, plan.extras)
        except TemplateFieldError as error:
            answers[position] = _Answer(error=("record", f"{record.place}: {error}"))
            continue
        messages = [{"role": "user", "content": prompt}]
        if system:
            messages.insert(0, {"role": "system", "content": system})
        prompts.append(messages)
        positions.append(position)
    for position, output in zip(positions, _generate(engine, prompts, sampling, progress)):
        answers[position] = _answer(output, plan.constraint, sampling)
    return [answer for answer in answers if answer is not None]


def _generate(
    engine: _runtime.Engine,
    prompts: list[_runtime.Messages],
    sampling: _runtime.Sampling,
    progress: Progress,
) -> list[_runtime.Output | Exception]:
    """The outputs of a batch; if the batch fails, each record alone, so that one spoils no other."""
    if not prompts:
        return []
    outputs: list[_runtime.Output | Exception] = []
    before = progress.tokens
    try:
        outputs += engine.generate_batch(prompts, sampling, progress.add_tokens)
    except CliError:
        raise
    except Exception as error:
        progress.tokens = before
        if len(prompts) == 1:
            return [error]
        for prompt in prompts:
            outputs += _generate(engine, [prompt], sampling, progress)
    return outputs


def _answer(
    output: _runtime.Output | Exception, constraint: Constraint, sampling: _runtime.Sampling
) -> _Answer:
    if isinstance(output, Exception):
        lines = str(output).strip().splitlines() or ["no reason given"]
        return _Answer(error=("generation", f"{type(output).__name__}: {lines[0]}"))
    problem = _runtime.unfinished(output, sampling, is_json=True)
    if problem is not None:
        return _Answer(error=problem, text=output.text)
    try:
        parse_json(output.text)
        if constraint.check is not None:
            constraint.check(output.text)
    except JsonInputError as error:
        return _Answer(error=("validation", f"the output is not JSON: {error}"), text=output.text)
    except ValueError as error:
        return _Answer(error=("validation", str(error)), text=output.text)
    return _Answer(data=tidy_json(output.text))


def _line(record: Record, fingerprint: str, answer: _Answer) -> str:
    """One line of output; ``data`` is spliced in as text, so that numbers stay as they are."""
    head: dict[str, object] = {"record": record.number, "file": record.file}
    if record.id is not None:
        head["id"] = record.id
    head["sha256"] = record.digest
    head["run"] = fingerprint
    if answer.error is not None:
        kind, message = answer.error
        head["error"] = {"kind": kind, "message": message}
        if answer.text is not None:
            head["text"] = answer.text
    line = json.dumps(head, ensure_ascii=False)
    if answer.data is not None:
        line = f'{line[:-1]}, "data": {answer.data}}}'
    # A surrogate in an input (or a file name that is not UTF-8) has no UTF-8 form.
    return line.encode("utf-8", "backslashreplace").decode("utf-8")


def _plan(args: argparse.Namespace) -> _Plan:
    constraint = build_constraint(args)
    schema = schema_text(constraint.schema)
    system = DEFAULT_SYSTEM if args.system is None else args.system
    prompt = DEFAULT_PROMPT if args.prompt is None else args.prompt
    identity = json.dumps([schema, args.extra_properties, system, prompt, args.model])
    return _Plan(
        constraint,
        Template(system, "--system"),
        Template(prompt, "--prompt"),
        {"schema": schema, "outline": outline(constraint.schema)},
        hashlib.sha256(identity.encode()).hexdigest()[:8],
    )


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
