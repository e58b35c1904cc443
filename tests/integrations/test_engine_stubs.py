"""SGLang and ExLlamaV3, which need a GPU: what the conformance kit does not ask.

The modules in the place of theirs have the documented interface (SGLang 0.5.23, ExLlamaV3 1.6):
registering, the reasoning wrapper, templates that are copied, trees of drafts, jumps; triggers and
ends of filters.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from constrain.errors import ConstrainError
from constrain.integrations import exllamav3, sglang, testkit
from constrain.vocabulary import Vocabulary
from tests.integrations.engines import local_drivers, sglang_driver

SCHEMA = json.dumps({"type": "object", "properties": {"kind": {"enum": ["aa", "ab", "b"]}},
                     "required": ["kind"], "additionalProperties": False})  # fmt: skip


class Reasoner:
    """SGLang's reasoning wrapper: a backend around another one."""

    def __init__(
        self, backend: Any, parser: Any, tokenizer: Any, enable_strict_thinking: bool = False
    ) -> None:
        self.backend, self.parser = backend, parser
        self.strict = enable_strict_thinking


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules of SGLang; what is registered is in `backends` and `choices`."""
    backends: dict[str, Any] = {}
    choices: list[str] = []
    names = [
        "sglang",
        "sglang.srt",
        "sglang.srt.constrained",
        "sglang.srt.constrained.base_grammar_backend",
        "sglang.srt.constrained.reasoner_grammar_backend",
        "sglang.srt.parser",
        "sglang.srt.parser.reasoning_parser",
        "sglang.srt.server_args",
    ]
    modules: dict[str, Any] = {name: types.ModuleType(name) for name in names}
    base = modules["sglang.srt.constrained.base_grammar_backend"]
    base.BaseGrammarObject = sglang_driver.BaseGrammarObject
    base.BaseGrammarBackend = sglang_driver.BaseGrammarBackend
    base.InvalidGrammarObject = sglang_driver.InvalidGrammarObject
    base.register_grammar_backend = backends.__setitem__
    modules["sglang.srt.server_args"].add_grammar_backend_choices = choices.extend
    modules["sglang.srt.constrained.reasoner_grammar_backend"].ReasonerGrammarBackend = Reasoner
    modules["sglang.srt.parser.reasoning_parser"].ReasoningParser = types.SimpleNamespace
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(modules[parent], own, module)
    return types.SimpleNamespace(backends=backends, choices=choices)


def backend_of(engine: Any, monkeypatch: pytest.MonkeyPatch, **arguments: Any) -> Any:
    """What SGLang's scheduler gets for ``--grammar-backend constrain``."""
    sglang.register()
    vocabulary = testkit.small_vocabulary()
    asked: dict[str, Any] = {}

    def from_tokenizer(tokenizer: Any, **options: Any) -> Vocabulary:
        asked.update(options)
        return vocabulary

    monkeypatch.setattr(Vocabulary, "from_tokenizer", from_tokenizer)
    tokenizer = types.SimpleNamespace(eos_token_id=vocabulary.eos_token_ids[0])
    server = types.SimpleNamespace(**{"reasoning_parser": None, **arguments})
    backend = engine.backends["constrain"](server, tokenizer, vocabulary.size, {7})
    assert asked["size"] == vocabulary.size
    assert asked["eos_token_ids"] == sorted({7, vocabulary.eos_token_ids[0]})
    return backend


def follow(grammar: Any, text: bytes) -> Any:
    vocabulary = testkit.small_vocabulary()
    for byte in text:
        grammar.accept_token(vocabulary.tokens.index(bytes((byte,))))
    return grammar


def allowed(grammar: Any) -> set[int]:
    size = testkit.small_vocabulary().size
    mask = grammar.allocate_vocab_mask(size, 1, "cpu")
    grammar.fill_vocab_mask(mask, 0)
    bits = np.unpackbits(mask.numpy().view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits[:size]).tolist())


