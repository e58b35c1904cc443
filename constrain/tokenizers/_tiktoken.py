"""Reads ``tiktoken.Encoding``: tokens are bytes already, special tokens have names of their own."""

from __future__ import annotations

from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers._reading import TokenizerReading

__all__ = ["read"]

_END_OF_TEXT = "<|endoftext|>"


def read(encoding: Any) -> TokenizerReading:
    """Read a ``tiktoken.Encoding``; its end of sequence is ``<|endoftext|>`` where it has one."""
    if not hasattr(encoding, "decode_single_token_bytes"):
        raise TokenizerError(f"{type(encoding).__qualname__} of tiktoken is not an Encoding")
    names = encoding.special_tokens_set
    silent = {name: encoding.encode_single_token(name) for name in names}
    special = set(silent.values())
    tokens: list[bytes | None] = []
    decode = encoding.decode_single_token_bytes
    for token_id in range(encoding.n_vocab):
        if token_id in special:
            tokens.append(None)
            continue
        try:
            tokens.append(decode(token_id) or None)
        except KeyError:  # a gap between the ranks and the special tokens
            tokens.append(None)
    eos = (encoding.encode_single_token(_END_OF_TEXT),) if _END_OF_TEXT in names else ()
    return TokenizerReading(tokens, eos, False, encoding.encode_ordinary, silent)
