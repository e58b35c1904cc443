"""``model.generate`` under a constraint: see `constrain.integrations.transformers`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constrain.integrations.errors import EngineConfigurationError
from constrain.integrations.transformers import ConstrainedLogitsProcessor

__all__ = ["check_settings", "generate"]

# Settings of `generate` that leave no legal token, or write tokens that no processor has seen.
_REFUSED: dict[str, str] = {
    "assistant_ensemble_weight": "mixes in an assistant's tokens that the constraint may forbid",
    "constraints": "is run by code from elsewhere, which need not apply processors",
    "dola_layers": "is run by code from elsewhere, which need not apply processors",
    "force_words_ids": "is run by code from elsewhere, which need not apply processors",
    "forced_bos_token_id": "writes a first token that the constraint has not seen",
    "forced_eos_token_id": "ends a text that may not be complete",
    "min_length": "forbids the end where nothing else may follow",
    "min_new_tokens": "forbids the end where nothing else may follow",
    "no_repeat_ngram_size": "forbids repetitions that the constraint may demand",
    "penalty_alpha": "is run by code from elsewhere, which need not apply processors",
    "prefix_allowed_tokens_fn": "is another constraint",
    "token_healing": "rewrites the end of the prompt outside of the constraint",
}


def generate(
    model: Any,
    inputs: Any,
    constraints: Any,
    *,
    logits_processor: Any = None,
    prompt_length: Any = None,
    **options: Any,
) -> Any:
    """``model.generate(**inputs, **options)`` under a constraint.

    Args:
        model: a transformers model that generates.
        inputs: what its tokenizer or processor returned (a mapping with ``input_ids``), or the
            tensor of input ids.
        constraints: one compiled constraint, a list with one (or None) for each sequence of the
            batch, or a `ConstrainedLogitsProcessor`.
        logits_processor: further processors; they run before the constraint.
        prompt_length: see `ConstrainedLogitsProcessor`; to continue texts that were begun before.
        options: arguments of ``generate``.  One of ``max_new_tokens`` and ``max_length`` (or their
            values in the generation config) is needed; it is a promise: texts are finished and
            valid within it.

    Returns:
        What ``generate`` returns.

    Raises:
        EngineConfigurationError: a setting would drop or break the constraint, and which.
        LimitExceededError: the shortest valid text has more tokens than there may be.
    """
    config = options.get("generation_config") or model.generation_config
    check_settings(model, options, config)
    if not isinstance(inputs, Mapping):
        inputs = {"input_ids": inputs}
    if isinstance(constraints, ConstrainedLogitsProcessor):
        processor = constraints
    else:
        processor = ConstrainedLogitsProcessor(
            constraints,
            prompt_length=prompt_length,
            max_new_tokens=_limit(model, inputs, options, config, prompt_length),
        )
    if options.get("eos_token_id") is None:
        options["eos_token_id"] = _ends(processor.vocabulary, config)
    _check_ends(processor.vocabulary, options["eos_token_id"])
    return model.generate(
        **inputs, logits_processor=[*(logits_processor or ()), processor], **options
    )


def check_settings(model: Any, options: Mapping[str, Any], config: Any) -> None:
    """Raise EngineConfigurationError for settings under which the constraint would not hold."""
    for name, reason in _REFUSED.items():
        value = options.get(name, getattr(config, name, None))
        # 0 is a token id, but no length
        if value is not None and value is not False and (value != 0 or name.endswith("_id")):
            raise EngineConfigurationError(
                f"{name}={value!r} {reason}", engine="transformers", setting=name
            )
    if isinstance(options.get("custom_generate"), str):
        raise EngineConfigurationError(
            "custom_generate names code from elsewhere, which need not apply processors",
            engine="transformers",
            setting="custom_generate",
        )
    if (options.get("num_beam_groups") or getattr(config, "num_beam_groups", None) or 1) > 1:
        raise EngineConfigurationError(
            "num_beam_groups is run by code from elsewhere, which need not apply processors",
            engine="transformers",
            setting="num_beam_groups",
        )
    attention = getattr(getattr(model, "config", None), "_attn_implementation", None) or ""
    if "paged" in attention:
        raise EngineConfigurationError(
            f"with the attention {attention!r}, generate drops logits processors: use"
            " constrain.integrations.transformers.generate_batch",
            engine="transformers",
            setting="attn_implementation",
        )
    _check_assistant(model, options)


def _check_assistant(model: Any, options: Mapping[str, Any]) -> None:
    """An assistant is handed the same processors, so it must have the same token ids."""
    assistant = options.get("assistant_model")
    if options.get("assistant_tokenizer") is not None:
        raise EngineConfigurationError(
            "an assistant with another tokenizer cannot share the constraint",
            engine="transformers",
            setting="assistant_tokenizer",
        )
    if assistant is None:
        return
    widths = [_width(one) for one in (model, assistant)]
    if None not in widths and widths[0] != widths[1]:
        raise EngineConfigurationError(
            f"the assistant has {widths[1]} logits, the model {widths[0]}: with another vocabulary"
            " it cannot share the constraint",
            engine="transformers",
            setting="assistant_model",
        )


def _width(model: Any) -> int | None:
    config: Any = getattr(model, "config", None)
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    return getattr(text, "vocab_size", None)


def _limit(
    model: Any,
    inputs: Mapping[str, Any],
    options: Mapping[str, Any],
    config: Any,
    prompt_length: Any,
) -> Any:
    """How many ids may come behind the prompt, for each sequence where they differ."""
    ids = inputs.get("input_ids", inputs.get("inputs"))
    encoder = bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))
    if encoder:
        ids = inputs.get("decoder_input_ids")
    columns = 1 if ids is None and encoder else 0 if ids is None else ids.shape[1]
    new = options.get("max_new_tokens", getattr(config, "max_new_tokens", None))
    if new is None:
        length = options.get("max_length", getattr(config, "max_length", None))
        if length is None:
            raise EngineConfigurationError(
                "without max_new_tokens, generate stops after 20 tokens: pass it",
                engine="transformers",
                setting="max_new_tokens",
            )
        new = length - columns
    if prompt_length is None:
        return new
    lengths = [prompt_length] if isinstance(prompt_length, int) else list(prompt_length)
    limits = [columns + new - length for length in lengths]
    return limits[0] if len(limits) == 1 else limits


def _ends(vocabulary: Any, config: Any) -> list[int]:
    """The ids at which `generate` stops: the model's own and those of the vocabulary."""
    own = config.eos_token_id
    ids = [] if own is None else [own] if isinstance(own, int) else list(own)
    return sorted({*map(int, ids), *vocabulary.eos_token_ids})


def _check_ends(vocabulary: Any, eos_token_id: Any) -> None:
    ids = [eos_token_id] if isinstance(eos_token_id, int) else list(map(int, eos_token_id))
    missing = [i for i in vocabulary.eos_token_ids if i not in ids]
    if missing:
        raise EngineConfigurationError(
            f"eos_token_id lacks {missing}, at which the constraint lets a text end",
            engine="transformers",
            setting="eos_token_id",
        )
    writing = [i for i in ids if 0 <= i < vocabulary.size and vocabulary.tokens[i] is not None]
    if writing:
        raise EngineConfigurationError(
            f"eos_token_id has {writing}, which are text to the constraint: pass them to"
            " Vocabulary as eos_token_ids",
            engine="transformers",
            setting="eos_token_id",
        )
