"""Reads tokenizers of transformers: the fast ones, and its wrapper of mistral-common."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers._huggingface import read_backend
from constrain.tokenizers._reading import TokenizerReading

__all__ = ["generation_config_eos", "read"]


def read(tokenizer: Any) -> TokenizerReading:
    """Read a transformers tokenizer, with the end of sequence ids of its generation config."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        inner = getattr(tokenizer, "tokenizer", None)
        if inner is not None and type(inner).__module__.startswith("mistral_common"):
            from constrain.tokenizers import _mistral

            return _mistral.read(inner)
        kind = type(tokenizer)
        raise TokenizerError(
            f"{kind.__module__}.{kind.__qualname__} has no backend of the tokenizers library: its"
            " Python code decides how tokens are written.  Load the fast tokenizer of the model"
        )
    special = set(tokenizer.all_special_ids)
    reading = read_backend(backend, extra_special_ids=sorted(special))
    eos: list[int] = []
    if tokenizer.eos_token_id is not None:
        eos.append(int(tokenizer.eos_token_id))
    eos.extend(generation_config_eos(getattr(tokenizer, "name_or_path", "") or ""))
    return dataclasses.replace(reading, eos_token_ids=tuple(dict.fromkeys(eos)))


def generation_config_eos(name_or_path: str) -> list[int]:
    """End of sequence ids in the generation config of a local folder or of a cached hub model.

    The network is never used.  Chat models often end a turn with another token than the tokenizer's
    own end of sequence, and only the generation config says so.
    """
    path = _generation_config_path(name_or_path)
    if path is None:
        return []
    try:
        value = json.loads(path.read_text(encoding="utf-8")).get("eos_token_id")
    except (OSError, ValueError, AttributeError) as error:
        raise TokenizerError(f"{path} cannot be read: {error}") from error
    if value is None:
        return []
    ids = value if isinstance(value, list) else [value]
    if not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
        raise TokenizerError(f"{path}: eos_token_id {value!r} is not an integer or a list of them")
    return list(ids)


def _generation_config_path(name_or_path: str) -> Path | None:
    if not name_or_path:
        return None
    if os.path.isdir(name_or_path):
        path = Path(name_or_path) / "generation_config.json"
        return path if path.is_file() else None
    if os.path.exists(name_or_path):
        return None
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        cached = try_to_load_from_cache(name_or_path, "generation_config.json")
    except HFValidationError:  # neither a folder nor the name of a hub model
        return None
    return Path(cached) if isinstance(cached, str) else None
