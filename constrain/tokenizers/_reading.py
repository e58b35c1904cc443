"""What a reader of a tokenizer returns, and the pieces that several readers share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from constrain.errors import TokenizerError

__all__ = ["SPACE_SYMBOL", "TokenizerReading", "byte_piece", "check_bytes", "sample_ids"]

SPACE_SYMBOL = "\u2581"  # stands for a space in SentencePiece-style vocabularies

# How many tokens are decoded by the tokenizer itself to check a reading.  Evenly spread over the
# ids; 16,384 of them cost about 30 ms.
_CHECKED_TOKENS = 16_384


@dataclass(frozen=True)
class TokenizerReading:
    """The exact content of a tokenizer.

    Attributes:
        tokens: per id the bytes that the token appends to a text, or None where it appends none
            (special and control tokens, gaps).
        eos_token_ids: the ids that the tokenizer itself names as end of sequence, maybe none.
        strips_leading_space: the decoder drops a space at the very start of a sequence.
        encode: the tokenizer's own tokenization of a text, without special tokens; it may add a
            leading space, which :meth:`constrain.Vocabulary.encode` undoes.
        special_tokens: the ids of tokens that append no text, by their names.
    """

    tokens: list[bytes | None]
    eos_token_ids: tuple[int, ...]
    strips_leading_space: bool
    encode: Callable[[str], Sequence[int]] | None
    special_tokens: Mapping[str, int] = field(default_factory=dict)


def byte_piece(piece: str) -> int | None:
    """The byte that a byte-fallback piece such as ``<0x0A>`` stands for, or None."""
    if len(piece) != 6 or not piece.startswith("<0x") or piece[5] != ">":
        return None
    try:
        return int(piece[3:5], 16)
    except ValueError:
        return None


def sample_ids(ids: Sequence[int], limit: int = _CHECKED_TOKENS) -> list[int]:
    """At most `limit` of `ids`, evenly spread."""
    step = max(1, -(-len(ids) // limit))
    return list(ids[::step])


def check_bytes(
    tokens: Sequence[bytes | None],
    decode_batch: Callable[[list[list[int]]], list[str]],
    *,
    always: Sequence[int] = (),
) -> None:
    """Compare a reading with the tokenizer's own decoder, on a sample of the tokens.

    Each token is decoded after an anchor token, so that rules about the start of a text do not
    show.  Only tokens that are valid UTF-8 can be compared, since a decoder replaces the others.

    Raises:
        TokenizerError: the decoder writes something else than the bytes read.
    """
    comparable = []
    for token_id in dict.fromkeys([*sample_ids(range(len(tokens))), *always]):
        data = tokens[token_id]
        if data is None:
            continue
        try:
            comparable.append((token_id, data.decode("utf-8")))
        except UnicodeDecodeError:
            continue
    anchor = next((i for i, text in comparable if text.isascii() and text.isalnum()), None)
    if anchor is None:
        anchor = next(
            (i for i, data in enumerate(tokens) if data and data.isascii() and data.isalnum()), None
        )
    if anchor is None:
        raise TokenizerError(
            "no token of the tokenizer is an ASCII letter or digit, so that the bytes read cannot be"
            " checked against its decoder"
        )
    prefix = decode_batch([[anchor]])[0]
    decoded = decode_batch([[anchor, token_id] for token_id, _ in comparable])
    for (token_id, text), whole in zip(comparable, decoded):
        if whole != prefix + text:
            raise TokenizerError(
                f"token {token_id} was read as {text!r}, but the tokenizer's decoder turns"
                f" {prefix!r} followed by it into {whole!r}"
            )
