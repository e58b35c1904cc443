"""Continuous batching of transformers under constraints.

``model.generate_batch`` takes no logits processors, and one that it is given all the same would see
the last token of a row only.  So the manager is driven here: a processor of its own kind is put
into its list, ahead of the sampler's warpers.  It is told of the requests of each step, and of their
tokens, before the step; that is the state of the text only if no step is in flight, hence neither
asynchronous batching nor captured graphs.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from typing import Any

from constrain.errors import ConstrainError
from constrain.integrations._transformers_generate import check_settings
from constrain.integrations.base import Adapter, ConstrainedSequence, RequestError
from constrain.integrations.errors import EngineConfigurationError

__all__ = ["generate_batch"]

_names = itertools.count()
_MAX_BLOCKS = 512


def generate_batch(
    model: Any,
    inputs: Sequence[Sequence[int]],
    constraints: Any,
    *,
    max_new_tokens: int | Sequence[int],
    generation_config: Any = None,
    continuous_batching_config: Any = None,
) -> list[list[int]]:
    """Generate for many prompts with continuous batching.

    Args:
        model: a causal language model of transformers.
        inputs: the token ids of each prompt.
        constraints: one compiled constraint, or a list with one (or None) for each prompt.
        max_new_tokens: at most so many tokens, for all prompts or for each; a promise: texts are
            finished and valid within it.
        generation_config: sampling settings; by default the model's.
        continuous_batching_config: of transformers; asynchronous batching, CUDA graphs and
            compilation must be off, which is the default here.

    Returns:
        The generated ids of each prompt, an end of sequence included.  With
        ``num_return_sequences`` n, n lists for each prompt, one after the other.

    Raises:
        EngineConfigurationError: a setting would drop or break the constraint.
        RequestError: no valid text has as few tokens (the request id is the prompt's index).
        ConstrainError: the generation loop failed; its error is the cause.
    """
    if not hasattr(model, "init_continuous_batching"):
        raise EngineConfigurationError(
            "this version of transformers has no continuous batching",
            engine="transformers",
            setting="version",
        )
    present, compiled = _listed(constraints, len(inputs))
    limits = _limits(max_new_tokens, len(inputs))
    config = copy.deepcopy(generation_config or model.generation_config)
    check_settings(None, {}, config)
    adapter = Adapter(present.vocabulary, engine="transformers")
    own = config.eos_token_id
    ids = [] if own is None else [own] if isinstance(own, int) else list(own)
    config.eos_token_id = sorted({*map(int, ids), *present.vocabulary.eos_token_ids})

    samples = int(config.num_return_sequences or 1)
    manager = model.init_continuous_batching(
        generation_config=config,
        continuous_batching_config=_batching(continuous_batching_config, model, inputs, limits),
        workload_hints=_hints(inputs, limits, samples),
    )
    run = f"constrain-{next(_names)}"
    sequences: dict[str, Any] = {}
    for index, (constraint, limit) in enumerate(zip(compiled, limits)):
        adapter.open(constraint, max_tokens=limit, request_id=index)
        sequences[f"{run}-{index}"] = (constraint, limit)
    processor = _processor(adapter, sequences)
    _install(manager, processor)
    return _drive(manager, list(inputs), limits, run, samples)


def _drive(
    manager: Any, inputs: list[Any], limits: list[int], run: str, samples: int
) -> list[list[int]]:
    results: dict[str, list[int]] = {}
    names = [f"{run}-{index}" for index in range(len(inputs))]
    wanted = [
        name
        for parent in names
        for name in (*(f"{parent}__child#{i}" for i in range(samples - 1)), parent)
    ]
    manager.start()
    try:
        for name, ids, limit in zip(names, inputs, limits):
            manager.add_request(list(ids), request_id=name, max_new_tokens=limit)
        while len(results) < len(wanted):
            result = manager.get_result(timeout=1)
            fatal = manager.background_thread_status.fatal_error
            if fatal is not None:
                raise ConstrainError(f"the generation loop failed: {fatal}") from fatal
            if result is None:
                if not manager.is_running():
                    raise ConstrainError("the generation loop ended before all requests did")
            elif result.error is not None:
                raise RequestError(str(result.error), request_id=result.request_id)
            elif result.is_finished():
                results[result.request_id] = list(result.generated_tokens)
    finally:
        manager.stop(block=True, hard_stop=len(results) < len(wanted))
        manager.destroy()
    return [results[name] for name in wanted]


def _listed(constraints: Any, count: int) -> tuple[Any, list[Any]]:
    compiled = list(constraints) if isinstance(constraints, Sequence) else [constraints] * count
    if len(compiled) != count:
        raise ConstrainError(f"there are {count} prompts and {len(compiled)} constraints")
    present = [constraint for constraint in compiled if constraint is not None]
    if not present:
        raise ConstrainError("at least one constraint is needed")
    return present[0], compiled


def _limits(value: int | Sequence[int], count: int) -> list[int]:
    limits = [value] * count if isinstance(value, int) else list(value)
    if len(limits) != count or any(limit < 1 for limit in limits):
        raise ConstrainError(f"max_new_tokens is {value!r}, expected one or more, for each prompt")
    return limits


def _batching(config: Any, model: Any, inputs: Sequence[Sequence[int]], limits: list[int]) -> Any:
    from transformers import ContinuousBatchingConfig

    if config is None:
        config = ContinuousBatchingConfig()
        if model.device.type == "cpu":
            # by default the cache takes most of the memory, which is cleared first
            config.num_blocks = _blocks(inputs, limits, config.page_size)
    config = copy.deepcopy(config)
    for name in ("use_async_batching", "use_cuda_graph"):
        value = getattr(config, name, None)
        if value is None:
            setattr(config, name, False)
        elif value is True or (isinstance(value, tuple) and any(value)):
            raise _refused(name, "would sample before the constraint has seen the last token")
    for name in ("varlen_compile_config", "decode_compile_config"):
        if getattr(config, name, None) is not None:
            raise _refused(name, "would compile the constraint away")
    return config


def _blocks(inputs: Sequence[Sequence[int]], limits: list[int], size: int) -> int:
    """Blocks that hold all sequences at once, within a bound."""
    needed = [(len(ids) + limit) // size + 2 for ids, limit in zip(inputs, limits)]
    return max(*needed, min(sum(needed), _MAX_BLOCKS))


def _hints(inputs: Sequence[Sequence[int]], limits: list[int], samples: int) -> Any:
    from transformers.generation.continuous_batching.utils import WorkloadHints

    return WorkloadHints(
        max_prompt_length=max(map(len, inputs)),
        max_generated_length=max(limits),
        num_requests=len(inputs) * samples,
    )


def _refused(name: str, reason: str) -> EngineConfigurationError:
    return EngineConfigurationError(f"{name} {reason}", engine="transformers", setting=name)


def _install(manager: Any, processor: Any) -> None:
    """Put the processor behind what changes scores and ahead of what drops or scales them."""
    from transformers.generation.continuous_batching import cb_logits_processors as cb

    warpers = (*cb.CLASSIC_TO_CB_PROCESSORS_MAP, *cb.CLASSIC_TO_CB_PROCESSORS_MAP.values())
    found = manager.logit_processor
    position = next(
        (i for i, one in enumerate(found.logits_processor) if isinstance(one, warpers)),
        len(found.logits_processor),
    )
    found.logits_processor.insert(position, processor)
    found.tensors_required += 1
    found.do_processing = True


def _processor(adapter: Adapter, requests: dict[str, Any]) -> Any:
    import torch
    from transformers.generation.continuous_batching.cb_logits_processors import (
        ContinuousBatchingLogitsProcessor,
    )

    class ConstrainedBatch(ContinuousBatchingLogitsProcessor):
        supported_kwargs: dict[str, type] = {}  # noqa: RUF012
        ignored_kwargs = ()

        def __init__(self) -> None:
            self._sequences: dict[str, ConstrainedSequence | None] = {}
            self._rows: list[ConstrainedSequence | None] = []

        def fill_defaults(self, int32_tensor: Any) -> None:
            int32_tensor.zero_()

        def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> Any:
            self._rows = [self._sequence(future.state) for future in requests_with_new_token]
            return torch.zeros(len(self._rows), dtype=torch.int32)

        def _sequence(self, state: Any) -> ConstrainedSequence | None:
            name = state.request_id
            if name not in self._sequences:
                parent = name.partition("__child#")[0]
                constraint, limit = requests.get(parent, (None, None))
                self._sequences[name] = adapter.open(
                    constraint, max_tokens=limit, request_id=parent
                )
            sequence = self._sequences[name]
            if sequence is not None:
                # what was generated before a request lost its cache has become its prompt
                before = state._true_initial_tokens or len(state.initial_tokens)
                sequence.follow([*state.initial_tokens[before:], *state.generated_tokens])
            return sequence

        def __call__(self, scores: Any, tensor_arg: Any) -> Any:
            behind = scores.shape[0] - len(self._rows)
            if behind < 0:
                raise _refused("continuous_batching_config", "hides rows from logits processors")
            # rows behind those of the requests belong to prompts that are not read to their end
            scores = scores.clone()
            adapter.mask(scores, [*self._rows, *[None] * behind])
            return scores

    return ConstrainedBatch()
