"""One face for the engines that are measured beside each other.

An adapter is made once per tokenizer; `compile` gives a compiled schema, `start` a new sequence of
it. The timed calls do what an engine's decode loop would do, nothing more: `mask` fills one row,
`allows` reads one bit of it, `advance` takes a token. Every engine gets one thread and no cache of
compiled schemas; otherwise its defaults for JSON Schema, unless `settings` says more.
"""

from __future__ import annotations

import importlib
import importlib.metadata
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

    def nothing(self) -> None:
        """A call into the engine that does no work: what every call costs."""


class Engine(Protocol):
    """A constrained-decoding engine, set up for one tokenizer."""

    version: str
    settings: str

    def compile(self, schema: Any) -> Any:
        """Compile afresh. Raises CompileError."""

    def start(self, compiled: Any) -> Session:
        """A new sequence."""


def load(name: str) -> Any:
    """The adapter class called `name`, of `ENGINES` or as ``module:Class``."""
    if ":" in name:
        module, _, attribute = name.partition(":")
        return getattr(importlib.import_module(module), attribute)
    return ENGINES[name]


def _fast_tokenizer(vocabulary: TestVocabulary) -> Any:
    """The tokenizer as users of transformers have it: special tokens are marked as such."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    if vocabulary.path is None:
        raise CompileError(f"{vocabulary.name} has no tokenizer.json")
    tokenizer = Tokenizer.from_file(str(vocabulary.path))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=tokenizer.id_to_token(vocabulary.eos_ids[0])
    )


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

    def nothing(self) -> None:
        self.matcher.rollback(0)


class Constrain:
    """This project."""

    settings = 'numbers="any"'

    def __init__(self, vocabulary: TestVocabulary, options: dict[str, Any] | None = None) -> None:
        import constrain

        self.constrain = constrain
        try:
            self.version = importlib.metadata.version("constrain")
        except importlib.metadata.PackageNotFoundError:
            self.version = "source"  # a tree on the path, not installed
        self.vocabulary = vocabulary.vocabulary
        self.options = {"numbers": "any", **(options or {})}
        self.settings = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
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

    def nothing(self) -> None:
        self.matcher.is_error()


class Llguidance:
    """llguidance through its Python API."""

    settings = "defaults"

    def __init__(self, vocabulary: TestVocabulary, options: dict[str, Any] | None = None) -> None:
        import llguidance
        import llguidance.hf
        import llguidance.numpy

        self.version = llguidance.get_version()
        self.tokenizer = llguidance.hf.from_tokenizer(
            _fast_tokenizer(vocabulary),
            n_vocab=vocabulary.vocabulary.size,
            eos_token=vocabulary.eos_ids[0],
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

    def nothing(self) -> None:
        self.matcher.is_terminated()


class Xgrammar:
    """XGrammar through its Python API; `strict_mode=False` is JSON Schema's reading."""

    settings = "strict_mode=False"

    def __init__(self, vocabulary: TestVocabulary, options: dict[str, Any] | None = None) -> None:
        import xgrammar

        self.version = importlib.metadata.version("xgrammar")
        self.xgrammar = xgrammar
        info = xgrammar.TokenizerInfo.from_huggingface(
            _fast_tokenizer(vocabulary),
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


class OutlinesCoreSession(_Row):
    def __init__(self, guide: Any, row: np.ndarray) -> None:
        self.guide = guide
        self.row = row
        self.place = (row.ctypes.data, len(row), 4)

    def mask(self) -> None:
        self.guide.write_mask_into(*self.place)

    def advance(self, token_id: int) -> bool:
        self.guide.advance(token_id, return_tokens=False)
        return True

    def nothing(self) -> None:
        self.guide.get_state()


class OutlinesCore:
    """outlines-core: the schema becomes a regular expression, that an index of the vocabulary."""

    settings = "defaults (nesting of recursive schemas: 3)"

    def __init__(self, vocabulary: TestVocabulary, options: dict[str, Any] | None = None) -> None:
        import outlines_core

        self.version = importlib.metadata.version("outlines-core")
        self.outlines = outlines_core
        ids: dict[bytes, list[int]] = {}
        for token_id, text in enumerate(vocabulary.tokens):
            if text:
                ids.setdefault(text, []).append(token_id)
        self.vocabulary = outlines_core.Vocabulary(vocabulary.eos_ids[0], ids)
        self.row = np.zeros((vocabulary.vocabulary.size + 31) // 32, dtype=np.int32)

    def compile(self, schema: Any) -> Any:
        try:
            regex = self.outlines.json_schema.build_regex_from_schema(json.dumps(schema))
            return self.outlines.Index(regex, self.vocabulary)
        except Exception as error:
            raise CompileError(str(error)[:200]) from error

    def start(self, compiled: Any) -> Session:
        return OutlinesCoreSession(self.outlines.Guide(compiled), self.row)


class MaskforgeSession(_Row):
    def __init__(self, session: Any, memory: bytearray, row: np.ndarray) -> None:
        self.session = session
        self.memory = memory
        self.row = row

    def mask(self) -> None:
        self.session.write_mask(self.memory)

    def advance(self, token_id: int) -> bool:
        self.session.advance(token_id)
        return True

    def nothing(self) -> None:
        _ = self.session.is_stopped


class Maskforge:
    """maskforge without its caches."""

    settings = "Compiler.without_cache()"

    def __init__(self, vocabulary: TestVocabulary, options: dict[str, Any] | None = None) -> None:
        import maskforge
        from maskforge import _native

        self.version = importlib.metadata.version("maskforge")
        self.error = _native.MaskforgeError
        self.compiler = maskforge.Compiler.without_cache()
        tokens = [text or None for text in vocabulary.tokens]
        self.vocabulary = maskforge.Vocabulary.from_id_ordered_tokens(tokens, vocabulary.eos_ids[0])
        self.memory = bytearray(4 * ((self.vocabulary.mask_vocab_size + 31) // 32))
        self.row = np.frombuffer(self.memory, dtype=np.int32)

    def compile(self, schema: Any) -> Any:
        try:
            return self.compiler.compile(schema).bind(self.vocabulary)
        except (self.error, ValueError) as error:
            raise CompileError(str(error)[:200]) from error

    def start(self, compiled: Any) -> Session:
        return MaskforgeSession(compiled.start_session(), self.memory, self.row)


class GlrmaskSession(_Row):
    def __init__(self, state: Any, row: np.ndarray, end: int) -> None:
        self.state = state
        self.row = row
        self.end = (end >> 5, np.int32(np.uint32(1 << (end & 31)).view(np.int32)))

    def mask(self) -> None:
        self.state.fill_mask(self.row)
        if self.state.is_accepting():  # it knows no end of sequence: the loop adds it
            word, bit = self.end
            self.row[word] |= bit

    def advance(self, token_id: int) -> bool:
        return bool(self.state.commit_token(token_id))

    def nothing(self) -> None:
        self.state.is_terminated()


class Glrmask:
    """glrmask with its default strategy."""

    settings = "defaults; the end of sequence where it says is_accepting()"

    def __init__(self, vocabulary: TestVocabulary, options: dict[str, Any] | None = None) -> None:
        import glrmask

        self.version = glrmask.__version__
        self.grammar = glrmask.Grammar
        self.end = vocabulary.eos_ids[0]
        self.vocabulary = glrmask.Vocab.from_id_to_bytes(
            {token_id: text for token_id, text in enumerate(vocabulary.tokens) if text}
        )
        self.row = np.zeros((vocabulary.vocabulary.size + 31) // 32, dtype=np.int32)

    def compile(self, schema: Any) -> Any:
        try:
            return self.grammar.from_json_schema(json.dumps(schema)).compile(self.vocabulary)
        except ValueError as error:
            raise CompileError(str(error)[:200]) from error

    def start(self, compiled: Any) -> Session:
        return GlrmaskSession(compiled.start(), self.row, self.end)


ENGINES: dict[str, Any] = {
    "constrain": Constrain,
    "llguidance": Llguidance,
    "xgrammar": Xgrammar,
    "outlines-core": OutlinesCore,
    "maskforge": Maskforge,
    "glrmask": Glrmask,
}
"""Name (that of its package) to adapter class; another engine needs a class here, nothing else."""
