"""Tokens as bytes: how grammars refer to what only a vocabulary knows.

A token that writes text stands for its text.  A token that writes none (a special token) has a
spelling of its own in the byte trie: ``FF`` and its id as three bytes, big endian.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import TokenizerError

if TYPE_CHECKING:
    from constrain.vocabulary import Vocabulary

__all__ = ["MARK_BYTE", "check_id", "spelled", "token_bytes"]

MARK_BYTE = 0xFF
"""The first byte of a token without text; it begins no UTF-8."""


def spelled(token_id: int) -> bytes:
    """The spelling of a token that writes no text."""
    return bytes((MARK_BYTE,)) + token_id.to_bytes(3, "big")


def check_id(vocabulary: Vocabulary, token_id: int) -> None:
    """Raises TokenizerError if the vocabulary has no such id."""
    if not 0 <= token_id < vocabulary.size:
        raise TokenizerError(
            f"the vocabulary has no token {token_id}: its ids are 0 to {vocabulary.size - 1}"
        )


def token_bytes(vocabulary: Vocabulary, reference: int | str) -> bytes:
    """The bytes that stand for a token.  Raises TokenizerError where there is none."""
    if isinstance(reference, str):
        text = reference.encode()
        if text in vocabulary.tokens:
            return text
        raise TokenizerError(f"the vocabulary has no token {reference!r}")
    check_id(vocabulary, reference)
    return vocabulary.tokens[reference] or spelled(reference)
