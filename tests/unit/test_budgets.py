"""Token budgets: what `remaining` promises, at the limit and far from it."""

from __future__ import annotations

import pytest

import constrain
from tests.reference.drive import allowed_ids

EOS = 260
TOKENS = [bytes([i]) for i in range(256)] + [b"ab", b"[0", b",0", b"0]", None]
VOCABULARY = constrain.Vocabulary(TOKENS, [EOS])
ARRAY = constrain.JsonSchema({"type": "array", "items": {"const": 0}, "minItems": 3})


def compiled(spec) -> constrain.CompiledConstraint:
    return constrain.compile(spec, VOCABULARY)


def allowed(matcher: constrain.Matcher, remaining: int | None) -> set[bytes | None]:
    bitmask = constrain.allocate_bitmask(1, VOCABULARY.size)
    matcher.fill_bitmask(bitmask, remaining=remaining)
    return {TOKENS[i] for i in allowed_ids(bitmask[0], VOCABULARY.size)}


def test_only_what_can_still_be_finished():
    matcher = compiled(constrain.Regex("(ab)*c?")).matcher()
    assert allowed(matcher, 1) == {b"ab", b"c", None}
    assert allowed(matcher, 2) == {b"a", b"ab", b"c", None}
    matcher.advance(TOKENS.index(b"a"))
    assert allowed(matcher, 1) == {b"b"}


def test_too_small_a_budget_says_what_is_needed():
    spec = compiled(ARRAY)
    assert spec.shortest_length == 4
    matcher = spec.matcher()
    assert matcher.tokens_needed == 4
    completion = matcher.shortest_completion()
    assert completion is not None
    assert b"".join(TOKENS[i] or b"" for i in completion) == b"[0,0,0]"
    bitmask = constrain.allocate_bitmask(1, VOCABULARY.size)
    with pytest.raises(constrain.LimitExceededError) as caught:
        matcher.fill_bitmask(bitmask, remaining=3)
    assert caught.value.limit == "remaining"
    assert caught.value.needed == 4
    assert caught.value.rows == [0]
    assert allowed_ids(bitmask[0], VOCABULARY.size).tolist() == [EOS]


def test_rows_have_budgets_of_their_own():
    spec = compiled(ARRAY)
    bitmask = constrain.allocate_bitmask(4, VOCABULARY.size)
    matchers = [spec.matcher(), None, spec.matcher(), spec.matcher()]
    with pytest.raises(constrain.LimitExceededError) as caught:
        constrain.fill_bitmasks(matchers, bitmask, remaining=[4, None, 2, None])
    assert caught.value.rows == [2]
    assert caught.value.needed == 4
    assert {TOKENS[i] for i in allowed_ids(bitmask[0], VOCABULARY.size)} == {b"[0"}
    assert (bitmask[1] == -1).all()
    assert allowed_ids(bitmask[2], VOCABULARY.size).tolist() == [EOS]
    assert {TOKENS[i] for i in allowed_ids(bitmask[3], VOCABULARY.size)} >= {b" ", b"\n"}


def test_at_the_end_nothing_remains():
    matcher = compiled(constrain.Regex("ab")).matcher()
    matcher.advance(TOKENS.index(b"ab"))
    assert matcher.tokens_needed == 0
    assert matcher.shortest_completion() == []
    assert allowed(matcher, 0) == {None}
    matcher.advance(EOS)
    assert allowed(matcher, 0) == {None}
    assert matcher.tokens_needed == 0


@pytest.mark.parametrize("remaining", [-1, True, 1.5, "3"])
def test_what_is_no_number_of_tokens(remaining):
    matcher = compiled(ARRAY).matcher()
    bitmask = constrain.allocate_bitmask(1, VOCABULARY.size)
    with pytest.raises((constrain.ConstrainError, TypeError)):
        matcher.fill_bitmask(bitmask, remaining=remaining)
    with pytest.raises((constrain.ConstrainError, TypeError)):
        constrain.fill_bitmasks([matcher], bitmask, remaining=[remaining])
    with pytest.raises(ValueError, match="one entry for each"):
        constrain.fill_bitmasks([matcher], bitmask, remaining=[1, 2])


def test_huge_budgets_are_no_budgets():
    matcher = compiled(ARRAY).matcher()
    assert allowed(matcher, 10**30) == allowed(matcher, None)


def test_tokens_ahead_stay_within_the_budget():
    matcher = compiled(constrain.Regex("(ab|abab)c?")).matcher()
    tokens = [TOKENS.index(b"a"), TOKENS.index(b"b"), TOKENS.index(b"ab"), TOKENS.index(b"c")]
    assert matcher.validate(tokens) == 4
    assert matcher.validate(tokens, remaining=4) == 4
    assert matcher.validate(tokens, remaining=2) == 2
    assert matcher.validate(tokens, remaining=1) == 0
    assert matcher.forced_tokens(remaining=1) == [TOKENS.index(b"ab")]
