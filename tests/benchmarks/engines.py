"""One face for the engines that are measured beside each other.

An adapter is made once per tokenizer; `compile` gives a session factory for one schema, `start` a
new sequence. The timed calls do what an engine's decode loop would do, nothing more: `mask` fills
one row, `allows` reads one bit of it, `advance` takes a token.
"""

from __future__ import annotations

import json
from typing import Any, Protocol

import numpy as np

from tests.reference.vocabularies import TestVocabulary


class CompileError(Exception):
    """An engine refuses a schema."""


class Session(Protocol):
    """One sequence."""

    def mask(self) -> None:
        """Fill the engine's row with the tokens allowed next."""

    def allows(self, token_id: int) -> bool:
        """Whether the filled row allows a token."""

    def advance(self, token_id: int) -> bool:
        """Take a token; False where it is refused."""


class Engine(Protocol):
    """A constrained-decoding engine, set up for one tokenizer."""

    name: str
    version: str

    def compile(self, schema: Any) -> Any:
        """Compile afresh. Raises CompileError."""

    def start(self, compiled: Any) -> Session:
        """A new sequence."""


class _Row:
    """The row of a session and how its bits are read."""

    row: np.ndarray

    def allows(self, token_id: int) -> bool:
        return bool((int(self.row[token_id >> 5]) >> (token_id & 31)) & 1)


class ConstrainSession(_Row):
    def __init__(self, compiled: Any, bitmask: np.ndarray) -> None:
        self.matcher = compiled.matcher()
        self.bitmask = bitmask
        self.row = bitmask[0]

    def mask(self) -> None:
        self.matcher.fill_bitmask(self.bitmask, 0)

    def advance(self, token_id: int) -> bool:
        return bool(self.matcher.try_advance(token_id))


class Constrain:
    """This project."""

    name = "constrain"

    def __init__(self, vocabulary: TestVocabulary, options: dict[str, Any]) -> None:
        import importlib.metadata

        import constrain

        self.constrain = constrain
        self.version = importlib.metadata.version("constrain")
        self.vocabulary = vocabulary.vocabulary
        self.options = options
        self.bitmask = constrain.allocate_bitmask(1, self.vocabulary.size)

    def compile(self, schema: Any) -> Any:
        try:
            spec = self.constrain.JsonSchema(schema, **self.options)
            return self.constrain.compile(spec, self.vocabulary)
        except self.constrain.ConstrainError as error:
            raise CompileError(f"{type(error).__name__}: {error}") from error

    def start(self, compiled: Any) -> Session:
        return ConstrainSession(compiled, self.bitmask)


class LlguidanceSession(_Row):
    def __init__(self, matcher: Any, fill: Any, bitmask: np.ndarray) -> None:
        self.matcher = matcher
        self.fill = fill
        self.bitmask = bitmask
        self.row = bitmask[0]

    def mask(self) -> None:
        self.fill(self.matcher, self.bitmask, 0)

    def advance(self, token_id: int) -> bool:
        return bool(self.matcher.consume_token(token_id))


class Llguidance:
    """llguidance through its Python API and a tokenizer.json."""

    name = "llguidance"

    def __init__(self, vocabulary: TestVocabulary, options: dict[str, Any]) -> None:
        import llguidance
        import llguidance.hf
        import llguidance.numpy
        from tokenizers import Tokenizer
        from transformers import PreTrainedTokenizerFast

        if vocabulary.path is None:
            raise CompileError(f"{vocabulary.name} has no tokenizer.json")
        self.version = llguidance.get_version()
        # Through transformers, as its users do: it marks special tokens, which text must not match.
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer.from_file(str(vocabulary.path)),
            eos_token=Tokenizer.from_file(str(vocabulary.path)).id_to_token(vocabulary.eos_ids[0]),
        )
        self.tokenizer = llguidance.hf.from_tokenizer(
            tokenizer, n_vocab=vocabulary.vocabulary.size, eos_token=vocabulary.eos_ids[0]
        )
        self.matcher = llguidance.LLMatcher
        self.fill = llguidance.numpy.fill_next_token_bitmask
        self.bitmask = llguidance.numpy.allocate_token_bitmask(1, vocabulary.vocabulary.size)

    def compile(self, schema: Any) -> Any:
        try:
            grammar = self.matcher.grammar_from_json_schema(json.dumps(schema))
        except ValueError as error:
            raise CompileError(str(error)[:200]) from error
        matcher = self.matcher(self.tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise CompileError(matcher.get_error()[:200])
        return matcher

    def start(self, compiled: Any) -> Session:
        return LlguidanceSession(compiled.deep_copy(), self.fill, self.bitmask)


class XgrammarSession(_Row):
    def __init__(self, matcher: Any, bitmask: Any) -> None:
        self.matcher = matcher
        self.bitmask = bitmask
        self.row = bitmask.numpy()[0]

    def mask(self) -> None:
        # It leaves the row alone where everything is allowed.
        if not self.matcher.fill_next_token_bitmask(self.bitmask, 0):
            self.bitmask.fill_(-1)

    def advance(self, token_id: int) -> bool:
        return bool(self.matcher.accept_token(token_id))


class Xgrammar:
    """XGrammar through its Python API; `strict_mode=False` is JSON Schema's reading."""

    name = "xgrammar"

    def __init__(self, vocabulary: TestVocabulary, options: dict[str, Any]) -> None:
        import importlib.metadata

        import xgrammar
        from tokenizers import Tokenizer
        from transformers import PreTrainedTokenizerFast

        if vocabulary.path is None:
            raise CompileError(f"{vocabulary.name} has no tokenizer.json")
        self.version = importlib.metadata.version("xgrammar")
        self.xgrammar = xgrammar
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=Tokenizer.from_file(str(vocabulary.path))
        )
        info = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer,
            vocab_size=vocabulary.vocabulary.size,
            stop_token_ids=list(vocabulary.eos_ids),
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.bitmask = xgrammar.allocate_token_bitmask(1, info.vocab_size)

    def compile(self, schema: Any) -> Any:
        try:
            return self.compiler.compile_json_schema(json.dumps(schema), strict_mode=False)
        except RuntimeError as error:
            raise CompileError(str(error)[:200]) from error

    def start(self, compiled: Any) -> Session:
        return XgrammarSession(self.xgrammar.GrammarMatcher(compiled), self.bitmask)


ENGINES: dict[str, Any] = {
    "constrain": Constrain,
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
}
"""Name to adapter class; another engine needs a class here and nothing else."""
