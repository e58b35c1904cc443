"""Matcher: what each method promises, before and after the end, and how refusals look."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import constrain

EOS = 300
BYTES = [bytes([i]) for i in range(256)]
VOCABULARY = constrain.Vocabulary([*BYTES, b"ab", b"abc", b"", b"ab", None], [EOS, 290], size=310)


def compiled(pattern: str, **options) -> constrain.CompiledConstraint:
    return constrain.compile(constrain.Regex(pattern), VOCABULARY, **options)


def allowed(matcher: constrain.Matcher) -> set[int]:
    bitmask = constrain.allocate_bitmask(1, VOCABULARY.size)
    matcher.fill_bitmask(bitmask)
    bits = np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def test_public_names_are_sorted_and_exist():
    assert constrain.__all__ == sorted(constrain.__all__, key=str)
    for name in constrain.__all__:
        assert getattr(constrain, name) is not None


def test_import_is_light():
    heavy = ("torch", "transformers", "jsonschema", "pydantic", "rich")
    code = f"import sys, constrain; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_duplicates_are_open_and_empty_tokens_closed():
    assert allowed(compiled("(ab)+").matcher()) == {97, 256, 259}


def test_rejection_names_the_token_and_changes_nothing():
    matcher = compiled("ab").matcher()
    matcher.advance(97)
    with pytest.raises(constrain.TokenRejectedError) as caught:
        matcher.advance(257)
    assert caught.value.token_id == 257
    assert caught.value.text == b"abc"
    assert caught.value.expected
    assert "b'abc'" in str(caught.value)
    assert matcher.tokens == [97]
    for token in (EOS, -1, 310, 260, 258, 10**9):
        assert not matcher.try_advance(token)
        with pytest.raises(constrain.TokenRejectedError) as caught:
            matcher.advance(token)
        assert caught.value.text is None
    assert allowed(matcher) == {98}


def test_after_the_end():
    matcher = compiled("ab").matcher()
    matcher.advance(256)
    assert matcher.is_accepting
    assert not matcher.is_finished
    assert allowed(matcher) == {EOS, 290}
    matcher.advance(290)
    assert matcher.is_finished
    assert matcher.is_accepting
    assert allowed(matcher) == {EOS, 290}
    matcher.advance(EOS)
    assert matcher.tokens == [256, 290, EOS]
    with pytest.raises(constrain.TokenRejectedError):
        matcher.advance(97)
    matcher.rollback(1)
    assert matcher.is_finished
    matcher.rollback(1)
    assert not matcher.is_finished
    matcher.rollback(1)
    assert allowed(matcher) == {97, 256, 259}


def test_rollback_of_too_many_is_refused():
    matcher = compiled("ab").matcher()
    matcher.advance(97)
    for n in (2, -1):
        with pytest.raises(constrain.ConstrainError):
            matcher.rollback(n)
    assert matcher.tokens == [97]
    matcher.rollback(0)
    matcher.reset()
    assert matcher.tokens == []


def test_validate_stops_at_the_first_refusal_and_at_the_end():
    matcher = compiled("(ab)+").matcher()
    assert matcher.validate([97, 98, 256, EOS, EOS, 97]) == 5
    assert matcher.validate([97, 97]) == 1
    assert matcher.validate([]) == 0
    assert matcher.validate([10**30]) == 0
    assert matcher.tokens == []


def test_forks_are_independent():
    matcher = compiled("a(b|cd)").matcher()
    matcher.advance(97)
    other = matcher.fork()
    other.advance(99)
    assert allowed(matcher) == {98, 99}
    assert allowed(other) == {100}
    assert type(other) is constrain.Matcher
    assert other.compiled is matcher.compiled
    matcher.advance(98)
    assert matcher.tokens == [97, 98]
    assert other.tokens == [97, 99]


def test_equal_states_have_equal_ids():
    constraint = compiled("(ab)+")
    one, two = constraint.matcher(), constraint.matcher()
    one.advance(256)
    two.advance(97)
    assert one.state_id != two.state_id
    two.advance(98)
    assert one.state_id == two.state_id


def test_forced_tokens_without_a_tokenizer():
    assert compiled("xyz|xyw").matcher().forced_tokens() == [120, 121]
    assert compiled("ab").matcher().forced_tokens() == []  # a and ab are both possible
    assert compiled("[ab]").matcher().forced_tokens() == []
    matcher = compiled("xy").matcher()
    matcher.advance(120)
    matcher.advance(121)
    assert matcher.forced_tokens() == []  # the end is not text


def test_forced_tokens_as_the_tokenizer_writes_them():
    tokens = [*BYTES, b"on", b"one", b" two", b"one two", b"e t"]
    texts = {t: i for i, t in enumerate(tokens)}

    def encode(text: str) -> list[int]:
        ids, rest = [], text.encode()
        while rest:
            size = next(n for n in range(len(rest), 0, -1) if rest[:n] in texts)
            ids.append(texts[rest[:size]])
            rest = rest[size:]
        return ids

    vocabulary = constrain.Vocabulary(tokens, [EOS], encode=encode)
    matcher = constrain.compile(constrain.Regex("one two!x|one two!y"), vocabulary).matcher()
    forced = matcher.forced_tokens()
    assert b"".join(tokens[t] for t in forced) == b"one two!"
    assert forced == [texts[b"one two"], 33]
    # "on" may still become "one": the text is cut before it.
    matcher = constrain.compile(constrain.Regex("zon(e|x)"), vocabulary).matcher()
    assert matcher.forced_tokens() == [122]


def test_bitmask_arguments():
    torch = pytest.importorskip("torch")
    matcher = compiled("ab").matcher()
    good = constrain.allocate_bitmask(2, VOCABULARY.size)
    tensor = torch.zeros((2, 10), dtype=torch.int32)
    for bitmask in (good, tensor, good, tensor):
        matcher.fill_bitmask(bitmask, 1)
        np.testing.assert_array_equal(np.asarray(bitmask[1]), np.asarray(good[1]))
        assert not np.asarray(bitmask[0]).any()
    for bad in (good.astype(np.int64), good.T, good.tolist(), None, tensor.long(), good[0, 0]):
        with pytest.raises(TypeError):
            matcher.fill_bitmask(bad, 0)
    with pytest.raises(ValueError):
        matcher.fill_bitmask(np.zeros((1, 9), dtype=np.int32), 0)
    for row in (2, -1):
        with pytest.raises(IndexError):
            matcher.fill_bitmask(good, row)
    frozen = good.copy()
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        matcher.fill_bitmask(frozen, 0)


def test_a_tensor_whose_memory_moved_is_noticed():
    torch = pytest.importorskip("torch")
    matcher = compiled("ab").matcher()
    tensor = torch.zeros((1, 10), dtype=torch.int32)
    matcher.fill_bitmask(tensor, 0)
    other = torch.zeros((1, 10), dtype=torch.int32)
    tensor.set_(other)
    matcher.fill_bitmask(tensor, 0)
    assert other.any()


def test_batch_fills_each_row_and_opens_rows_without_a_matcher():
    one, two = compiled("ab").matcher(), compiled("[x-z]").matcher()
    bitmask = constrain.allocate_bitmask(5, VOCABULARY.size)
    constrain.fill_bitmasks([one, None, two], bitmask, first_row=1)
    single = constrain.allocate_bitmask(1, VOCABULARY.size)
    one.fill_bitmask(single)
    np.testing.assert_array_equal(bitmask[1], single[0])
    two.fill_bitmask(single)
    np.testing.assert_array_equal(bitmask[3], single[0])
    assert (bitmask[2] == -1).all()
    assert not bitmask[[0, 4]].any()
    with pytest.raises(IndexError):
        constrain.fill_bitmasks([one, two], bitmask[:1])
    with pytest.raises(TypeError):
        constrain.fill_bitmasks([one, 5], bitmask)


def test_a_dead_end_is_an_error_and_never_an_empty_row():
    vocabulary = constrain.Vocabulary([b"a", b"b"], [3], size=4)
    good = constrain.compile(constrain.Regex("b+"), vocabulary).matcher()
    stuck = constrain.compile(constrain.Regex("ac"), vocabulary).matcher()
    stuck.advance(0)
    bitmask = constrain.allocate_bitmask(3, 4)
    with pytest.raises(constrain.UnsatisfiableError) as caught:
        constrain.fill_bitmasks([good, stuck, good], bitmask)
    assert caught.value.rows == [1]
    assert bitmask[:, 0].tolist() == [0b0010, 0b1000, 0b0010]
    with pytest.raises(constrain.UnsatisfiableError):
        stuck.fill_bitmask(bitmask)


def test_compile_refuses_what_is_no_spec():
    with pytest.raises(TypeError):
        constrain.compile("a+", VOCABULARY)
    with pytest.raises(TypeError):
        constrain.compile(constrain.Regex("a"), VOCABULARY, max_memory="big")
    with pytest.raises(constrain.LimitExceededError) as caught:
        compiled("a", max_memory=10)
    assert caught.value.limit == "max_memory"


def test_states_are_dropped_and_replayed_within_the_bound():
    pattern = "|".join(f"{chr(97 + i)}[a-z]{{1,500}}{i}" for i in range(20))
    constraint = compiled(pattern, max_memory=40_000)
    matcher, other = constraint.matcher(), constraint.matcher()
    reference = compiled(pattern).matcher()
    other.advance(120 - 20)
    for i in range(2000):
        if len(matcher.tokens) > 90:
            matcher.reset()
            reference.reset()
        token = 97 + (i // 90 % 20 if not matcher.tokens else i % 7)
        matcher.advance(token)
        reference.advance(token)
        if i % 10 == 0:
            assert allowed(matcher) == allowed(reference)
    assert constraint._native.generation > 1
    assert other.tokens == [100]
    assert allowed(other) == set(range(97, 123)) | {256, 257, 259}
    assert constraint.memory < 60_000


def test_a_bound_too_small_for_one_sequence_is_an_error():
    matcher = compiled("[a-z]{1,5000}", max_memory=40_000).matcher()

    def run() -> None:
        for _ in range(4000):
            matcher.advance(97)

    with pytest.raises(constrain.LimitExceededError) as caught:
        run()
    assert caught.value.limit == "max_memory"
    matcher.reset()
    assert allowed(matcher) == set(range(97, 123)) | {256, 257, 259}


def test_threads_share_a_constraint():
    constraint = compiled("([a-c]x?){1,60}")
    errors: list[Exception] = []

    def run(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            bitmask = constrain.allocate_bitmask(4, VOCABULARY.size)
            for _ in range(30):
                matchers = [constraint.matcher() for _ in range(4)]
                for _ in range(20):
                    constrain.fill_bitmasks(matchers, bitmask)
                    for row, matcher in enumerate(matchers):
                        bits = np.unpackbits(bitmask[row].view(np.uint8), bitorder="little")
                        matcher.advance(int(rng.choice(np.flatnonzero(bits))))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
