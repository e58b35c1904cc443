"""Extraction at scale on Ray Data: a model in each of several workers.

From the command line, with the records, the resuming and the error records of ``constrain extract``::

    constrain extract tickets.jsonl --schema ticket.json --output out.jsonl --workers 4

In a pipeline of one's own, a stateful class for ``map_batches``::

    dataset.map_batches(
        Extractor,
        fn_constructor_kwargs={"schema": schema, "prompt": "Ticket: {text}"},
        compute=ray.data.ActorPoolStrategy(size=4),
        batch_size=8,
    )

With vLLM in the workers (many GPUs), through ``ray.data.llm``: `vllm_config` and `vllm_row`.

**What survives.**  A worker that dies is started again, and the blocks that it had not handed over
are done again by it or by another: every record comes out once.  How often that may happen is
bounded, so that a record that kills every worker ends the run; what was written stays, and
``--resume`` goes on from there.

Ray is imported when something here is called.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from constrain.errors import ConstrainError
from constrain.integrations.vllm import ARGUMENT, QUALIFIED_NAME

__all__ = ["Extractor", "extract_lines", "vllm_config", "vllm_row"]

_RESTARTS = 5  # of one worker
_MAX_BLOCKS = 1000

EngineFactory = Callable[[str | None, Any], Any]


class Extractor:
    """Adds the extracted value to each row; to be used as a class in ``map_batches``.

    Args:
        schema: a JSON Schema (a dict or its text), or a type that pydantic understands.
        model: a folder or hub name; by default SmolLM2 (see `constrain.models.load_model`).
        system, prompt: templates as of ``constrain extract``: ``{record}`` is the row, ``{name}``
            one of its columns, ``{outline}`` the schema in short.
        max_tokens, temperature, top_k, top_p, seed: how tokens are chosen; with a seed, what a row
            draws depends on its batch.
        extra_properties: "forbid" closes objects that are silent about properties they do not
            declare, "schema" leaves them as they are.
        engine: in place of transformers: a function of the model's name and the spec that gives an
            object with ``generate_batch(conversations, sampling, on_tokens)``.

    The columns that are added: ``data`` (JSON text, or None), ``error_kind`` and ``error`` (None,
    or why there is no value; kinds as of ``constrain extract``), ``output`` (the text that came
    with an error).
    """

    COLUMNS = ("data", "error_kind", "error", "output")

    def __init__(
        self,
        schema: Any,
        *,
        model: str | None = None,
        system: str | None = None,
        prompt: str | None = None,
        max_tokens: int = 512,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        extra_properties: str = "forbid",
        engine: EngineFactory | None = None,
    ) -> None:
        from constrain.cli import _extraction, _runtime
        from constrain.cli._constraint import constraint_of_schema

        self._plan = _extraction.make_plan(
            constraint_of_schema(schema, extra_properties),
            extra_properties=extra_properties,
            system=system,
            prompt=prompt,
            model=model,
        )
        self._sampling = _runtime.Sampling(temperature, top_k, top_p, seed, max_tokens)
        self._engine = (engine or _runtime.open_engine)(model, self._plan.constraint.spec)

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The batch with the columns that are added.

        Args:
            batch: columns by name, as ``map_batches`` gives them.
        """
        from constrain.cli import _extraction
        from constrain.cli._records import Record

        taken = [name for name in self.COLUMNS if name in batch]
        if taken:
            raise ConstrainError(f"the rows have a column {taken[0]!r} already")
        count = len(next(iter(batch.values()), ()))
        records = [
            Record("", n + 1, f"row {n + 1}", "", {k: _plain(v[n]) for k, v in batch.items()})
            for n in range(count)
        ]
        found = _extraction.answers(
            self._engine, self._plan, self._sampling, records, _extraction.Counter()
        )
        errors = [answer.error or (None, None) for answer in found]
        added = {
            "data": [answer.data for answer in found],
            "error_kind": [kind for kind, _ in errors],
            "error": [message for _, message in errors],
            "output": [answer.text for answer in found],
        }
        return {**batch, **{name: np.array(column, dtype=object) for name, column in added.items()}}


