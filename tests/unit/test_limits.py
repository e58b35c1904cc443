"""Limits of compilation, hostile inputs, and signals during long work."""

from __future__ import annotations

import subprocess
import sys

import pytest

import constrain
from tests.reference import hostile, vocabularies

WORLD = vocabularies.load("small")
VOCABULARY = WORLD.vocabulary

REFUSED = {
    "properties 100,000 deep": "max_nesting",
    "items 100,000 deep": "max_nesting",
    "not 100,000 deep": "max_nesting",
    "allOf 100,000 deep": "max_nesting",
    "anyOf 2,000 deep": "max_nesting",
    "groups 100,000 deep": "nesting",
    "a pattern with groups 100,000 deep": "nesting",
    "Lark groups 50,000 deep": "nesting",
    "GBNF groups 50,000 deep": "nesting",
}
"""What is refused at a limit, and its name."""

MALFORMED = {
    "a constant 100,000 deep",
    "JSON text 100,000 deep",
    "a huge exponent",
    "a cycle of references",
    "a cycle through allOf",
}
IMPOSSIBLE = {"unique items out of too few", "exact cover"}


@pytest.mark.parametrize("name", hostile.CASES)
def test_hostile_inputs_are_compiled_or_refused(name: str) -> None:
    make, text = hostile.CASES[name]
    try:
        compiled = constrain.compile(make(), VOCABULARY)
    except constrain.ConstrainError as error:
        refused = error
    else:
        refused = None
    if name in REFUSED:
        assert isinstance(refused, constrain.LimitExceededError)
        assert refused.limit == REFUSED[name]
        assert len(str(refused)) < 1_000
        return
    if name in MALFORMED | IMPOSSIBLE:
        expected = constrain.UnsatisfiableError if name in IMPOSSIBLE else constrain.SchemaError
        assert isinstance(refused, expected)
        return
    assert refused is None
    matcher = compiled.matcher()
    bitmask = constrain.allocate_bitmask(1, VOCABULARY.size)
    for token in WORLD.encode(text):
        matcher.fill_bitmask(bitmask)
        allowed = bool(bitmask[0, token // 32] >> token % 32 & 1)
        assert matcher.try_advance(token) == allowed
        if not allowed:
            break


def nested(depth: int) -> constrain.JsonSchema:
    schema: object = {"type": "integer"}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return constrain.JsonSchema(schema)


def test_nesting_of_schemas() -> None:
    constrain.compile(nested(40), VOCABULARY, max_nesting=80)
    with pytest.raises(constrain.LimitExceededError, match="more than 79 deep") as caught:
        constrain.compile(nested(40), VOCABULARY, max_nesting=79)
    assert caught.value.limit == "max_nesting"
    assert caught.value.pointer == "/properties/a" * 40
    constrain.compile(nested(900), VOCABULARY)


def test_states_of_grammars() -> None:
    grammar = constrain.Gbnf('root ::= "abc"{100}')
    with pytest.raises(constrain.LimitExceededError) as caught:
        constrain.compile(grammar, VOCABULARY, max_states=50)
    assert caught.value.limit == "max_states"
    constrain.compile(constrain.Gbnf('root ::= "abc"{100}'), VOCABULARY)


def test_time_of_the_front_end_and_of_the_core() -> None:
    with pytest.raises(constrain.LimitExceededError) as caught:
        constrain.compile(nested(300), VOCABULARY, max_seconds=0)
    assert caught.value.limit == "max_seconds"
    spec = constrain.JsonSchema({"type": "string", "pattern": "^(a|b){3,7}$"})
    spec.program()
    with pytest.raises(constrain.LimitExceededError) as caught:
        constrain.compile(spec, VOCABULARY, max_seconds=-1)
    assert caught.value.limit == "max_seconds"
    compiled = constrain.compile(spec, VOCABULARY, max_seconds=100)  # nothing is left behind
    assert compiled.matcher().validate(WORLD.encode('"abab"')) == len(WORLD.encode('"abab"'))


@pytest.mark.parametrize("name", ["max_memory", "max_nesting", "max_states", "max_seconds"])
def test_limits_are_numbers(name: str) -> None:
    with pytest.raises(TypeError, match=name):
        constrain.compile(constrain.Regex("a"), VOCABULARY, **{name: "many"})


INTERRUPT = """
import signal, sys, threading, time
import constrain
from tests.reference import hostile, vocabularies

world = vocabularies.load("small")
bitmask = constrain.allocate_bitmask(40, world.vocabulary.size)
again = []

def late(signum, frame):
    again.append(signum)
    raise TimeoutError

def work(kind):
    options = hostile.slow_objects(60)
    compiled = constrain.compile(constrain.JsonSchema(options), world.vocabulary)
    matcher = compiled.matcher()
    for token in world.encode('{"'):
        matcher.advance(token)
    print("ready", flush=True)
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        while True:  # every mask is new
            if kind == "fill":
                matcher.fill_bitmask(bitmask)
            else:
                constrain.fill_bitmasks([compiled.matcher() for _ in range(40)], bitmask, threads=2)
            compiled = constrain.compile(constrain.JsonSchema(options), world.vocabulary)
            matcher = compiled.matcher()
    except TimeoutError:
        print("stopped", time.perf_counter() - start, flush=True)
    fresh = constrain.compile(constrain.JsonSchema(options), world.vocabulary).matcher()
    matcher.reset()
    text = world.encode('{"k1":')
    assert matcher.validate(text) == fresh.validate(text) == len(text)

signal.signal(signal.SIGALRM, late)
work(sys.argv[1])
assert again == [signal.SIGALRM]
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs setitimer")
@pytest.mark.parametrize("kind", ["fill", "batch"])
def test_signals_are_answered_during_masks(kind: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", INTERRUPT, kind],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "stopped" in run.stdout
