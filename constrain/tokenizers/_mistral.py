"""Reads mistral-common tokenizers: ``MistralTokenizer``, ``Tekkenizer``, ``SentencePieceTokenizer``."""

from __future__ import annotations

import dataclasses
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers._reading import TokenizerReading

__all__ = ["read"]


def read(tokenizer: Any) -> TokenizerReading:
    """Read a mistral-common tokenizer, or the one inside its chat wrappers."""
    inner = getattr(tokenizer, "instruct_tokenizer", tokenizer)  # MistralTokenizer
    inner = getattr(inner, "tokenizer", inner)  # InstructTokenizer
    if hasattr(inner, "id_to_byte_piece"):
        return _read_tekken(inner)
    model = getattr(inner, "_model", None)
    if type(model).__module__.partition(".")[0] == "sentencepiece":
        from constrain.tokenizers import _sentencepiece

        reading = _sentencepiece.read(model)
        # mistral-common hides no token beyond the model's own control pieces.
        return dataclasses.replace(reading, eos_token_ids=(inner.eos_id,))
    kind = type(tokenizer)
    raise TokenizerError(
        f"{kind.__module__}.{kind.__qualname__} holds neither a Tekkenizer nor a SentencePiece model"
    )


def _read_tekken(tekken: Any) -> TokenizerReading:
    tokens: list[bytes | None] = []
    names: dict[str, int] = {}
    for token_id in range(tekken.n_words):
        if tekken.is_special(token_id):
            tokens.append(None)
            names[tekken.id_to_piece(token_id)] = token_id
        else:
            tokens.append(tekken.id_to_byte_piece(token_id) or None)
    return TokenizerReading(
        tokens,
        (tekken.eos_id,),
        False,
        lambda text: tekken.encode(text, bos=False, eos=False),
        names,
    )
