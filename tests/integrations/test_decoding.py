"""The decode loop on a tiny random model, compared with transformers' own generate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import constrain
from constrain.decoding import generate, generate_batch
from constrain.decoding.metrics import Metrics, Timings, percentile
from constrain.errors import ConstrainError, LimitExceededError
from constrain.forced import MODES
from constrain.vocabulary import Vocabulary

torch = pytest.importorskip("torch")


@pytest.fixture
def choices(vocabulary: Vocabulary) -> Callable[[list[str]], Any]:
    """Makes the constraint that accepts exactly these texts."""
    return lambda texts: constrain.compile(constrain.Choice(texts), vocabulary)


COLORS = ["red", "green", "blue", "greenish blue"]
PROMPTS = ["hello", "hello world hello world", "x", "no, yes"]


def test_greedy_equals_transformers(model: Any, tokenizer: Any) -> None:
    result = generate(model, tokenizer, "hello world", max_tokens=12, temperature=0)
    inputs = tokenizer("hello world", return_tensors="pt")
    expected = model.generate(
        inputs["input_ids"], attention_mask=inputs["attention_mask"], max_new_tokens=12
    )[0, inputs["input_ids"].shape[1] :].tolist()
    assert result.token_ids == [i for i in expected if i != tokenizer.eos_token_id]
    assert result.is_complete is None
    assert result.prompt_tokens == inputs["input_ids"].shape[1]


def test_batch_equals_single_sequences(model: Any, tokenizer: Any, choices: Callable) -> None:
    """Left padding, rows leaving the batch and constraints change nothing of the others."""
    constraints = [choices(COLORS), None, choices(["yes"]), choices(["[1, 2, 3]", "no"])]
    batch = generate_batch(model, tokenizer, PROMPTS, constraints, max_tokens=15, temperature=0)
    for result, prompt, constraint in zip(batch, PROMPTS, constraints):
        alone = generate(model, tokenizer, prompt, constraint, max_tokens=15, temperature=0)
        assert result == alone
    assert batch[0].text in COLORS
    assert batch[2].text == "yes"
    assert [r.finish_reason for r in batch][0::2] == ["stop", "stop"]


def test_cache_that_cannot_drop_rows(
    model: Any, tokenizer: Any, choices: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformers = pytest.importorskip("transformers")
    constraints = [choices(["yes"]), None, choices(COLORS), None]
    expected = generate_batch(model, tokenizer, PROMPTS, constraints, max_tokens=9, temperature=0)
    monkeypatch.setattr(transformers.DynamicCache, "batch_select_indices", None)
    found = generate_batch(model, tokenizer, PROMPTS, constraints, max_tokens=9, temperature=0)
    assert found == expected


def test_sampling_is_repeatable_and_legal(model: Any, tokenizer: Any, choices: Callable) -> None:
    options = {"temperature": 1.5, "top_k": 20, "top_p": 0.9, "max_tokens": 30}
    constraint = choices(COLORS)
    results = [generate(model, tokenizer, "x", constraint, seed=s, **options) for s in range(8)]
    assert {r.text for r in results} <= set(COLORS)
    assert len({r.text for r in results}) > 1
    assert all(r.is_complete and r.finish_reason == "stop" for r in results)
    again = generate(model, tokenizer, "x", constraint, seed=3, **options)
    assert again == results[3]
    batch = generate_batch(model, tokenizer, ["x"] * 8, constraint, seed=0, **options)
    assert [r.text for r in batch] == [r.text for r in results]


def test_streamed_text_is_the_text(model: Any, tokenizer: Any, vocabulary: Vocabulary) -> None:
    pieces: list[str] = []
    result = generate(
        model,
        tokenizer,
        "hello",
        max_tokens=60,
        temperature=3.0,
        seed=1,
        on_text=pieces.append,
    )
    assert len(pieces) > 5
    assert "" not in pieces
    assert "".join(pieces) == result.text
    assert result.text == vocabulary.decode(result.token_ids).decode("utf-8", "replace")


def test_characters_of_several_tokens_come_whole(
    model: Any, tokenizer: Any, choices: Callable
) -> None:
    pieces: list[str] = []
    result = generate(
        model, tokenizer, "hello", choices(["北🙂京"]), temperature=0, on_text=pieces.append
    )
    assert result.text == "北🙂京"
    assert pieces == ["北", "🙂", "京"]
    assert len(result.token_ids) > 3
    cut = generate(
        model, tokenizer, "hello", choices(["北🙂京"]), temperature=0, max_tokens=4, budget=False
    )
    assert cut.text == "北\ufffd"
    assert (cut.finish_reason, cut.is_complete) == ("length", False)


def test_no_forward_pass_for_an_end_without_alternative(
    model: Any, tokenizer: Any, choices: Callable
) -> None:
    options: dict[str, Any] = {"temperature": 0, "forced": "off"}
    result = generate(model, tokenizer, "hello", choices(["yes"]), **options)
    assert (result.text, result.finish_reason) == ("yes", "stop")
    assert result.timings.passes == len(result.token_ids)
    exact = generate(
        model, tokenizer, "hello", choices(["yes"]), max_tokens=len(result.token_ids), **options
    )
    assert (exact.text, exact.finish_reason) == ("yes", "stop")


def test_length_and_completeness(model: Any, tokenizer: Any, choices: Callable) -> None:
    constraint = choices(["y", "yyyyyyyyyy"])
    options: dict[str, Any] = {"temperature": 0, "max_tokens": 1}
    result = generate(model, tokenizer, "hello", constraint, budget=False, **options)
    if result.finish_reason == "length":
        assert result.is_complete is (result.text == "y")
    assert len(result.token_ids) == 1
    kept = generate(model, tokenizer, "hello", constraint, **options)
    assert (kept.text, kept.is_complete) == ("y", True)


def test_budget_is_a_promise(model: Any, tokenizer: Any, vocabulary: Vocabulary) -> None:
    """Whatever the budget from the shortest length up, the text is complete."""
    compiled = constrain.compile(constrain.Regex(r"(red, )+\[[0-9]{2,9}\]"), vocabulary)
    with pytest.raises(LimitExceededError) as raised:
        generate(model, tokenizer, "hello", compiled, max_tokens=2)
    needed = raised.value.needed
    assert needed is not None
    assert needed > 2
    assert raised.value.limit == "max_tokens"
    for extra in range(8):
        for mode in MODES:
            results = generate_batch(
                model,
                tokenizer,
                ["x"] * 4,
                compiled,
                max_tokens=needed + extra,
                forced=mode,
                seed=9,
            )
            for result in results:
                assert result.is_complete, result
                assert len(result.token_ids) <= needed + extra
    with pytest.raises(LimitExceededError, match="prompt 1: the context of the model leaves 2"):
        generate_batch(model, tokenizer, ["x", [5] * 254], compiled, max_tokens=100)


def test_dead_end_is_reported(model: Any, tokenizer: Any, vocabulary: Vocabulary) -> None:
    """A vocabulary without a single byte that the text needs."""
    tokens = [None if data and b"!" in data else data for data in vocabulary.tokens]
    lacking = Vocabulary(tokens, vocabulary.eos_token_ids, size=vocabulary.size)
    compiled = [constrain.compile(constrain.Choice([text]), lacking) for text in ("!", "a!", "yes")]
    results = generate_batch(
        model, tokenizer, ["hello", "x", "x"], compiled, temperature=0, budget=False
    )
    assert [r.finish_reason for r in results] == ["dead_end", "dead_end", "stop"]
    assert (results[0].text, results[0].is_complete) == ("", False)
    assert (results[1].text, results[1].is_complete) == ("a", False)
    assert results[2].text == "yes"
    assert results[0].timings.time_to_first_token is None


def test_messages_use_the_chat_template(model: Any, tokenizer: Any, choices: Callable) -> None:
    messages = [{"role": "user", "content": "hello"}]
    with pytest.raises(ConstrainError, match="no chat template"):
        generate(model, tokenizer, messages)
    import copy

    chatty = copy.deepcopy(tokenizer)
    chatty.chat_template = (
        "<bos>{% for m in messages %}{% if m.role == 'evil' %}{{ raise_exception('no evil') }}"
        "{% endif %}{{ m.content }}{% endfor %}{% if add_generation_prompt %}:{% endif %}"
    )
    result = generate(model, chatty, messages, choices(COLORS), temperature=0)
    expected = tokenizer("<bos>hello:", add_special_tokens=False)["input_ids"]
    same = generate(model, tokenizer, expected, choices(COLORS), temperature=0)
    assert result == same
    with pytest.raises(ConstrainError, match="no evil"):
        generate(model, chatty, [{"role": "evil", "content": ""}])


def test_refusals(model: Any, tokenizer: Any, choices: Callable, vocabulary: Vocabulary) -> None:
    for prompt, message in [
        ("", "empty"),
        ([], "empty"),
        (3, "int"),
        (b"x", "bytes"),
        ([1.5], "messages or token ids"),
        ("x" * 400, "the model reads 256"),
    ]:
        with pytest.raises(ConstrainError, match=message):
            generate(model, tokenizer, prompt)  # type: ignore[arg-type]
    with pytest.raises(ConstrainError, match="max_tokens"):
        generate(model, tokenizer, "x", max_tokens=0)
    with pytest.raises(ConstrainError, match="prompt 1"):
        generate_batch(model, tokenizer, ["x", ""])
    with pytest.raises(ConstrainError, match="one text"):
        generate_batch(model, tokenizer, "x")
    with pytest.raises(ConstrainError, match="1 prompts and 2"):
        generate_batch(model, tokenizer, ["x"], [None, None])
    other = Vocabulary(vocabulary.tokens, [5], size=vocabulary.size)
    with pytest.raises(ConstrainError, match="different vocabularies"):
        generate_batch(
            model,
            tokenizer,
            ["x", "y"],
            [choices(COLORS), constrain.compile(constrain.Choice(["a"]), other)],
        )
    wide = Vocabulary(vocabulary.tokens, [0], size=vocabulary.size + 64)
    with pytest.raises(ConstrainError, match="size"):
        generate(model, tokenizer, "x", constrain.compile(constrain.Choice(["yes", "no"]), wide))
    for options, message in [
        ({"forced": "often"}, "forced is"),
        ({"stop": ["a", ""]}, "stop is"),
        ({"stop": "a"}, "stop is"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"logit_bias": {3: float("nan")}}, "token 3 is nan"),
        ({"logit_bias": {9999: 1.0}}, "token 9999"),
        ({"prefix": "z"}, "refuses token 0 of the prefix"),
        ({"prefix": [1.5]}, "a prefix is"),
    ]:
        with pytest.raises(ConstrainError, match=message):
            generate(model, tokenizer, "x", choices(COLORS), **options)
    with pytest.raises(ConstrainError, match="1 prompts and 2 prefixes"):
        generate_batch(model, tokenizer, ["x"], prefixes=["a", "b"])
    assert generate_batch(model, tokenizer, []) == []


def test_context_of_the_model_bounds_the_length(model: Any, tokenizer: Any) -> None:
    prompt = [5] * 250
    result = generate(model, tokenizer, prompt, max_tokens=50, temperature=0)
    assert len(result.token_ids) <= 6
    assert result.finish_reason in ("length", "stop")


def test_tokens_are_reported_as_they_come(model: Any, tokenizer: Any, choices: Callable) -> None:
    seen: list[tuple[int, int]] = []
    results = generate_batch(
        model,
        tokenizer,
        ["x", "hello"],
        choices(COLORS),
        temperature=0,
        on_token=lambda index, token_id: seen.append((index, token_id)),
    )
    for index, result in enumerate(results):
        assert [t for i, t in seen if i == index] == result.token_ids


def test_timings(model: Any, tokenizer: Any, choices: Callable) -> None:
    options: dict[str, Any] = {"temperature": 0, "forced": "off", "measure": True}
    timings = generate(model, tokenizer, "x", choices(["[1, 2, 3]", "[2]"]), **options).timings
    assert timings.time_to_first_token is not None
    assert 0 < timings.prefill <= timings.time_to_first_token
    assert timings.mask > 0
    assert timings.tokens_per_second is not None
    assert timings.inter_token_p50 is not None
    assert len(timings.removed) == timings.passes == timings.tokens
    assert all(0 <= share <= 1 for share in timings.removed)
    assert max(timings.removed) > 0.5
    assert min(timings.inter_token) <= timings.inter_token_p50 <= max(timings.inter_token)


def test_percentiles() -> None:
    values = [float(v) for v in range(1, 101)]
    assert percentile(values, 50) == 50
    assert percentile(values, 99) == 99
    assert percentile([3.0], 99) == 3
    assert percentile([], 50) is None
    timings = Timings(time_to_first_token=1.0, inter_token=[0.5, 0.5])
    assert timings.inter_token_mean == 0.5
    assert timings.tokens_per_second == 1.5
    assert Timings().tokens_per_second is None
    assert Timings().inter_token_mean is None


def test_metrics_by_hand() -> None:
    """Three tokens in two passes: the second pass brings two of them at once."""
    first = Timings(passes=2, forced=1, mask=0.25, removed=[0.5, 1.0])
    first.tick(10.0, 12.0, 1)
    first.tick(10.0, 12.5, 3)
    first.tick(10.0, 13.0, 3)
    assert first.time_to_first_token == 2.0
    assert first.inter_token == [0.5, 0.0]
    assert first.perceived_tokens_per_second == 4.0
    assert first.passes_per_token == pytest.approx(2 / 3)
    second = Timings(passes=3, drafted=4, accepted=1, mask=0.5, draft_passes=4)
    for count in (1, 2, 3, 5):
        second.tick(10.0, 11.0 + count, count)
    assert second.inter_token == [1.0, 1.0, 2.0, 0.0]
    found = Metrics.of([first, second])
    assert (found.sequences, found.tokens, found.forward_passes) == (2, 8, 5)
    assert found.time_to_first_token == 2.0
    assert found.inter_token_latency_mean == pytest.approx(4.5 / 6)
    assert found.inter_token_latency_p50 == 0.5
    assert found.inter_token_latency_p99 == 2.0
    assert found.perceived_tokens_per_second == 2.5
    assert found.total_tokens_per_second == pytest.approx(8 / 6)
    assert found.passes_per_token == pytest.approx(5 / 8)
    assert (found.forced_tokens, found.draft_passes, found.acceptance_rate) == (1, 4, 0.25)
    assert (found.mask_time, found.mask_share) == (0.75, pytest.approx(0.75 / 6))
    assert found.probability_removed == 0.75
    assert found.step_latency_p50 == 1.0
    twice = Metrics.of([first, second], [first])
    assert twice.total_tokens_per_second == pytest.approx(11 / 8.5)
    nothing = Metrics.of([])
    assert nothing.tokens == 0
    assert nothing.total_tokens_per_second is None
    assert set(found.as_dict()) == set(nothing.as_dict())
