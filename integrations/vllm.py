"""Plugins for vLLM: a logits processor for both of its model runners.

Installed with constrain, vLLM finds the processor by itself (entry point ``vllm.logits_processors``);
a request asks for a constraint by the extra argument ``constrain``, a constraint as plain data (see
`constrain.integrations.requests`) or its JSON text::

    SamplingParams(max_tokens=200, extra_args={"constrain": {"json_schema": schema}})
    {"vllm_xargs": {"constrain": "{\\"regex\\": \\"[0-9]+\\"}"}, ...}      # over HTTP

``max_tokens`` is a promise: the text is finished and valid within it.

**Where vLLM would drop it.**  The older runner (V1) ignores processors from entry points while it
speculates, and with asynchronous scheduling it shows them stale ids unless they are also named in
``logits_processors``.  Requests with a constraint are then refused, with what to do, which needs the
engine's configuration: :func:`register` (entry point ``vllm.general_plugins``, run in every process)
remembers it.  Settings of a request that would leave no legal token are refused as well.

The structured-output backend is in `constrain.integrations.vllm_backend`.  vLLM is imported when
the class ``LogitsProcessor`` is first asked for.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from typing import Any

from constrain._programs import byte_vocabulary
from constrain.integrations.base import Adapter, ConstrainedSequence, ConstraintCache
from constrain.integrations.errors import EngineConfigurationError, RequestError
from constrain.vocabulary import Vocabulary

__all__ = [  # noqa: F822  (LogitsProcessor is made when it is first asked for)
    "ARGUMENT",
    "LogitsProcessor",
    "ProcessorCore",
    "check_constraint",
    "check_engine",
    "register",
    "vocabulary_of",
]

ARGUMENT = "constrain"
BACKEND_VARIABLE = "CONSTRAIN_VLLM_STRUCTURED_OUTPUTS"
QUALIFIED_NAME = "constrain.integrations.vllm:LogitsProcessor"

_log = logging.getLogger("constrain")

# The configurations of the engines of this process, for checks at admission.
_configs: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
# Named by the user and found by entry point, a processor is there twice; they share the adapter.
_adapters: weakref.WeakValueDictionary[int, Adapter] = weakref.WeakValueDictionary()
_lock = threading.Lock()
_checker: list[ConstraintCache] = []


class ProcessorCore:
    """What both runners' processors do; the class ``LogitsProcessor`` adds vLLM's base classes.

    Args:
        config: the engine's configuration.
        second: the device (V1), or the requests' state (V2).
        is_pin_memory: given by V1 only.
    """

    def __init__(self, config: Any, second: Any, is_pin_memory: bool | None = None) -> None:
        self._config = config
        self._requests = None if is_pin_memory is not None else second
        self._adapter: Adapter | None = None
        # V1: batch index to sequence and its live list of ids; V2: slot to sequence.
        self._slots: dict[int, tuple[Any, Any]] = {}

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuse a request whose constraint is wrong or would not hold, with a ValueError."""
        data = _constraint_of(sampling_params)
        if data is None:
            return
        _check_engines()
        _check_request(sampling_params)
        check_constraint(data)

    # --- V1 --------------------------------------------------------------------------------------

    def is_argmax_invariant(self) -> bool:
        """False: it changes what is largest."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow what entered, left and moved in the batch."""
        if batch_update is None:
            return
        slots = self._slots
        for index in batch_update.removed:
            slots.pop(index, None)
        for index, params, _prompt, output in batch_update.added:
            sequence = self._open(params)
            if sequence is None:
                slots.pop(index, None)
            else:
                slots[index] = (sequence, output)
        for a, b, direction in batch_update.moved:
            first, second = slots.pop(a, None), slots.pop(b, None)
            if first is not None:
                slots[b] = first
            if second is not None and direction.name == "SWAP":
                slots[a] = second

    def apply(self, logits: Any, ctx: Any = None) -> Any:
        """Mask the rows of constrained requests in place.

        Args:
            logits: ``[rows, width]``.
            ctx: the layout of the step (V2 only).
        """
        if not self._slots:
            return logits
        rows: list[ConstrainedSequence | None] = [None] * logits.shape[0]
        if ctx is None:
            for index, (sequence, output) in self._slots.items():
                if output and min(output[-2:]) < 0:
                    raise _stale()
                sequence.follow(output)
                rows[index] = sequence
        elif not self._rows_of_step(ctx, rows):
            return logits
        if self._adapter is not None:
            self._adapter.mask(logits, rows)
        return logits

    # --- V2 --------------------------------------------------------------------------------------

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """A request enters a slot; says whether it has a constraint."""
        self._slots.pop(req_idx, None)
        sequence = self._open(sampling_params)
        if sequence is not None:
            self._slots[req_idx] = (sequence, None)
        return sequence is not None

    def apply_staged_writes(self) -> None:
        """Nothing is staged."""

    def _rows_of_step(self, ctx: Any, rows: list[ConstrainedSequence | None]) -> bool:
        """Fill in the sequence of each row, behind the drafts that the row has seen.

        Tokens are read from the device: what was accepted from the requests' state, drafts from
        the inputs of this step.  False if the step has no constrained request.
        """
        if not any(int(slot) in self._slots for slot in ctx.idx_mapping_np):
            return False
        slots = ctx.expanded_idx_mapping.tolist()
        offsets = ctx.expanded_local_pos.tolist()
        inputs = ctx.input_ids.tolist()
        positions = ctx.pos.tolist()
        state = self._requests
        drafts: dict[int, list[int]] = {}
        for row, slot in enumerate(slots):
            entry = self._slots.get(slot)
            if entry is None:
                continue
            sequence = entry[0]
            if offsets[row] == 0:
                start = int(_host(state.prompt_len)[slot])  # type: ignore[union-attr]
                end = positions[row] + 1
                known = sequence.token_ids
                # the accepted ids that are known already stay on the device
                ids = known
                if end - start != len(known):
                    ids = _device(state.all_token_ids)[slot, start:end].tolist()  # type: ignore[union-attr]
                sequence.follow(ids)
                drafts[slot] = ids
                rows[row] = sequence
            else:
                drafts[slot] = [*drafts[slot], inputs[row]]
                ahead = sequence.fork()
                # behind an illegal draft nothing is kept that is sampled
                rows[row] = ahead if ahead.follow(drafts[slot]) else None
        return True

    # --- both ------------------------------------------------------------------------------------

    def _shared_adapter(self) -> Adapter:
        with _lock:
            adapter = _adapters.get(id(self._config))
            if adapter is None:
                tokenizer = tokenizer_of(self._config)
                vocabulary = vocabulary_of(self._config, tokenizer)
                adapter = Adapter(vocabulary, engine="vllm", tokenizer=tokenizer)
                adapter.owner = self._config  # while the adapter lives, the id is this object's
                _adapters[id(self._config)] = adapter
        return adapter

    def _open(self, params: Any) -> ConstrainedSequence | None:
        data = _constraint_of(params)
        if data is None:
            return None
        if self._adapter is None:
            self._adapter = self._shared_adapter()
        try:
            return self._adapter.open(data, max_tokens=params.max_tokens)
        except RequestError as error:
            # Checked at admission, so this is rare (a limit of tokens that is too small for this
            # vocabulary).  A request cannot be failed from here, and others must go on: it ends
            # at once, with an empty text.
            _log.error("vllm: %s: the request ends without a text", error)
            return _refused_sequence(self._adapter)


