"""Extraction of one batch of records: shared by the command line and Ray Data.

A `Plan` is what is the same for every record of a run; `answers` generates for a batch, where one
record spoils no other; `line` writes a record's line of output.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Protocol

from constrain.cli import _runtime
from constrain.cli._constraint import Constraint
from constrain.cli._errors import CliError
from constrain.cli._json import JsonInputError, parse_json, tidy_json
from constrain.cli._outline import outline, schema_text
from constrain.cli._records import Record
from constrain.cli._template import Template, TemplateFieldError

__all__ = [
    "DEFAULT_PROMPT",
    "DEFAULT_SYSTEM",
    "Answer",
    "Counter",
    "Plan",
    "TokenCount",
    "answers",
    "line",
    "make_plan",
]

DEFAULT_SYSTEM = "You extract data. Answer with one JSON value of this shape:\n{outline}"
DEFAULT_PROMPT = "{record}"


class TokenCount(Protocol):
    """Counts tokens as they come: `Progress`, or `Counter`."""

    tokens: int

    def add_tokens(self, count: int) -> None: ...


class Counter:
    """A `TokenCount` that shows nothing."""

    def __init__(self) -> None:
        self.tokens = 0

    def add_tokens(self, count: int) -> None:
        """`count` more tokens were generated."""
        self.tokens += count


@dataclass(frozen=True)
class Plan:
    """What is the same for every record of a run."""

    constraint: Constraint
    system: Template
    prompt: Template
    extras: dict[str, str]
    fingerprint: str


def make_plan(
    constraint: Constraint,
    *,
    extra_properties: str,
    system: str | None,
    prompt: str | None,
    model: str | None,
) -> Plan:
    """The plan of these settings; None stands for the default.  Raises CliError for a template."""
    schema = schema_text(constraint.schema)
    system = DEFAULT_SYSTEM if system is None else system
    prompt = DEFAULT_PROMPT if prompt is None else prompt
    identity = json.dumps([schema, extra_properties, system, prompt, model])
    return Plan(
        constraint,
        Template(system, "--system"),
        Template(prompt, "--prompt"),
        {"schema": schema, "outline": outline(constraint.schema)},
        hashlib.sha256(identity.encode()).hexdigest()[:8],
    )


@dataclass(frozen=True)
class Answer:
    """The JSON text of a record's data, or its error (and the text that came, if any)."""

    data: str | None = None
    error: tuple[str, str] | None = None  # kind, message
    text: str | None = None


def answers(
    engine: _runtime.Engine,
    plan: Plan,
    sampling: _runtime.Sampling,
    batch: list[Record],
    progress: TokenCount,
) -> list[Answer]:
    """The answers of a batch, in its order."""
    found: list[Answer | None] = [None] * len(batch)
    prompts: list[_runtime.Messages] = []
    positions: list[int] = []
    for position, record in enumerate(batch):
        if record.value is None:
            found[position] = Answer(error=("record", record.problem or "not usable"))
            continue
        try:
            system = plan.system.render(record.value, plan.extras)
            prompt = plan.prompt.render(record.value, plan.extras)
        except TemplateFieldError as error:
            found[position] = Answer(error=("record", f"{record.place}: {error}"))
            continue
        messages = [{"role": "user", "content": prompt}]
        if system:
            messages.insert(0, {"role": "system", "content": system})
        prompts.append(messages)
        positions.append(position)
    for position, output in zip(positions, _generate(engine, prompts, sampling, progress)):
        found[position] = _answer(output, plan.constraint, sampling)
    return [answer for answer in found if answer is not None]


def _generate(
    engine: _runtime.Engine,
    prompts: list[_runtime.Messages],
    sampling: _runtime.Sampling,
    progress: TokenCount,
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
) -> Answer:
    if isinstance(output, Exception):
        lines = str(output).strip().splitlines() or ["no reason given"]
        return Answer(error=("generation", f"{type(output).__name__}: {lines[0]}"))
    problem = _runtime.unfinished(output, sampling, is_json=True)
    if problem is not None:
        return Answer(error=problem, text=output.text)
    try:
        parse_json(output.text)
        if constraint.check is not None:
            constraint.check(output.text)
    except JsonInputError as error:
        return Answer(error=("validation", f"the output is not JSON: {error}"), text=output.text)
    except ValueError as error:
        return Answer(error=("validation", str(error)), text=output.text)
    return Answer(data=tidy_json(output.text))


def line(record: Record, fingerprint: str, answer: Answer) -> str:
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
    text = json.dumps(head, ensure_ascii=False)
    if answer.data is not None:
        text = f'{text[:-1]}, "data": {answer.data}}}'
    # A surrogate in an input (or a file name that is not UTF-8) has no UTF-8 form.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
