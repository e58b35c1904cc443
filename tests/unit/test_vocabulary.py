"""Vocabulary: construction, identity, files.  Readers of tokenizers have tests of their own."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.errors import ConstrainError, TokenizerError
from constrain.vocabulary import Vocabulary


def example() -> Vocabulary:
    return Vocabulary([b"a", None, b"\xe2\x82", b"a", b""], [1], size=7, strips_leading_space=True)


def test_content() -> None:
    vocabulary = example()
    assert vocabulary.size == len(vocabulary) == 7
    assert vocabulary.tokens == (b"a", None, b"\xe2\x82", b"a", None, None, None)
    assert vocabulary.eos_token_ids == (1,)
    assert vocabulary.decode([0, 1, 2, 6]) == b"a\xe2\x82"
    assert vocabulary.encode(b"a") is None


def test_eos_never_matches_text() -> None:
    vocabulary = Vocabulary([b"a", b"</s>"], np.array([1, 1]))
    assert vocabulary.tokens == (b"a", None)
    assert vocabulary.eos_token_ids == (1,)


def test_default_size_has_room_for_eos() -> None:
    assert Vocabulary([b"a"], [4, 3]).size == 5


@pytest.mark.parametrize(
    ("tokens", "eos", "size", "message"),
    [
        ([b"a"], [], None, "at least one"),
        ([b"a"], [-1], None, "not a token id"),
        ([b"a"], ["0"], None, "not a token id"),
        ([b"a"], [True], None, "not a token id"),
        ([b"a"], [5], 3, "not below the size"),
        ([b"a", b"b"], [0], 1, "there are 2 tokens"),
        (["a"], [0], None, "token 0 is str"),
        ([None, b""], [0], None, "no token"),
        ([b"a"], [0], 0, "size is 0"),
        ([b"a"], [0], 1 << 30, "size is"),
    ],
)
def test_refusals(tokens: list, eos: list, size: int | None, message: str) -> None:
    with pytest.raises(TokenizerError, match=message):
        Vocabulary(tokens, eos, size=size)


def test_unknown_tokenizer_is_named() -> None:
    with pytest.raises(TokenizerError, match=r"builtins\.dict"):
        Vocabulary.from_tokenizer({})


@given(
    tokens=st.lists(st.one_of(st.none(), st.binary(max_size=5)), max_size=20),
    eos=st.lists(st.integers(1, 30), min_size=1, max_size=3),
    strips=st.booleans(),
)
@settings(max_examples=50, deadline=None)
def test_save_load_pickle(
    tmp_path_factory: pytest.TempPathFactory, tokens: list, eos: list, strips: bool
) -> None:
    vocabulary = Vocabulary([b"x", *tokens], eos, strips_leading_space=strips)
    path = tmp_path_factory.mktemp("vocabulary") / "v.bin"
    vocabulary.save(path)
    for copy in (Vocabulary.load(path), pickle.loads(pickle.dumps(vocabulary))):
        assert copy == vocabulary
        assert hash(copy) == hash(vocabulary)
        assert copy.tokens == vocabulary.tokens
        assert copy.eos_token_ids == vocabulary.eos_token_ids
        assert copy.strips_leading_space is strips
    assert os.listdir(path.parent) == ["v.bin"]


def test_fingerprint_tells_contents_apart() -> None:
    variants = [
        Vocabulary([b"a", b"b"], [2]),
        Vocabulary([b"ab", b""], [2]),
        Vocabulary([b"a", b"b"], [3]),
        Vocabulary([b"a", b"b"], [2], size=9),
        Vocabulary([b"a", b"b"], [2], strips_leading_space=True),
    ]
    assert len({v.fingerprint for v in variants}) == len(variants)
    assert Vocabulary([b"a", b"b"], [2]) == variants[0]
    assert variants[0] != object()


def test_every_truncation_and_damage_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "v.bin"
    example().save(path)
    data = path.read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(ConstrainError, match=r"v\.bin"):
            Vocabulary.load(path)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x40
        path.write_bytes(damaged)
        with pytest.raises(ConstrainError, match=r"v\.bin"):
            Vocabulary.load(path)
    path.write_bytes(data + b"x")
    with pytest.raises(ConstrainError, match="expected"):
        Vocabulary.load(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConstrainError, match="cannot be read"):
        Vocabulary.load(tmp_path / "missing")


def test_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.bin"
    example().save(path)
    before = path.read_bytes()

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(ConstrainError, match="No space left"):
        Vocabulary([b"z"], [1]).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["v.bin"]
    with pytest.raises(ConstrainError, match="cannot be written"):
        example().save(tmp_path / "missing" / "v.bin")


def test_encode_undoes_an_added_space() -> None:
    tokens: list[bytes | None] = [bytes((i,)) for i in range(256)]
    vocabulary = Vocabulary(tokens, [256], encode=lambda text: list(b" " + text.encode()))
    assert vocabulary.encode(b"ab") == list(b"ab")
    assert vocabulary.encode(b" ab") == list(b" ab")
    assert vocabulary.encode(b"") == []
    assert vocabulary.encode(b"\xff") is None


def test_encode_refuses_what_the_tokenizer_rewrites() -> None:
    tokens: list[bytes | None] = [bytes((i,)) for i in range(256)]
    lowering = Vocabulary(tokens, [256], encode=lambda text: list(text.lower().encode()))
    assert lowering.encode(b"ab") == list(b"ab")
    assert lowering.encode(b"aB") is None
    special = Vocabulary(tokens, [256], encode=lambda text: [*text.encode(), 256])
    assert special.encode(b"ab") is None
    outside = Vocabulary(tokens, [256], encode=lambda text: [1000])
    assert outside.encode(b"ab") is None


def test_native_is_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    native = pytest.importorskip("constrain._native")
    calls = []
    monkeypatch.setattr(
        native, "Vocabulary", lambda *arguments: calls.append(arguments) or "built", raising=False
    )
    vocabulary = example()
    assert calls == []
    assert vocabulary.native == vocabulary.native == "built"
    assert calls == [(list(vocabulary.tokens), [1], 7)]


def test_special_tokens_have_names(tmp_path: Path) -> None:
    names = {"<s>": 2, "text": 0, "</s>": 3}
    vocabulary = Vocabulary([b"a", b"b", None, b"x"], eos_token_ids=[3], special_tokens=names)
    assert dict(vocabulary.special_tokens) == {"<s>": 2, "</s>": 3}
    assert vocabulary.decode([0, 2, 1, 3], special_tokens=True) == b"a<s>b</s>"
    assert vocabulary.decode([0, 2, 1, 3]) == b"ab"
    path = tmp_path / "vocabulary"
    vocabulary.save(path)
    assert Vocabulary.load(path).special_tokens == vocabulary.special_tokens
    assert pickle.loads(pickle.dumps(vocabulary)).special_tokens == vocabulary.special_tokens
    assert vocabulary == Vocabulary([b"a", b"b", None, b"x"], eos_token_ids=[3])
    for wrong in ({"": 2}, {"<s>": 4}, {"<s>": True}, {3: 2}):
        with pytest.raises(TokenizerError, match="special token"):
            Vocabulary([b"a", b"b", None, b"x"], eos_token_ids=[3], special_tokens=wrong)