def check_constraint(data: Any) -> None:
    """Raise a ConstrainError for a constraint that no vocabulary could serve.

    It is compiled for single bytes, which costs about a millisecond.
    """
    with _lock:
        if not _checker:
            configs = list(_configs.values())
            tokenizer = tokenizer_of(configs[0]) if configs else None
            cache = ConstraintCache(byte_vocabulary(), max_entries=64, tokenizer=tokenizer)
            _checker.append(cache)
    _checker[0].get(data)


def _constraint_of(params: Any) -> Any:
    arguments = getattr(params, "extra_args", None)
    return arguments.get(ARGUMENT) if arguments else None


# Settings of a request that may forbid every token that the constraint allows.
_CONFLICTS = {
    "allowed_token_ids": "allows other tokens only",
    "bad_words": "forbids tokens that the constraint may need",
    "ignore_eos": "goes on behind the end of the text",
    "min_tokens": "forbids the end where nothing else may follow",
    "structured_outputs": "is another constraint",
}


def _check_request(params: Any) -> None:
    for name, reason in _CONFLICTS.items():
        if getattr(params, name, None):
            raise EngineConfigurationError(
                f"a request with the argument {ARGUMENT!r} cannot have {name}, which {reason}",
                engine="vllm",
                setting=name,
            )


