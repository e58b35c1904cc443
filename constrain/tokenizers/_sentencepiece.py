"""Reads ``sentencepiece.SentencePieceProcessor`` (BPE and Unigram, with and without byte fallback).

What a piece writes is said by its type: control, unknown and unused pieces write nothing, byte
pieces one byte, all others their text with the space symbol read as a space.  The model file says
whether the decoder drops a leading space.  A model that rewrites decoded text (a denormalizer), or
marks spaces at the end of words, is refused.
"""

from __future__ import annotations

from typing import Any

from constrain.errors import TokenizerError
from constrain.tokenizers._reading import SPACE_SYMBOL, TokenizerReading, byte_piece, check_bytes

__all__ = ["read"]

# Fields of the published model format (sentencepiece_model.proto).
_PIECES, _TRAINER, _NORMALIZER, _DENORMALIZER = 1, 2, 3, 5
_TREAT_SPACE_AS_SUFFIX = 24
_CHARSMAP, _ADD_DUMMY_PREFIX, _REMOVE_EXTRA_SPACES = 2, 3, 4


def read(processor: Any) -> TokenizerReading:
    """Read a loaded ``SentencePieceProcessor``."""
    if not hasattr(processor, "id_to_piece"):
        raise TokenizerError(
            f"{type(processor).__qualname__} of sentencepiece is not a SentencePieceProcessor"
        )
    size = processor.get_piece_size()
    if size == 0:
        raise TokenizerError("the SentencePieceProcessor holds no model")
    strips = _strips_leading_space(processor.serialized_model_proto())
    tokens: list[bytes | None] = []
    names: dict[str, int] = {}
    for token_id in range(size):
        if (
            processor.is_control(token_id)
            or processor.is_unknown(token_id)
            or processor.is_unused(token_id)
        ):
            tokens.append(None)
            if processor.is_control(token_id):
                names[processor.id_to_piece(token_id)] = token_id
            continue
        piece = processor.id_to_piece(token_id)
        if processor.is_byte(token_id):
            value = byte_piece(piece)
            if value is None:
                raise TokenizerError(f"byte piece {token_id} is spelled {piece!r}")
            tokens.append(bytes((value,)))
        else:
            tokens.append(piece.replace(SPACE_SYMBOL, " ").encode("utf-8") or None)
    check_bytes(tokens, lambda batch: [processor.decode(ids) for ids in batch])
    eos = processor.eos_id()
    return TokenizerReading(
        tokens,
        (eos,) if eos >= 0 else (),
        strips,
        lambda text: processor.encode(text, out_type=int, add_bos=False, add_eos=False),
        names,
    )


def _strips_leading_space(model: bytes) -> bool:
    trainer = normalizer = denormalizer = b""
    for number, value in _fields(model, "the SentencePiece model", skip_pieces=True):
        if number == _TRAINER and isinstance(value, bytes):
            trainer = value
        elif number == _NORMALIZER and isinstance(value, bytes):
            normalizer = value
        elif number == _DENORMALIZER and isinstance(value, bytes):
            denormalizer = value
    if dict(_fields(trainer, "its trainer settings")).get(_TREAT_SPACE_AS_SUFFIX, 0):
        raise TokenizerError(
            "the SentencePiece model marks spaces at the end of words (treat_whitespace_as_suffix),"
            " so that what a token writes depends on what follows"
        )
    if dict(_fields(denormalizer, "its denormalizer settings")).get(_CHARSMAP, b""):
        raise TokenizerError("the SentencePiece model rewrites decoded text (denormalizer_spec)")
    settings = dict(_fields(normalizer, "its normalizer settings"))
    return bool(settings.get(_ADD_DUMMY_PREFIX, 1)) or bool(settings.get(_REMOVE_EXTRA_SPACES, 1))


def _fields(data: bytes, what: str, *, skip_pieces: bool = False) -> list[tuple[int, int | bytes]]:
    """The fields of a protobuf message as (number, value).

    With `skip_pieces`, most of the up to 256k pieces of a model are passed over.
    """
    result: list[tuple[int, int | bytes]] = []
    position, end = 0, len(data)

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    piece_tag = _PIECES << 3 | 2
    try:
        while position < end:
            if skip_pieces and data[position] == piece_tag and data[position + 1] < 0x80:
                position += 2 + data[position + 1]
                continue
            tag = varint()
            number, wire = tag >> 3, tag & 7
            if wire == 0:
                result.append((number, varint()))
            elif wire == 2:
                length = varint()
                result.append((number, data[position : position + length]))
                position += length
            elif wire in (1, 5):
                length = 8 if wire == 1 else 4
                result.append((number, data[position : position + length]))
                position += length
            else:
                raise TokenizerError(f"{what} cannot be read: wire type {wire}")
    except IndexError as error:
        raise TokenizerError(f"{what} is truncated") from error
    return result
