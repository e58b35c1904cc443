"""Tokenizer and engine cases distilled from reports about other engines, driven step by step."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import constrain

DATA = Path(os.environ.get("CONSTRAIN_DATA", Path(__file__).parents[2].parent / "shared"))
CASES = DATA / "cases" / "cases.jsonl"

# What is not an input of this version, with the reason.
NOT_HERE = {
    "eng-whitespace-pattern-honoured": "whitespace is one of three modes, not a pattern",
    "eng-think-then-json": "the caller starts the matcher behind the end of the reasoning",
}


def load() -> list[dict]:
    if not CASES.exists():
        if os.environ.get("CI"):
            raise RuntimeError(f"the shared test data is missing: {CASES}")
        return []
    cases = [json.loads(line) for line in CASES.read_text("utf-8").split("\n") if line]
    return [c for c in cases if c["kind"] in ("tokenizer", "engine")]


CASE_LIST = load()


def vocabulary_of(case: dict) -> constrain.Vocabulary:
    vocab = case["input"]["vocab"]
    tokens: list[bytes | None] = [None] * vocab["logits_width"]
    if vocab["base"] == "bytes256":
        tokens[:256] = [bytes([i]) for i in range(256)]
    for token, entry in vocab["tokens"].items():
        tokens[int(token)] = bytes.fromhex(entry["hex"])
    return constrain.Vocabulary(tokens, vocab["eos"], size=vocab["logits_width"])


def compile_case(case: dict) -> constrain.CompiledConstraint:
    constraint = case["input"]["constraint"]
    if "regex" in constraint:
        spec = constrain.Regex(constraint["regex"])
    else:
        spec = constrain.JsonSchema(constraint["schema"], **constraint.get("options", {}))
    return constrain.compile(spec, vocabulary_of(case))


def open_ids(matcher: constrain.Matcher) -> set[int]:
    bitmask = constrain.allocate_bitmask(1, matcher.compiled.vocabulary.size)
    matcher.fill_bitmask(bitmask)
    bits = np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def check_mask(matcher: constrain.Matcher, check: dict) -> None:
    ids = open_ids(matcher)
    assert set(check["allow"]) <= ids
    assert not set(check["deny"]) & ids
    vocabulary = matcher.compiled.vocabulary
    for token in ids:
        assert vocabulary.tokens[token] or token in vocabulary.eos_token_ids
    for token in range(vocabulary.size):
        assert (matcher.validate([token]) == 1) == (token in ids)


def accept(matcher: constrain.Matcher, ids: list[int]) -> bool:
    return all(matcher.try_advance(token) for token in ids)


def run(matchers: list[constrain.Matcher], at: int, op: dict) -> None:
    matcher = matchers[at]
    kind = op["op"]
    if kind == "accept":
        assert accept(matcher, op["ids"]) is op["expect"]
    elif kind == "accept_many":
        consumed = matcher.validate(op["ids"])
        assert consumed == op["expect_consumed"]
        assert accept(matcher, op["ids"][:consumed])
    elif kind == "validate":
        assert matcher.validate(op["ids"]) == op["expect_accepted"]
    elif kind == "mask":
        check_mask(matcher, op)
    elif kind == "terminated":
        assert matcher.is_finished is op["expect"]
    elif kind == "complete":
        assert matcher.is_accepting is op["expect"]
    elif kind == "mask_after_end":
        assert open_ids(matcher) == set(matcher.compiled.vocabulary.eos_token_ids)
    elif kind == "rollback":
        matcher.rollback(op["n"])
    elif kind == "reset":
        matcher.reset()
    elif kind == "fork":
        matchers[:] = [matcher.fork() for _ in range(op["copies"])]
    elif kind == "on":
        for inner in op["then"]:
            run(matchers, op["copy"], inner)
    elif kind == "reorder":
        matchers[:] = [matchers[i].fork() for i in op["order"]]
    elif kind == "stateless_mask":
        fresh = matcher.compiled.matcher()
        assert accept(fresh, op["at"])
        check_mask(fresh, op)
    else:
        raise ValueError(f"unknown operation {kind}")


@pytest.mark.data
@pytest.mark.skipif(not CASE_LIST, reason="shared test data not found (CONSTRAIN_DATA)")
@pytest.mark.parametrize("case", CASE_LIST, ids=[c["id"] for c in CASE_LIST])
def test_case(case):
    if case["id"] in NOT_HERE:
        pytest.skip(NOT_HERE[case["id"]])
    compiled = compile_case(case)
    for check in case.get("checks", []):
        matcher = compiled.matcher()
        assert accept(matcher, check["at"])
        if "expect" in check:  # nothing can continue
            with pytest.raises(constrain.UnsatisfiableError):
                open_ids(matcher)
            continue
        check_mask(matcher, check)
        assert matcher.is_accepting or not check.get("complete")
    matchers = [compiled.matcher()]
    for op in case.get("ops", []):
        run(matchers, 0, op)
    assert case.get("checks") or case.get("ops")


@pytest.mark.data
@pytest.mark.skipif(not CASE_LIST, reason="shared test data not found (CONSTRAIN_DATA)")
@pytest.mark.parametrize("width", [301, 319, 352, 400])
def test_padded_logits_are_masked(width):
    case = next(c for c in CASE_LIST if c["id"] == "tok-padded-logits")
    compiled = compile_case(case)
    bitmask = constrain.allocate_bitmask(1, compiled.vocabulary.size)
    compiled.matcher().fill_bitmask(bitmask)
    logits = np.zeros((1, width), dtype=np.float32)
    constrain.apply_bitmask(logits, bitmask)
    assert set(np.flatnonzero(np.isfinite(logits[0])).tolist()) == {102, 116, 256}