def _check_engines() -> None:
    for config in list(_configs.values()):
        check_engine(config)


def check_engine(config: Any) -> None:
    """Raise EngineConfigurationError if an engine's configuration would drop constraints."""
    if getattr(config, "use_v2_model_runner", False):
        return
    if getattr(config, "speculative_config", None) is not None:
        raise EngineConfigurationError(
            "this model runner drops logits processors while it speculates: turn speculation off,"
            f" use the newer runner, or the structured-output backend ({BACKEND_VARIABLE}=1)",
            engine="vllm",
            setting="speculative_config",
        )
    named = getattr(config.model_config, "logits_processors", None) or ()
    scheduler = getattr(config, "scheduler_config", None)
    if getattr(scheduler, "async_scheduling", False) and not any(map(_is_ours, named)):
        raise EngineConfigurationError(
            "with asynchronous scheduling this model runner shows stale tokens to processors that"
            f" are not named: start vLLM with logits_processors=[{QUALIFIED_NAME!r}]"
            " or without asynchronous scheduling",
            engine="vllm",
            setting="async_scheduling",
        )


def _is_ours(processor: Any) -> bool:
    if isinstance(processor, type):
        return issubclass(processor, ProcessorCore)
    return str(processor) == QUALIFIED_NAME


def _stale() -> EngineConfigurationError:
    return EngineConfigurationError(
        "the runner shows tokens that are not sampled yet: start vLLM with"
        f" logits_processors=[{QUALIFIED_NAME!r}] or without asynchronous scheduling",
        engine="vllm",
        setting="async_scheduling",
    )


def _refused_sequence(adapter: Adapter) -> ConstrainedSequence:
    """A sequence that may only end."""
    import constrain

    never = constrain.compile(constrain.Choice([""]), adapter.vocabulary)
    return ConstrainedSequence(never.matcher())


def _host(buffer: Any) -> Any:
    """The host side of one of vLLM's mirrored buffers."""
    return buffer.np if hasattr(buffer, "np") else buffer


def _device(buffer: Any) -> Any:
    return buffer.gpu if hasattr(buffer, "gpu") else buffer


def tokenizer_of(config: Any) -> Any:
    """The tokenizer of an engine's model."""
    from vllm.tokenizers import cached_tokenizer_from_config

    return cached_tokenizer_from_config(config.model_config)


def vocabulary_of(config: Any, tokenizer: Any) -> Vocabulary:
    """The vocabulary of an engine's model, with the ends of sequence at which vLLM stops."""
    model = config.model_config
    ends = {getattr(tokenizer, "eos_token_id", None)}
    generation = model.try_get_generation_config() or {}
    own = generation.get("eos_token_id")
    ends.update([own] if isinstance(own, int) or own is None else own)
    return Vocabulary.from_tokenizer(
        tokenizer,
        eos_token_ids=sorted(i for i in ends if i is not None) or None,
        size=model.get_vocab_size(),
    )


# --- entry points --------------------------------------------------------------------------------


def register() -> None:
    """Entry point ``vllm.general_plugins``: remember configurations; install the backend if the
    environment variable CONSTRAIN_VLLM_STRUCTURED_OUTPUTS is set to 1."""
    from vllm.config import VllmConfig

    original = VllmConfig.__post_init__
    if not getattr(original, "remembers", False):

        def remember(self: Any, *args: Any, **options: Any) -> Any:
            result = original(self, *args, **options)
            _configs[id(self)] = self
            return result

        remember.remembers = True  # type: ignore[attr-defined]
        VllmConfig.__post_init__ = remember
    if os.environ.get(BACKEND_VARIABLE, "0") not in ("", "0"):
        from constrain.integrations.vllm_backend import install

        install()


def _build_class() -> type:
    """ProcessorCore with the base classes that the installed vLLM has."""
    from vllm.v1.sample.logits_processor.interface import LogitsProcessor as V1

    bases: tuple[type, ...] = (ProcessorCore, V1)
    try:
        from vllm.v1.worker.gpu.sample.logits_processor.interface import LogitsProcessor as V2
    except ImportError:
        pass  # a version with one runner only
    else:
        bases = (ProcessorCore, V1, V2)
    return type(
        "LogitsProcessor", bases, {"__module__": __name__, "__doc__": ProcessorCore.__doc__}
    )


def __getattr__(name: str) -> Any:
    if name == "LogitsProcessor":
        globals()[name] = _build_class()
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
