"""Reads tokenizers of other libraries into exact bytes per token.

One module per library; :func:`read_tokenizer` picks it from the class of the object, so no library
is imported that the caller has not imported already.  A reader returns what the tokenizer's own
decoder would append to a text when the token follows other tokens.  Anything that a reader does not
understand is a :class:`~constrain.errors.TokenizerError` that names it: a tokenizer is never read
approximately.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers._reading import TokenizerReading

__all__ = ["TokenizerReading", "read_tokenizer"]


def read_tokenizer(tokenizer: Any) -> TokenizerReading:
    """Read `tokenizer`, whatever supported library it belongs to.

    Raises:
        TokenizerError: the library is not supported, or this tokenizer cannot be read exactly.
    """
    reader = _find_reader(tokenizer)
    if reader is None:
        kind = type(tokenizer)
        raise TokenizerError(
            f"{kind.__module__}.{kind.__qualname__} is not a tokenizer that can be read: expected a"
            " fast transformers tokenizer, tokenizers.Tokenizer, tiktoken.Encoding,"
            " sentencepiece.SentencePieceProcessor, a mistral-common tokenizer or llama_cpp.Llama;"
            " or build Vocabulary(tokens, eos_token_ids=[...]) from the bytes of each token"
        )
    return reader(tokenizer)


def _find_reader(tokenizer: Any) -> Callable[[Any], TokenizerReading] | None:
    """The reader for the library that the object's class, or a base of it, comes from.

    The name of the module decides rather than isinstance, since that would import every library.
    """
    for kind in type(tokenizer).__mro__:
        library = kind.__module__.partition(".")[0]
        if library == "transformers":
            from constrain.tokenizers import _transformers

            return _transformers.read
        if library == "tokenizers":
            from constrain.tokenizers import _huggingface

            return _huggingface.read
        if library == "tiktoken":
            from constrain.tokenizers import _tiktoken

            return _tiktoken.read
        if library == "sentencepiece":
            from constrain.tokenizers import _sentencepiece

            return _sentencepiece.read
        if library == "mistral_common":
            from constrain.tokenizers import _mistral

            return _mistral.read
        if library == "llama_cpp":
            from constrain.tokenizers import _llama_cpp

            return _llama_cpp.read
    return None
