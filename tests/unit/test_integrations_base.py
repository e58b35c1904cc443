"""Constraints as plain data, the cache of compiled constraints, sequences and adapters."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import constrain
from constrain.errors import ConstrainError, RegexError, SchemaError
from constrain.integrations._prefix import Continuation
from constrain.integrations.base import (
    Adapter,
    ConstrainedSequence,
    ConstraintCache,
    EngineConfigurationError,
    RequestError,
)
from constrain.integrations.requests import grammar_syntax, parse_constraint


@pytest.fixture(scope="module")
def vocabulary() -> constrain.Vocabulary:
    return constrain.Vocabulary([bytes([b]) for b in range(256)], [256, 257])


# --- plain data ----------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, None),
        ({"json_schema": SCHEMA}, constrain.JsonSchema(SCHEMA)),
        ({"json_schema": json.dumps(SCHEMA)}, constrain.JsonSchema(SCHEMA)),
        (json.dumps({"json_schema": SCHEMA}), constrain.JsonSchema(SCHEMA)),
        (
            {"json_schema": SCHEMA, "whitespace": "compact", "regex": None},
            constrain.JsonSchema(SCHEMA, whitespace="compact"),
        ),
        (
            {"json_schema": SCHEMA, "escapes": "plain", "whitespace": "spaced"},
            constrain.JsonSchema(SCHEMA, escapes="plain", whitespace="spaced"),
        ),
        ({"json_object": True}, constrain.JsonSchema({"type": "object"})),
        ({"regex": "a+"}, constrain.Regex("a+")),
        ({"choice": ["a", "b"]}, constrain.Choice(["a", "b"])),
        ({"gbnf": 'top ::= "a"', "root": "top"}, constrain.Gbnf('top ::= "a"', root="top")),
        ({"lark": 'top: "a"', "start": "top"}, constrain.Lark('top: "a"', start="top")),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
            constrain.JsonSchema(SCHEMA),
        ),
        (
            {"response_format": {"type": "json_schema", "name": "x", "schema": SCHEMA}},
            constrain.JsonSchema(SCHEMA),
        ),
        ({"response_format": {"type": "json_object"}}, constrain.JsonSchema({"type": "object"})),
        ({"response_format": {"type": "text"}}, None),
        (constrain.Regex("b"), constrain.Regex("b")),
    ],
)
def test_plain_data(data: Any, expected: Any) -> None:
    assert parse_constraint(data) == expected


def test_defaults_give_way() -> None:
    defaults = {"extra_properties": "forbid"}
    spec = parse_constraint({"json_schema": SCHEMA}, defaults=defaults)
    assert spec == constrain.JsonSchema(SCHEMA, extra_properties="forbid")
    spec = parse_constraint(
        {"json_schema": SCHEMA, "extra_properties": "schema"}, defaults=defaults
    )
    assert spec == constrain.JsonSchema(SCHEMA)
    assert parse_constraint({"regex": "a"}, defaults=defaults) == constrain.Regex("a")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (3, "is a mapping"),
        ([{"regex": "a"}], "is a mapping"),
        ("{", "JSON object"),
        ("[]", "is a mapping"),
        ({}, "found none"),
        ({"grammar": "x"}, "exactly one of json_schema"),
        ({"regex": "a", "choice": ["a"]}, "found regex and choice"),
        ({"regex": "a", "start": "b"}, "'start' is not an option of regex"),
        ({"lark": "start: 'a'", "import_paths": ["/"]}, "'import_paths' is not an option"),
        ({"json_object": False}, "must be true"),
        ({"response_format": {"type": "grammar"}}, "expected text"),
        ({"response_format": {"type": "json_schema"}}, "no json_schema.schema"),
        ({"json_schema": SCHEMA, "whitespace": "some"}, "whitespace"),
    ],
)
def test_wrong_data(data: Any, message: str) -> None:
    with pytest.raises(ConstrainError, match=message):
        parse_constraint(data)


def test_spelling_of_tool_calls() -> None:
    data = {"tools": [{"name": "f", "parameters": SCHEMA}], "format": "hermes"}
    spec = parse_constraint(data)
    assert (spec.escapes, spec.whitespace) == ("plain", "template")
    spec = parse_constraint({**data, "escapes": "any", "whitespace": "bounded"})
    assert (spec.escapes, spec.whitespace) == ("any", "bounded")


def test_grammar_syntax() -> None:
    assert grammar_syntax('root ::= "a"') == "gbnf"
    assert grammar_syntax('# it\n  my-rule  ::= "a"\n') == "gbnf"
    assert grammar_syntax('start: "a ::= b"\n') == "lark"
    assert grammar_syntax('start: "x"\n | "y ::= z"\n') == "lark"


# --- the cache -----------------------------------------------------------------------------------


def test_cache_compiles_once(vocabulary: constrain.Vocabulary) -> None:
    cache = ConstraintCache(vocabulary)
    first = cache.get({"json_schema": SCHEMA})
    assert cache.get(json.dumps({"json_schema": json.dumps(SCHEMA)})) is first
    assert cache.get(constrain.JsonSchema(SCHEMA)) is first
    assert cache.get(first) is first
    assert cache.get(None) is None
    assert cache.compilations == 1
    assert cache.get({"json_schema": SCHEMA, "whitespace": "compact"}) is not first
    assert cache.compilations == 2
    other = constrain.compile(constrain.Regex("a"), constrain.Vocabulary([b"a"], [1]))
    with pytest.raises(ConstrainError, match="another vocabulary"):
        cache.get(other)


def test_tools(vocabulary: constrain.Vocabulary) -> None:
    tool = {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    }
    data = {"tools": [tool], "tool_choice": "required", "format": "hermes"}
    adapter = Adapter(vocabulary)
    for asked in (data, json.dumps(data), data):
        sequence = adapter.open(asked)
        assert sequence is not None
        call = b'<tool_call>\n{"name": "add", "arguments": {"a": 3}}\n</tool_call>'
        assert sequence.follow(list(call))
        assert sequence.is_complete
        assert not sequence.follow(list(call.replace(b"3", b'"3"')))
    assert adapter.cache.compilations == 1
    with pytest.raises(RequestError, match="names unknown function 'sub'"):
        adapter.open({**data, "tool_choice": "sub"})
    with pytest.raises(RequestError, match="tokenizer"):
        adapter.open(
            {"tools": [tool]}
        )  # the format is that of a chat template, of which none is here
    template = (
        "{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}"
        "<call>{{ c.function.name }}|{{ c.function.arguments | tojson }}</call>"
        "{% endfor %}{% else %}{{ m.content }}{% endif %}\n{% endfor %}"
    )
    pytest.importorskip("jinja2")
    inferring = Adapter(vocabulary, tokenizer=template)
    sequence = inferring.open({"tools": [tool], "tool_choice": "required"})
    assert sequence is not None
    assert sequence.follow(list(b'<call>add|{"a": 3}</call>'))


def test_cache_is_bounded(vocabulary: constrain.Vocabulary) -> None:
    cache = ConstraintCache(vocabulary, max_entries=3)
    for n in range(3):
        cache.get({"regex": f"a{{{n}}}"})
    cache.get({"regex": "a{0}"})  # used again: the other ones are older
    cache.get({"regex": "a{3}"})
    assert len(cache) == 3
    before = cache.compilations
    cache.get({"regex": "a{0}"})
    assert cache.compilations == before
    cache.get({"regex": "a{1}"})
    assert cache.compilations == before + 1
    small = ConstraintCache(vocabulary, max_bytes=1)
    for n in range(4):
        small.get({"regex": f"b{{{n}}}"})
        assert len(small) == 1
    assert small.memory > 1
    small.clear()
    assert len(small) == 0
    with pytest.raises(ConstrainError, match="no cache"):
        ConstraintCache(vocabulary, max_entries=0)


def test_cache_keeps_no_errors(vocabulary: constrain.Vocabulary) -> None:
    cache = ConstraintCache(vocabulary)
    for _ in range(2):
        with pytest.raises(RegexError):
            cache.get({"regex": "(a"})
    assert len(cache) == 0
    assert cache.get({"regex": "(a)"}) is not None


def test_cache_from_threads(vocabulary: constrain.Vocabulary) -> None:
    cache = ConstraintCache(vocabulary)
    start = threading.Barrier(6)
    found: list[Any] = []

    def ask() -> None:
        start.wait()
        found.append(cache.get({"regex": "[a-z]{1,9}x"}))

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    assert cache.compilations == 1


# --- sequences -----------------------------------------------------------------------------------


def _sequence(vocabulary: constrain.Vocabulary, pattern: str, **options: Any) -> Any:
    return Adapter(vocabulary).open({"regex": pattern}, **options)


def test_follow_goes_anywhere(vocabulary: constrain.Vocabulary) -> None:
    sequence = _sequence(vocabulary, "ab*c")
    text = list(b"abbb")
    for count in (1, 4, 2, 2, 0, 3):
        assert sequence.follow(text[:count])
        assert sequence.token_ids == text[:count]
        assert sequence.matcher.tokens == text[:count]
    assert not sequence.follow([*text, 120])
    assert sequence.is_illegal
    assert sequence.token_ids == text
    assert not sequence.is_complete
    assert sequence.follow(list(b"ac"))
    assert sequence.is_complete
    assert not sequence.is_illegal
    assert sequence.follow([*b"ac", 256, 7, 7])  # padding behind the end
    assert sequence.is_finished
    assert sequence.follow([*b"ac", 256])
    assert sequence.follow(list(b"abc"))
    assert not sequence.is_finished


def test_fork_is_independent(vocabulary: constrain.Vocabulary) -> None:
    sequence = _sequence(vocabulary, "ab*c", max_tokens=9, request_id="r")
    sequence.follow(list(b"ab"))
    copy = sequence.fork()
    assert copy.advance(ord("c"))
    assert sequence.token_ids == list(b"ab")
    assert sequence.remaining == 7
    assert copy.remaining == 6
    assert copy.request_id == "r"
    sequence.rollback(2)
    assert copy.token_ids == list(b"abc")
    assert sequence.remaining == 9


def test_follow_equals_a_fresh_sequence(vocabulary: constrain.Vocabulary) -> None:
    """Whatever was followed before, the mask is the one of the ids."""
    import random

    choose = random.Random(3)
    pattern = "(ab|ba)*(x|yy)"
    adapter = Adapter(vocabulary)
    texts = [b"abba", b"abx", b"ayy", b"bayy", b"ababab", b"abq", b"", b"x"]
    sequence: Any = adapter.open({"regex": pattern})
    for _ in range(200):
        ids = list(choose.choice(texts))[: choose.randrange(7)]
        fresh: Any = adapter.open({"regex": pattern})
        assert sequence.follow(ids) == fresh.follow(ids)
        masks = [constrain.allocate_bitmask(1, vocabulary.size) for _ in range(2)]
        adapter.fill([sequence], masks[0])
        adapter.fill([fresh], masks[1])
        assert np.array_equal(*masks)


# --- the adapter ---------------------------------------------------------------------------------


def _allowed(adapter: Adapter, sequences: list[ConstrainedSequence | None]) -> list[list[int]]:
    logits = np.zeros((len(sequences), adapter.vocabulary.size), dtype=np.float32)
    adapter.mask(logits, sequences)
    return [np.flatnonzero(np.isfinite(row)).tolist() for row in logits]


def test_mask_of_a_batch(vocabulary: constrain.Vocabulary) -> None:
    adapter = Adapter(vocabulary)
    one, two = adapter.open({"regex": "ab"}), adapter.open({"choice": ["xy"]})
    assert one is not None
    assert two is not None
    two.follow([ord("x")])
    everything = list(range(vocabulary.size))
    assert _allowed(adapter, [one, None, two]) == [[97], everything, [121]]
    two.follow([*b"xy"])
    one.follow([1])
    assert _allowed(adapter, [two, one]) == [[256, 257], [256, 257]]
    assert one.problem is not None
    assert "not allowed" in str(one.problem)


def test_mask_under_a_limit(vocabulary: constrain.Vocabulary) -> None:
    adapter = Adapter(vocabulary)
    sequence = adapter.open({"regex": "(ab)*c"}, max_tokens=3)
    assert sequence is not None
    assert _allowed(adapter, [sequence]) == [[97, 99]]
    sequence.follow([*b"ab"])
    assert _allowed(adapter, [sequence]) == [[99]]
    with pytest.raises(RequestError, match=r"request 7: the shortest .* 4 tokens, the limit is 3"):
        adapter.open({"regex": "abcd"}, max_tokens=3, request_id=7)


def test_errors_of_requests(vocabulary: constrain.Vocabulary) -> None:
    adapter = Adapter(vocabulary)
    with pytest.raises(RequestError, match="request q") as caught:
        adapter.open({"json_schema": {"type": "strange"}}, request_id="q")
    assert caught.value.request_id == "q"
    assert isinstance(caught.value.__cause__, SchemaError)
    assert adapter.open(None) is None


def test_errors_of_logits(vocabulary: constrain.Vocabulary) -> None:
    adapter = Adapter(vocabulary, engine="some engine")
    sequence = adapter.open({"regex": "a"})
    with pytest.raises(ConstrainError, match="100 columns"):
        adapter.mask(np.zeros((1, 100), dtype=np.float32), [sequence])
    logits = np.zeros((1, vocabulary.size), dtype=np.float32)
    logits[0, ord("a")] = -np.inf
    with pytest.raises(EngineConfigurationError, match="some engine: row 0") as caught:
        adapter.mask(logits, [sequence])
    assert caught.value.engine == "some engine"
    cache = ConstraintCache(vocabulary)
    assert Adapter(vocabulary, cache=cache).cache is cache
    with pytest.raises(ConstrainError, match="own vocabulary"):
        Adapter(constrain.Vocabulary([b"a"], [1]), cache=cache)


def test_continuation() -> None:
    prefix = Continuation("engine")
    assert prefix.generated(np.array([5, 6])) == []
    assert prefix.generated([5, 6, 7]) == [7]
    assert prefix.generated([5, 6, 7, 8, 9]) == [7, 8, 9]
    assert prefix.generated([5, 6]) == []
    for other in ([5, 7, 8], [5, 6, 7, 8, 9, 1, 2, 3], [5]):
        with pytest.raises(EngineConfigurationError, match="second generation"):
            prefix.generated(other)
    fixed = Continuation("engine", prompt_length=1)
    assert fixed.generated([5, 6]) == [6]
    assert fixed.generated([5]) == []


def test_imports_are_light() -> None:
    modules = [
        "base",
        "testkit",
        "vllm",
        "vllm_backend",
        "sglang",
        "exllamav3",
        "llama_cpp",
        "mlx_lm",
    ]
    engines = ["torch", "transformers", "vllm", "sglang", "exllamav3", "llama_cpp", "mlx", "ray"]
    code = (
        "import sys, importlib\n"
        f"for name in {modules}: importlib.import_module('constrain.integrations.' + name)\n"
        f"sys.exit(', '.join(set({engines}) & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
