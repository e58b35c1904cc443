"""Reads ``tokenizers.Tokenizer``: the backend of every fast transformers tokenizer.

The decoder decides what a token writes, so its description (the JSON that the library itself
serialises) is interpreted step by step: byte-level, byte fallback, replacement of the space symbol,
Metaspace, Strip and Fuse.  These act on one token at a time, whatever stands before it.  The
exception is a Strip behind a Fuse, or Metaspace with a prepended space: they drop a leading space
of the whole text, which is reported as `strips_leading_space` and not taken from the token.
WordPiece, BPEDecoder and CTC write a token differently depending on its neighbours, and are refused.

Normalizers and pre-tokenizers matter to encoding only, so they do not matter here.

Cost: about 0.3 s for 128k tokens, most of it `get_vocab` and the check against the decoder.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from constrain.errors import TokenizerError
from constrain.tokenizers._reading import SPACE_SYMBOL, TokenizerReading, byte_piece, check_bytes

__all__ = ["read", "read_backend"]

_MAX_ID = 1 << 24  # a vocabulary is an array over ids: refuse one that is nearly all gap


def read(tokenizer: Any) -> TokenizerReading:
    """Read a ``tokenizers.Tokenizer``.  It names no end of sequence token."""
    return read_backend(tokenizer, extra_special_ids=())


def read_backend(tokenizer: Any, *, extra_special_ids: Sequence[int]) -> TokenizerReading:
    """Read a ``tokenizers.Tokenizer``; `extra_special_ids` are special beside those it marks."""
    if not hasattr(tokenizer, "get_vocab") or not hasattr(tokenizer, "decode_batch"):
        raise TokenizerError(
            f"{type(tokenizer).__module__}.{type(tokenizer).__qualname__} is not a complete"
            " tokenizer: pass the tokenizers.Tokenizer that holds it"
        )
    steps = _decoder_steps(tokenizer)
    names = _names_by_id(tokenizer)
    added = tokenizer.get_added_tokens_decoder()
    special = {token_id for token_id, token in added.items() if token.special}
    special.update(extra_special_ids)
    unknown = _unknown_id(tokenizer)
    if unknown is not None:
        special.add(unknown)

    ids = [i for i, name in enumerate(names) if name is not None and i not in special]
    pieces, strips = _apply_decoder(steps, [names[i] or "" for i in ids])
    tokens: list[bytes | None] = [None] * len(names)
    for token_id, data in zip(ids, pieces):
        tokens[token_id] = data or None

    check_bytes(
        tokens,
        lambda batch: tokenizer.decode_batch(batch, skip_special_tokens=False),
        always=[i for i in added if i not in special],
    )

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False).ids

    silent = {
        name: i for i, name in enumerate(names) if name and i in special and tokens[i] is None
    }
    return TokenizerReading(tokens, (), strips, encode, silent)


def _names_by_id(tokenizer: Any) -> list[str | None]:
    """The spelling of each token by id, None in gaps."""
    vocab: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
    if not vocab:
        raise TokenizerError("the tokenizer has no tokens")
    largest = max(vocab.values())
    if largest >= _MAX_ID:
        raise TokenizerError(f"the tokenizer has a token id of {largest}, above {_MAX_ID}")
    names: list[str | None] = [None] * (largest + 1)
    for name, token_id in vocab.items():
        names[token_id] = name
    return names


def _unknown_id(tokenizer: Any) -> int | None:
    """The id of the unknown token, which stands for text that has no token, hence for no text."""
    model = tokenizer.model
    kind = type(model).__name__
    if kind == "Unigram":
        # The binding does not show unk_id; the model's serialised form does.
        return json.loads(model.__getstate__()).get("unk_id")
    if kind in ("BPE", "WordPiece", "WordLevel"):
        name = getattr(model, "unk_token", None)
        return None if name is None else model.token_to_id(name)
    raise TokenizerError(f"a tokenizer whose model is {kind!r} cannot be read")


# --- decoders ------------------------------------------------------------------------------------


def _decoder_steps(tokenizer: Any) -> list[dict[str, Any]]:
    """The flat list of decoder steps, as the library serialises them."""
    if tokenizer.decoder is None:
        raise TokenizerError(
            "the tokenizer has no decoder: the library then joins tokens with spaces, so that a"
            " token has no bytes of its own"
        )
    state = tokenizer.decoder.__getstate__()
    return _flatten(json.loads(state))


def _flatten(decoder: dict[str, Any]) -> list[dict[str, Any]]:
    steps = []
    pending = [decoder]
    while pending:
        step = pending.pop()
        if step.get("type") == "Sequence":
            pending.extend(reversed(step["decoders"]))
        else:
            steps.append(step)
    return steps


def _apply_decoder(steps: list[dict[str, Any]], names: list[str]) -> tuple[list[bytes], bool]:
    """Bytes of each token, and whether a leading space of the whole text is dropped."""
    texts: list[str] = names
    data: list[bytes] | None = None  # set once tokens have become bytes
    fused = False
    strips = False
    for step in steps:
        kind = step.get("type")
        if kind == "ByteLevel" and data is None and not fused:
            data, fused = _byte_level(texts), True
        elif kind == "ByteFallback" and data is None and not fused:
            data = [_fallback(text) for text in texts]
        elif kind == "Fuse":
            fused = True
        elif kind == "Replace":
            old, new = _replacement(step, fused)
            if data is None:
                texts = [text.replace(old, new) for text in texts]
            else:
                data = [piece.replace(old.encode(), new.encode()) for piece in data]
        elif kind == "Metaspace" and data is None and not fused:
            symbol = step.get("replacement", SPACE_SYMBOL)
            scheme = step.get("prepend_scheme")
            if scheme is None:
                scheme = "always" if step.get("add_prefix_space", True) else "never"
            strips = strips or scheme != "never"
            texts = [text.replace(symbol, " ") for text in texts]
        elif kind == "Strip":
            content, start, stop = step.get("content"), step.get("start", 0), step.get("stop", 0)
            if not fused and data is None:
                texts = [_strip(text, content, start, stop) for text in texts]
            elif content == " " and start <= 1 and stop == 0:
                strips = strips or start == 1
            else:
                raise TokenizerError(
                    f"the tokenizer's decoder strips {start} {content!r} from the start and {stop}"
                    " from the end of the whole text"
                )
        else:
            raise TokenizerError(
                f"the tokenizer's decoder step {kind!r} writes tokens in a way that depends on"
                " their neighbours, or is unknown"
                if data is None
                else f"the tokenizer's decoder step {kind!r} stands behind one that writes bytes"
            )
    if data is None:
        data = [text.encode("utf-8") for text in texts]
    return data, strips


def _replacement(step: dict[str, Any], fused: bool) -> tuple[str, str]:
    pattern = step.get("pattern", {})
    old, new = pattern.get("String"), step.get("content", "")
    if not old:
        raise TokenizerError(
            f"the tokenizer's decoder replaces the regular expression {pattern.get('Regex')!r}"
        )
    if fused and len(old) > 1:
        raise TokenizerError(
            f"the tokenizer's decoder replaces {old!r} across the bounds of tokens"
        )
    return old, new


def _strip(text: str, content: str | None, start: int, stop: int) -> str:
    begin = 0
    while begin < min(start, len(text)) and text[begin] == content:
        begin += 1
    end = len(text)
    while end > begin and len(text) - end < stop and text[end - 1] == content:
        end -= 1
    return text[begin:end]


def _fallback(text: str) -> bytes:
    value = byte_piece(text)
    return text.encode("utf-8") if value is None else bytes((value,))


def _byte_level_table() -> np.ndarray:
    """Code point to byte, -1 elsewhere, for the byte-level alphabet.

    Printable Latin-1 characters stand for themselves; the other 68 bytes, in order, for the code
    points from 256 on.
    """
    table = np.full(256 + 68, -1, dtype=np.int16)
    others = 256
    for byte in range(256):
        printable = 0x21 <= byte <= 0x7E or (0xA1 <= byte <= 0xFF and byte != 0xAD)
        if printable:
            table[byte] = byte
        else:
            table[others] = byte
            others += 1
    return table


def _byte_level(names: list[str]) -> list[bytes]:
    """Decode byte-level spellings, all tokens at once.

    A token with a character outside the alphabet (an added token) is its own UTF-8 text, as the
    library decodes it.
    """
    table = _byte_level_table()
    lengths = np.fromiter((len(name) for name in names), dtype=np.int64, count=len(names))
    ends = np.cumsum(lengths)
    points = np.frombuffer("".join(names).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    inside = points < len(table)
    values = np.where(inside, table[np.where(inside, points, 0)], -1)
    blob = values.astype(np.uint8).tobytes()
    foreign = set(np.searchsorted(ends, np.flatnonzero(values < 0), side="right").tolist())
    result = []
    start = 0
    for index, end in enumerate(ends.tolist()):
        result.append(names[index].encode("utf-8") if index in foreign else blob[start:end])
        start = end
    return result
