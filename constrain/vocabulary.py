"""A model's vocabulary as exact bytes: what each token id appends to a text.

Masks are computed over bytes, so this is the one place where a tokenizer matters.  The readers in
:mod:`constrain.tokenizers` give the bytes; anything they cannot read exactly is refused.

Invariants of a :class:`Vocabulary`:

* ``tokens`` has one entry for each of the ``size`` logits.  None means that the id never matches
  text: special and control tokens, end of sequence, gaps, padding up to the width of the logits.
* No entry is ``b""``: a token that adds no text could be chosen forever.
* It is immutable, so it can be shared by threads and pickled to other processes.

**The leading space.**  SentencePiece-style tokenizers spell the word ``Hello`` as ``▁Hello``, and
their decoders drop the space at the very start of a sequence, and only there.  Generated text
follows a prompt, so its first token is not at the start: ``decode(prompt + [t])`` is
``decode(prompt)`` followed by *all* bytes of ``t``, the space included.  Hence ``tokens`` keep the
space, for the first generated token too.  Two things follow.  Decode what was generated with
:meth:`Vocabulary.decode` (or as a suffix of the whole text): decoding the generated ids alone drops
a space that the constraint has seen.  And where generation starts from nothing (no prompt, or
nothing but a beginning-of-sequence token), the first token writes its bytes without a leading
space; ``strips_leading_space`` says that the tokenizer is of this kind.

Cost: 128k tokens are read in well under a second, saved and loaded in about 20 ms.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
import threading
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from constrain.errors import ConstrainError, TokenizerError

__all__ = ["MARK_BYTE", "Vocabulary", "spelled"]

MARK_BYTE = 0xFF
"""The first byte of the spelling of a token without text; it is in no UTF-8."""

_MAX_SIZE = 1 << 24
_MAGIC = b"constrain vocabulary\n"
_FORMAT = 1
_HEADER = struct.Struct("<IQ32s")  # format, length of the payload, its SHA-256

# Texts put before a continuation where the tokenizer would otherwise add a space of its own; the
# first one that ends at the bound of a token is used.
_ANCHORS = ("", "\n", ":", "x", "0")


def spelled(token_id: int) -> bytes:
    """What stands for a token that writes no text: ``FF`` and the id as three bytes, big endian.

    Grammars ask for such tokens by these bytes (see :meth:`Vocabulary.token_bytes`).
    """
    return bytes((MARK_BYTE,)) + token_id.to_bytes(3, "big")


class Vocabulary:
    """The tokens of a model as bytes, and the ids that end a sequence.

    Args:
        tokens: for each token id the bytes that it appends to a text; None (or ``b""``) for ids
            that append none, such as special tokens.
        eos_token_ids: the ids that end a sequence, at least one, all smaller than `size`.
        size: the width of the logits; ids from ``len(tokens)`` on never match.  Models often have
            more logits than tokens.  By default ``len(tokens)``, or enough for `eos_token_ids`.
        strips_leading_space: see the module documentation.
        encode: the tokenizer's own tokenization of a text without special tokens, for
            :meth:`encode`.
        special_tokens: the ids of tokens that write no text, by their names.  They are how people
            and formats call them; they are no part of what makes two vocabularies equal.

    Raises:
        TokenizerError: an entry is neither bytes nor None, or an id is out of range.
    """

    __slots__ = (
        "__weakref__",
        "_encode",
        "_fingerprint",
        "_lock",
        "_native",
        "eos_token_ids",
        "size",
        "special_tokens",
        "strips_leading_space",
        "tokens",
    )

    tokens: tuple[bytes | None, ...]
    eos_token_ids: tuple[int, ...]
    size: int
    special_tokens: Mapping[str, int]
    strips_leading_space: bool

    def __init__(
        self,
        tokens: Sequence[bytes | None],
        eos_token_ids: Iterable[int],
        *,
        size: int | None = None,
        strips_leading_space: bool = False,
        encode: Callable[[str], Sequence[int]] | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> None:
        eos = _checked_eos(eos_token_ids)
        if size is None:
            size = max(len(tokens), max(eos) + 1)
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= _MAX_SIZE:
            raise TokenizerError(f"size is {size!r}, expected an integer from 1 to {_MAX_SIZE}")
        if size < len(tokens):
            raise TokenizerError(f"size is {size}, but there are {len(tokens)} tokens")
        if max(eos) >= size:
            raise TokenizerError(f"end of sequence id {max(eos)} is not below the size {size}")
        for token_id, data in enumerate(tokens):
            if data is not None and not isinstance(data, bytes):
                raise TokenizerError(
                    f"token {token_id} is {type(data).__name__}, expected bytes or None"
                )
        entries = [data or None for data in tokens]
        entries.extend([None] * (size - len(entries)))
        for token_id in eos:
            entries[token_id] = None
        if not any(entries):
            raise TokenizerError("no token of the vocabulary writes text")
        self.tokens = tuple(entries)
        self.eos_token_ids = eos
        self.size = size
        self.strips_leading_space = bool(strips_leading_space)
        self.special_tokens = _checked_names(special_tokens or {}, self.tokens)
        self._encode = encode
        self._fingerprint: str | None = None
        self._native: Any = None
        self._lock = threading.Lock()

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: Any,
        *,
        eos_token_ids: int | Iterable[int] | None = None,
        size: int | None = None,
        model: Any = None,
    ) -> Vocabulary:
        """Read a tokenizer of transformers, tokenizers, tiktoken, sentencepiece, mistral-common or
        llama-cpp-python.

        Tokens are what the tokenizer's decoder writes: an added token that is not special is its
        own text, special tokens never match text.

        Args:
            tokenizer: the loaded tokenizer (for llama-cpp-python, the ``Llama`` object).
            eos_token_ids: the ids that end a sequence.  By default those that the tokenizer names,
                and those of the generation config next to it (transformers) or of `model`.
            size: the width of the model's logits.  By default that of `model`, or the number of
                tokens.  Tokens beyond it are dropped: the model has no logits for them.
            model: a transformers model, asked for its generation config and the width of its
                logits.

        Raises:
            TokenizerError: the tokenizer cannot be read exactly, and why; or it names no end of
                sequence.
        """
        from constrain.tokenizers import read_tokenizer

        reading = read_tokenizer(tokenizer)
        if size is None and model is not None:
            size = _logits_width(model)
        if eos_token_ids is not None:
            eos = [eos_token_ids] if isinstance(eos_token_ids, int) else list(eos_token_ids)
        else:
            eos = [*reading.eos_token_ids, *_model_eos(model)]
            if size is not None:
                eos = [token_id for token_id in eos if token_id < size]
        if not eos:
            raise TokenizerError(
                "the tokenizer names no end of sequence token: pass eos_token_ids=[...]"
            )
        tokens = reading.tokens
        return cls(
            tokens if size is None else tokens[:size],
            eos,
            size=size,
            strips_leading_space=reading.strips_leading_space,
            encode=reading.encode,
            special_tokens={
                name: token_id
                for name, token_id in reading.special_tokens.items()
                if size is None or token_id < size
            },
        )

    # --- text ------------------------------------------------------------------------------------

    def decode(self, token_ids: Iterable[int], *, special_tokens: bool = False) -> bytes:
        """The bytes that `token_ids` append to a text, a leading space included.

        With `special_tokens`, the names of tokens that write no text stand for them.

        Raises:
            IndexError: an id is not below `size` in absolute value.
        """
        if not special_tokens:
            return b"".join(self.tokens[token_id] or b"" for token_id in token_ids)
        names = {token_id: name.encode() for name, token_id in self.special_tokens.items()}
        return b"".join(self.tokens[token_id] or names.get(token_id, b"") for token_id in token_ids)

    def token_bytes(self, reference: int | str) -> bytes:
        """The bytes that stand for a token in a grammar.

        Args:
            reference: an id, the name of a special token, or the text of any other token.

        Returns:
            The text of a token that writes text, the spelling (see :func:`spelled`) of any other.

        Raises:
            TokenizerError: there is no such token, or it writes the byte FF, which no text has.
        """
        if isinstance(reference, str):
            special = self.special_tokens.get(reference)
            if special is not None:
                return spelled(special)
            text = reference.encode()
            if text in self.tokens:
                return text
            known = ", ".join(map(repr, list(self.special_tokens)[:20])) or "none"
            raise TokenizerError(
                f"the vocabulary has no token {reference!r}; its special tokens are {known}"
            )
        if not 0 <= reference < self.size:
            raise TokenizerError(
                f"the vocabulary has no token {reference}: its ids are 0 to {self.size - 1}"
            )
        data = self.tokens[reference]
        if data is None:
            return spelled(reference)
        if MARK_BYTE in data:
            raise TokenizerError(f"token {reference} writes {data!r}, which stands in no text")
        return data

    def encode(self, text: bytes) -> list[int] | None:
        """The tokens by which the tokenizer itself would write `text` as a continuation.

        Without special tokens and without an added space; their bytes are exactly `text`.  None
        where the tokenizer is not at hand (after :meth:`load` or unpickling), where `text` is not
        UTF-8, or where the tokenizer rewrites it (normalizers, spellings of special tokens).
        """
        if self._encode is None:
            return None
        try:
            string = text.decode("utf-8")
        except UnicodeDecodeError:
            return None
        for anchor in _ANCHORS:
            ids = list(self._encode(anchor + string))
            if ids and not 0 <= min(ids) <= max(ids) < self.size:
                continue
            start = self._end_of_anchor(ids, anchor)
            if start is None:
                continue
            rest = ids[start:]
            if any(self.tokens[i] is None for i in rest):
                continue
            if self.decode(rest) == text:
                return rest
        return None

    def _end_of_anchor(self, ids: list[int], anchor: str) -> int | None:
        """How many of `ids` write `anchor`, maybe with the space that the tokenizer adds."""
        if not anchor:
            return 0
        written = b""
        for count, token_id in enumerate(ids, start=1):
            written += self.tokens[token_id] or b""
            if written in (anchor.encode(), b" " + anchor.encode()):
                return count
            if len(written) > len(anchor) + 1:
                return None
        return None

    # --- identity --------------------------------------------------------------------------------

    @property
    def fingerprint(self) -> str:
        """A hash of the content: equal for equal tokens, ends of sequence, size and space rule."""
        if self._fingerprint is None:
            self._fingerprint = hashlib.sha256(self._payload(names=False)).hexdigest()
        return self._fingerprint

    @property
    def native(self) -> Any:
        """The native trie over the tokens, built at the first use and shared."""
        if self._native is None:
            with self._lock:
                if self._native is None:
                    from constrain import _native  # type: ignore[attr-defined, unused-ignore]

                    self._native = _native.Vocabulary(
                        list(self.tokens), list(self.eos_token_ids), self.size
                    )
        return self._native

    def __len__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        text = sum(data is not None for data in self.tokens)
        return (
            f"Vocabulary(size={self.size}, {text} tokens of text,"
            f" eos_token_ids={list(self.eos_token_ids)})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        # The tokenizer behind encode() stays behind: it may not be picklable, and is megabytes.
        return _from_payload, (self._payload(),)

    # --- files -----------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the vocabulary to one file, atomically: an existing file stays until the end.

        Raises:
            ConstrainError: the file cannot be written.
        """
        payload = self._payload()
        header = _MAGIC + _HEADER.pack(_FORMAT, len(payload), hashlib.sha256(payload).digest())
        target = Path(path)
        temporary: str | None = None
        try:
            descriptor, temporary = tempfile.mkstemp(
                prefix=f".{target.name}.", suffix=".tmp", dir=target.parent
            )
            with os.fdopen(descriptor, "wb") as file:
                file.write(header)
                file.write(payload)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
            temporary = None
        except OSError as error:
            raise ConstrainError(f"{target} cannot be written: {error.strerror}") from error
        finally:
            if temporary is not None:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, tokenizer: Any = None) -> Vocabulary:
        """Read a file that :meth:`save` wrote.

        Args:
            path: the file.
            tokenizer: the tokenizer that the vocabulary was read from, for :meth:`encode`, which
                otherwise returns None.

        Raises:
            ConstrainError: the file cannot be read, is of another kind or version, truncated or
                damaged; or it is not the vocabulary of `tokenizer`.
        """
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise ConstrainError(f"{path} cannot be read: {error.strerror}") from error
        if not data.startswith(_MAGIC):
            raise ConstrainError(f"{path} is not a vocabulary saved by constrain")
        start = len(_MAGIC) + _HEADER.size
        if len(data) < start:
            raise ConstrainError(f"{path} is truncated: it ends within its header")
        version, length, digest = _HEADER.unpack_from(data, len(_MAGIC))
        if version != _FORMAT:
            raise ConstrainError(f"{path} has format {version}, this version reads {_FORMAT}")
        payload = data[start:]
        if len(payload) != length:
            raise ConstrainError(f"{path} has {len(payload)} bytes of content, expected {length}")
        if hashlib.sha256(payload).digest() != digest:
            raise ConstrainError(f"{path} is damaged: its checksum does not match")
        vocabulary = _from_payload(payload)
        if tokenizer is not None:
            from constrain.tokenizers import read_tokenizer

            reading = read_tokenizer(tokenizer)
            read = Vocabulary(
                reading.tokens[: vocabulary.size],
                vocabulary.eos_token_ids,
                size=vocabulary.size,
                strips_leading_space=reading.strips_leading_space,
            )
            if read != vocabulary:
                raise ConstrainError(f"{path} is not the vocabulary of the tokenizer given")
            vocabulary._encode = reading.encode
        return vocabulary

    def _payload(self, *, names: bool = True) -> bytes:
        """Length of a JSON header, the header, int32 length of each token (-1: None), all bytes."""
        content = {
            "eos_token_ids": list(self.eos_token_ids),
            "size": self.size,
            "strips_leading_space": self.strips_leading_space,
        }
        if names:
            content["special_tokens"] = dict(self.special_tokens)
        header = json.dumps(content, sort_keys=True).encode()
        lengths = array("i", [-1 if data is None else len(data) for data in self.tokens])
        if struct.pack("=i", 1) != struct.pack("<i", 1):
            lengths.byteswap()
        present = (data for data in self.tokens if data is not None)
        return b"".join(chain((struct.pack("<I", len(header)), header, lengths.tobytes()), present))