class _LineExtractor:
    """The worker of ``constrain extract --workers``: rows of records to lines of output."""

    def __init__(self, plan: Any, sampling: Any, model: str | None, engine: Any) -> None:
        from constrain.cli import _runtime

        self._plan = plan
        self._sampling = sampling
        self._engine = (engine or _runtime.open_engine)(model, plan.constraint.spec)

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, Any]:
        from constrain.cli import _extraction

        records = [pickle.loads(data) for data in batch["record"]]
        sampling = self._sampling
        if sampling.seed is not None:
            sampling = replace(sampling, seed=sampling.seed + int(batch["position"][0]))
        counter = _extraction.Counter()
        found = _extraction.answers(self._engine, self._plan, sampling, records, counter)
        lines = [
            _extraction.line(record, self._plan.fingerprint, answer)
            for record, answer in zip(records, found)
        ]
        return {
            "line": lines,
            "failed": [answer.error is not None for answer in found],
            "tokens": [counter.tokens] + [0] * (len(lines) - 1),
        }


def extract_lines(
    records: Sequence[tuple[int, Any]],
    plan: Any,
    sampling: Any,
    model: str | None,
    *,
    workers: int,
    batch_size: int,
    engine: EngineFactory | None = None,
) -> Iterator[tuple[str, bool, int]]:
    """The lines of output of records, as they are finished: each with whether it tells of an error,
    and how many tokens were generated since the line before.

    Args:
        records: each with its position among all (see `constrain.cli._records`).
        plan, sampling: of ``constrain extract``.
        model: see `Extractor`.
        workers: how many workers there are, each with a CPU and the model.
        batch_size: records that are generated together.
        engine: see `Extractor`.

    Raises:
        CliError: Ray is not installed, or the workers died too often.
    """
    from constrain.cli._errors import CliError

    try:
        import ray
    except ImportError:
        raise CliError('--workers needs Ray: pip install "ray[data]"') from None
    rows = [{"position": position, "record": pickle.dumps(record)} for position, record in records]
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    blocks = max(workers, min(-(-len(rows) // batch_size), _MAX_BLOCKS))
    dataset = ray.data.from_items(rows, override_num_blocks=min(blocks, len(rows))).map_batches(
        _LineExtractor,
        fn_constructor_args=(plan, sampling, model, engine),
        batch_size=batch_size,
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
        max_restarts=_RESTARTS,
        max_task_retries=_RESTARTS,
    )
    return _rows(dataset, CliError)


def _rows(dataset: Any, error_class: type[Exception]) -> Iterator[tuple[str, bool, int]]:
    import ray

    try:
        for row in dataset.iter_rows():
            yield row["line"], bool(row["failed"]), int(row["tokens"])
    except ray.exceptions.RayError as error:
        first = str(error).strip().splitlines()[0]
        raise error_class(
            f"the workers failed: {first}; --resume goes on from what is written"
        ) from error


def _plain(value: Any) -> Any:
    """NumPy's scalars and arrays as Python's own."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return value


# --- vLLM in the workers -------------------------------------------------------------------------


def vllm_config(model: str, *, engine_kwargs: dict[str, Any] | None = None, **options: Any) -> Any:
    """The configuration of ``ray.data.llm.build_processor`` whose vLLM engines take constraints.

    Args:
        model: the model's folder or hub name.
        engine_kwargs: arguments of vLLM's engine; the logits processor is added to them.
        options: further arguments of ``vLLMEngineProcessorConfig``: ``batch_size``,
            ``concurrency``, ``should_continue_on_error``, ...
    """
    from ray.data.llm import vLLMEngineProcessorConfig

    arguments = dict(engine_kwargs or {})
    named = list(arguments.get("logits_processors") or ())
    if QUALIFIED_NAME not in named:
        named.append(QUALIFIED_NAME)
    arguments["logits_processors"] = named
    return vLLMEngineProcessorConfig(model_source=model, engine_kwargs=arguments, **options)


def vllm_row(
    messages: Sequence[dict[str, Any]], constraint: Any, *, max_tokens: int, **sampling: Any
) -> dict[str, Any]:
    """What the ``preprocess`` function of ``build_processor`` returns for a row.

    The constraint travels as JSON text: as nested columns, Ray would unite the schemas of different
    rows.

    Args:
        messages: the conversation.
        constraint: as plain data (see `constrain.integrations.requests`), checked here.
        max_tokens: the text is finished and valid within it.
        sampling: further sampling parameters: ``temperature``, ``top_p``, ``seed``, ...

    Raises:
        ConstrainError: the constraint is wrong.
    """
    from constrain.integrations.vllm import check_constraint

    check_constraint(constraint)
    arguments = {} if constraint is None else {"extra_args": {ARGUMENT: json.dumps(constraint)}}
    return {
        "messages": list(messages),
        "sampling_params": {"max_tokens": max_tokens, **sampling, **arguments},
    }
