"""A tiny random model with a small trained tokenizer, and constraints by brute force.

`FiniteConstraint` has the interface of a compiled constraint and decides by comparing with a list
of texts, so that the engine code is tested apart from the machines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.errors import UnsatisfiableError
from constrain.vocabulary import Vocabulary

WORDS = ["red", "green", "blue", "yes", "no", "maybe", "hello", "world", '{"a": 1}', "[1, 2, 3]"]


class FiniteConstraint:
    """Accepts exactly the given texts."""

    def __init__(self, texts: list[bytes], vocabulary: Vocabulary) -> None:
        self.texts = texts
        self.vocabulary = vocabulary

    def matcher(self) -> FiniteMatcher:
        return FiniteMatcher(self)


class FiniteMatcher:
    def __init__(self, constraint: FiniteConstraint, tokens: tuple[int, ...] = ()) -> None:
        self.constraint = constraint
        self.tokens = tokens

    @property
    def text(self) -> bytes:
        return self.constraint.vocabulary.decode(self.tokens)

    @property
    def is_finished(self) -> bool:
        return bool(self.tokens) and self.tokens[-1] in self.constraint.vocabulary.eos_token_ids

    @property
    def is_accepting(self) -> bool:
        return self.text in self.constraint.texts

    def allows(self, token_id: int, text: bytes | None = None) -> bool:
        if self.is_finished:
            return token_id in self.constraint.vocabulary.eos_token_ids
        if not 0 <= token_id < self.constraint.vocabulary.size:
            return False
        if token_id in self.constraint.vocabulary.eos_token_ids:
            return self.is_accepting
        data = self.constraint.vocabulary.tokens[token_id]
        if data is None:
            return False
        longer = (self.text if text is None else text) + data
        return any(whole.startswith(longer) for whole in self.constraint.texts)

    def try_advance(self, token_id: int) -> bool:
        if not self.allows(token_id):
            return False
        self.tokens += (token_id,)
        return True

    def advance(self, token_id: int) -> None:
        if not self.try_advance(token_id):
            raise constrain.errors.TokenRejectedError("not allowed", token_id=token_id)

    def rollback(self, n: int) -> None:
        self.tokens = self.tokens[: len(self.tokens) - n]

    def fork(self) -> FiniteMatcher:
        return FiniteMatcher(self.constraint, self.tokens)

    def fill_bitmask(self, bitmask: Any, row: int = 0) -> None:
        size = self.constraint.vocabulary.size
        text = self.text
        allowed = np.array([self.allows(i, text) for i in range(size)])
        dead = not allowed.any()
        if dead or self.is_finished:
            allowed[list(self.constraint.vocabulary.eos_token_ids)] = True
        bits = np.zeros(bitmask.shape[1] * 32, dtype=bool)
        bits[:size] = allowed
        bitmask[row] = np.packbits(bits, bitorder="little").view(np.int32)
        if dead and not self.is_finished:
            raise UnsatisfiableError("no token is allowed")


def fill_bitmasks(matchers: list[Any], bitmask: Any) -> None:
    dead = None
    for row, matcher in enumerate(matchers):
        if matcher is None:
            bitmask[row] = -1
            continue
        try:
            matcher.fill_bitmask(bitmask, row)
        except UnsatisfiableError as error:
            dead = error
    if dead is not None:
        raise dead


@pytest.fixture
def brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets `constrain.fill_bitmasks` fill the masks of `FiniteMatcher`s too."""
    native = constrain.fill_bitmasks

    def fill(matchers: list[Any], bitmask: Any, **more: Any) -> None:
        if all(matcher is None or isinstance(matcher, FiniteMatcher) for matcher in matchers):
            fill_bitmasks(matchers, bitmask)
        else:
            native(matchers, bitmask, **more)

    monkeypatch.setattr(constrain, "fill_bitmasks", fill)


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    """A byte-level tokenizer with end of sequence, padding and beginning tokens."""
    tk = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    backend = tk.Tokenizer(tk.models.BPE())
    backend.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tk.decoders.ByteLevel()
    trainer = tk.trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=["<eos>", "<pad>", "<bos>"],
        initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator([f"{a} {b}" for a in WORDS for b in WORDS], trainer)
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<eos>", pad_token="<pad>", bos_token="<bos>"
    )


@pytest.fixture(scope="session")
def model(tokenizer: Any) -> Any:
    """A random model whose logits are wider than its tokenizer."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=352,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
    )
    return transformers.LlamaForCausalLM(config).eval()


@pytest.fixture(scope="session")
def vocabulary(tokenizer: Any, model: Any) -> Vocabulary:
    return Vocabulary.from_tokenizer(tokenizer, model=model)


@pytest.fixture
def finite(brute_force: None, vocabulary: Vocabulary) -> Callable[[list[str]], FiniteConstraint]:
    """Makes the constraint that accepts exactly these texts."""
    return lambda texts: FiniteConstraint([text.encode() for text in texts], vocabulary)