def _from_payload(payload: bytes) -> Vocabulary:
    (header_length,) = struct.unpack_from("<I", payload)
    header = json.loads(payload[4 : 4 + header_length])
    size = header["size"]
    start = 4 + header_length
    lengths = array("i")
    lengths.frombytes(payload[start : start + lengths.itemsize * size])
    if struct.pack("=i", 1) != struct.pack("<i", 1):
        lengths.byteswap()
    position = start + lengths.itemsize * size
    tokens: list[bytes | None] = []
    for length in lengths:
        if length < 0:
            tokens.append(None)
        else:
            tokens.append(payload[position : position + length])
            position += length
    return Vocabulary(
        tokens,
        header["eos_token_ids"],
        size=size,
        strips_leading_space=header["strips_leading_space"],
        special_tokens=header.get("special_tokens"),
    )


def _checked_names(names: Mapping[str, int], tokens: Sequence[bytes | None]) -> Mapping[str, int]:
    """The names of tokens that write no text."""
    found: dict[str, int] = {}
    for name, token_id in names.items():
        if not isinstance(name, str) or not name:
            raise TokenizerError(f"a special token is named by a text, found {name!r}")
        if isinstance(token_id, bool) or not isinstance(token_id, int):
            raise TokenizerError(f"special token {name!r}: {token_id!r} is not a token id")
        if not 0 <= token_id < len(tokens):
            raise TokenizerError(
                f"special token {name!r} has the id {token_id}, the ids are below {len(tokens)}"
            )
        if tokens[token_id] is None:
            found[name] = token_id
    return MappingProxyType(found)


def _checked_eos(ids: Iterable[int]) -> tuple[int, ...]:
    eos: list[int] = []
    for token_id in ids:
        index = getattr(token_id, "__index__", None)  # NumPy integers are welcome
        if index is None or isinstance(token_id, bool) or index() < 0:
            raise TokenizerError(f"end of sequence id {token_id!r} is not a token id")
        eos.append(index())
    if not eos:
        raise TokenizerError("a vocabulary needs at least one end of sequence id")
    return tuple(sorted(set(eos)))


def _logits_width(model: Any) -> int | None:
    """The width of a transformers model's logits."""
    head = getattr(model, "get_output_embeddings", lambda: None)()
    weight = getattr(head, "weight", None)
    if weight is not None:
        return int(weight.shape[0])
    config = getattr(model, "config", None)
    width = getattr(config, "vocab_size", None)
    return None if width is None else int(width)


def _model_eos(model: Any) -> list[int]:
    value = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    if value is None:
        return []
    return [int(value)] if isinstance(value, int) else [int(i) for i in value]
