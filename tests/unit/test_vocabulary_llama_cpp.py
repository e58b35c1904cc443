"""The reader for llama-cpp-python, by a stand-in: the library takes long to build."""

from __future__ import annotations

import ctypes
import sys
import types
from typing import Any

import pytest

from constrain.errors import TokenizerError
from constrain.vocabulary import Vocabulary

PIECES = [b"", b"<s>", b"</s>", b" Hello", b"\n", b"x" * 32, b"y" * 40, b"<tool>", b":", b"a", b" "]
ATTRIBUTES = [1, 8, 8, 4, 32, 4, 4, 16, 4, 4, 4]


def fake_llama(monkeypatch: pytest.MonkeyPatch, *, with_function: bool = True) -> Any:
    """An object with the members of llama_cpp.Llama that are used, and its 32-byte buffer."""
    library = types.ModuleType("llama_cpp")

    def piece(token: int) -> bytes:
        return b"" if ATTRIBUTES[token] & 9 else PIECES[token]

    def token_to_piece(vocab: Any, token: int, buffer: Any, size: int, lstrip: int, special: bool):
        data = piece(token)
        if len(data) > size:
            return -len(data)
        ctypes.memmove(buffer, data, len(data))
        return len(data)

    if with_function:
        library.llama_token_to_piece = token_to_piece  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "llama_cpp", library)

    class Model:
        vocab = object()

        def token_get_attr(self, token: int) -> int:
            return ATTRIBUTES[token]

        def detokenize(self, tokens: list[int], special: bool = False) -> bytes:
            return b"".join(data if len(data) <= 32 else b"" for data in map(piece, tokens))

        def token_bos(self) -> int:
            return 1

        def token_eot(self) -> int:
            return -1

    class Llama:
        def __init__(self) -> None:
            self.metadata = {"tokenizer.ggml.model": "llama"}
            self._model = Model()

        def n_vocab(self) -> int:
            return len(PIECES)

        def token_eos(self) -> int:
            return 2

        def detokenize(self, tokens: list[int]) -> bytes:
            return self._model.detokenize(tokens)

        def tokenize(self, text: bytes, add_bos: bool, special: bool) -> list[int]:
            result, text = [], b" " + text
            while text:
                best = max(
                    (i for i in range(3, 11) if text.startswith(PIECES[i])),
                    key=lambda i: len(PIECES[i]),
                )
                result.append(best)
                text = text[len(PIECES[best]) :]
            return result

    Llama.__module__ = "llama_cpp.llama"
    return Llama()


def test_llama_cpp(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary.from_tokenizer(fake_llama(monkeypatch))
    assert vocabulary.tokens == (None, None, None, *PIECES[3:])
    assert vocabulary.eos_token_ids == (2,)
    assert vocabulary.strips_leading_space
    assert vocabulary.encode(b"a:") == [9, 8]
    assert vocabulary.encode(b" Hello") == [3]


def test_llama_cpp_long_token_is_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TokenizerError, match="token 5"):
        Vocabulary.from_tokenizer(fake_llama(monkeypatch, with_function=False))
