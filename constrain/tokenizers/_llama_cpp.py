"""Reads the vocabulary of a loaded ``llama_cpp.Llama``.

The library's ``detokenize`` reads through a buffer of 32 bytes and returns nothing for a longer
token.  So an empty piece of a token that is not a control token is read again through the C
function, with room enough; where that is not at hand the tokenizer is refused.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers._reading import TokenizerReading

__all__ = ["read"]

# Bits of llama_token_attr in llama.h.
_UNKNOWN, _UNUSED, _CONTROL = 1 << 0, 1 << 1, 1 << 3
_SILENT = _UNKNOWN | _UNUSED | _CONTROL


def read(llama: Any) -> TokenizerReading:
    """Read a ``llama_cpp.Llama`` (its ``vocab_only=True`` form is enough)."""
    model: Any = getattr(llama, "_model", None)
    if not hasattr(llama, "detokenize") or not hasattr(model, "token_get_attr"):
        raise TokenizerError(f"{type(llama).__qualname__} of llama_cpp is not a loaded Llama")
    detokenize = model.detokenize if hasattr(model, "detokenize") else llama.detokenize
    bos = model.token_bos()
    named = getattr(model, "token_get_text", None)
    names: dict[str, int] = {}
    tokens: list[bytes | None] = []
    for token_id in range(llama.n_vocab()):
        attributes = model.token_get_attr(token_id)
        if attributes & _SILENT or token_id == bos:
            tokens.append(None)
            if named is not None and attributes & _CONTROL:
                names[named(token_id)] = token_id
            continue
        piece = detokenize([token_id])
        # A piece of exactly 32 bytes may be a longer one, cut.
        if not piece or len(piece) >= 32:
            piece = _long_piece(model, token_id)
        tokens.append(piece or None)

    eos = [llama.token_eos()]
    token_eot = getattr(model, "token_eot", None)
    if token_eot is not None:
        eos.append(token_eot())
    metadata = getattr(llama, "metadata", None) or {}
    strips = (
        metadata.get("tokenizer.ggml.model") == "llama"
        and str(metadata.get("tokenizer.ggml.add_space_prefix", "true")).lower() != "false"
    )
    return TokenizerReading(
        tokens,
        tuple(dict.fromkeys(i for i in eos if i is not None and i >= 0)),
        strips,
        lambda text: llama.tokenize(text.encode("utf-8"), add_bos=False, special=False),
        names,
    )


def _long_piece(model: Any, token_id: int) -> bytes:
    """The bytes of a token of any length, through the C function of the library."""
    library = sys.modules.get("llama_cpp")
    function = getattr(library, "llama_token_to_piece", None)
    vocab = getattr(model, "vocab", None)
    if function is None or vocab is None:
        raise TokenizerError(
            f"token {token_id} is longer than llama-cpp-python's detokenize can read, and this"
            " version does not offer llama_token_to_piece"
        )
    size = 256
    while True:
        buffer = ctypes.create_string_buffer(size)
        count = function(vocab, token_id, buffer, size, 0, False)
        if count >= 0:
            return buffer.raw[:count]
        if -count <= size:
            raise TokenizerError(f"llama.cpp cannot write token {token_id} (code {count})")
        size = -count