def test_sglang_finds_the_backend(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = backend_of(engine, monkeypatch)
    assert engine.choices == ["constrain"]
    grammar = backend.get(("json", SCHEMA))
    assert isinstance(grammar, sglang_driver.BaseGrammarObject)
    invalid = backend.get(("json", '{"type": 3}'))
    assert isinstance(invalid, sglang_driver.InvalidGrammarObject)
    assert "/type" in invalid.error_message
    anything = backend.get(("json", "$$ANY$$"))
    follow(anything, b'[{"x"')


def test_sglang_wraps_the_backend_where_models_reason(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapped = backend_of(engine, monkeypatch, reasoning_parser="qwen3", enable_strict_thinking=True)
    assert isinstance(wrapped, Reasoner)
    assert wrapped.strict
    assert wrapped.parser.model_type == "qwen3"
    assert isinstance(wrapped.backend, sglang_driver.BaseGrammarBackend)


def test_sglang_copies_begin_anew(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = backend_of(engine, monkeypatch)
    first = follow(backend.get(("json", SCHEMA)), b'{"kind":"a')
    second = backend.get(("json", SCHEMA))
    assert second is not first
    assert second.compiled is first.compiled
    assert allowed(second) == allowed(first.copy()) != allowed(first)


def test_sglang_walks_trees_of_drafts(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its verification: first child, next sibling, `rollback(1)` on the way back."""
    backend = backend_of(engine, monkeypatch)
    grammar = follow(backend.get(("json", SCHEMA)), b'{"kind":"')
    vocabulary = testkit.small_vocabulary()
    token = {name: vocabulary.tokens.index(name.encode()) for name in 'abx"}'}
    # node 0 is the last accepted token; its children are a, b and x (illegal)
    tokens = ["", "a", "a", "b", '"', "b", "x"]
    child = [1, 2, -1, 4, -1, -1, -1]
    sibling = [-1, 5, 3, -1, -1, 6, -1]
    mask = grammar.allocate_vocab_mask(vocabulary.size, len(tokens), "cpu")
    before = allowed(grammar)

    def visit(at: int, parent: int) -> None:
        legal = at == 0 or bool(mask[parent][token[tokens[at]] // 32] >> token[tokens[at]] % 32 & 1)
        if legal:
            if at:
                grammar.accept_token(token[tokens[at]])
            grammar.fill_vocab_mask(mask, at)
            if child[at] >= 0:
                visit(child[at], at)
            if at:
                grammar.rollback(1)
        if sibling[at] >= 0:
            visit(sibling[at], parent)

    visit(0, -1)
    assert allowed(grammar) == before
    assert mask[6].eq(-1).all()  # behind an illegal draft nothing is filled in
    paths = {0: b"", 1: b"a", 2: b"aa", 3: b"ab", 4: b'ab"', 5: b"b"}
    for node, path in paths.items():
        fresh = follow(backend.get(("json", SCHEMA)), b'{"kind":"' + path)
        bits = np.unpackbits(mask[node].numpy().view(np.uint8), bitorder="little")
        assert set(np.flatnonzero(bits[: vocabulary.size]).tolist()) == allowed(fresh), path


def test_sglang_ends_and_jumps(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = backend_of(engine, monkeypatch)
    vocabulary = testkit.small_vocabulary()
    grammar = backend.get(("regex", "ab?"))
    follow(grammar, b"a")
    assert not grammar.is_terminated()
    grammar.accept_token(vocabulary.eos_token_ids[0])
    assert grammar.is_terminated()
    grammar.accept_token(5)  # behind the end everything is padding
    grammar.rollback(2)
    assert not grammar.is_terminated()
    with pytest.raises(ValueError, match="not allowed"):
        grammar.accept_token(vocabulary.tokens.index(b"a"))
    before = [vocabulary.tokens.index(byte) for byte in (b"a", b"b")]
    grammar = backend.get(("regex", "ab?"))
    follow(grammar, b"ab")
    grammar.jump_and_retokenize(before, [vocabulary.tokens.index(b"ab")], -1)
    assert grammar.matcher.tokens == [vocabulary.tokens.index(b"ab")]
    # without a tokenizer at hand: tokens that have no alternative
    helper = backend.get(("regex", "(")).error_message
    assert "missing" in helper or "unterminated" in helper
    helper = backend.get(("regex", "b[ab]")).try_jump_forward(None)
    assert helper is not None
    assert vocabulary.decode(helper[0]) == b"b"
    assert grammar.jump_forward_str_state(helper) == ("", -1)
    assert backend.get(("regex", "[ab]")).try_jump_forward(None) is None


@pytest.fixture
def filter_class(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """``ConstrainFilter`` on a stand-in for ExLlamaV3's module."""
    module: Any = types.ModuleType("exllamav3.generator.filter")
    module.Filter = local_drivers.Filter
    for name in ("exllamav3", "exllamav3.generator"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    yield exllamav3.ConstrainFilter
    exllamav3.__dict__.pop("ConstrainFilter", None)


def test_exllama_filters_begin_behind_a_trigger(filter_class: Any) -> None:
    vocabulary = testkit.small_vocabulary()
    of = {name: vocabulary.tokens.index(name.encode()) for name in "ab("}
    one = filter_class(
        local_drivers.Tokenizer(), {"regex": "ab"}, vocabulary=vocabulary, trigger_token=of["("]
    )
    assert isinstance(one, local_drivers.Filter)
    one.attach(local_drivers.ExllamaJob(20))
    assert one.feed(of["b"]) is False  # free
    assert one.feed(of["("]) is False
    assert one.is_active
    mask = one.get_next_logit_mask()
    assert tuple(mask.shape) == (1, (vocabulary.size + 31) // 32)
    assert str(mask.dtype) == "torch.int32"
    bits = np.unpackbits(mask.numpy().view(np.uint8), bitorder="little")
    assert np.flatnonzero(bits).tolist() == [
        token for token, text in enumerate(vocabulary.tokens) if text in (b"a", b"ab")
    ]
    assert one.feed(of["a"]) is False
    assert one.feed(of["b"]) is True  # the text is over, and with it the job
    with pytest.raises(ConstrainError, match="forbids it"):
        one.accept_token(of["a"])


def test_exllama_filters_may_leave_the_rest_free(filter_class: Any) -> None:
    vocabulary = testkit.small_vocabulary()
    token = vocabulary.tokens.index(b"a")
    one = filter_class(
        local_drivers.Tokenizer(), {"regex": "a"}, vocabulary=vocabulary, eos_after_completed=False
    )
    one.attach(local_drivers.ExllamaJob(20))
    assert one.feed(token) is False
    assert not one.is_active
    one.rewind(1)
    assert one.is_active
    assert one.rollback_tokens(5) is False
    assert one.feed(token) is False
