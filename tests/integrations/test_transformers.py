"""ConstrainedLogitsProcessor under the generation modes of transformers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from constrain.errors import ConstrainError
from constrain.integrations.transformers import ConstrainedLogitsProcessor
from constrain.vocabulary import Vocabulary

torch = pytest.importorskip("torch")

COLORS = ["red", "green", "blue", "greenish blue"]
OTHERS = ["yes", "no", "maybe"]


def inputs_of(tokenizer: Any, prompts: list[str]) -> dict[str, Any]:
    encoded = tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left")
    return {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"]}


def texts_of(tokenizer: Any, output: Any, inputs: dict[str, Any]) -> list[str]:
    return tokenizer.batch_decode(
        output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True
    )


@pytest.mark.parametrize(
    "sampling", [{"do_sample": False}, {"do_sample": True, "temperature": 2.0}]
)
def test_batch_with_padding(model: Any, tokenizer: Any, finite: Callable, sampling: dict) -> None:
    inputs = inputs_of(tokenizer, ["hello", "hello world, hello world", "no"])
    torch.manual_seed(1)
    processor = ConstrainedLogitsProcessor(finite(COLORS))
    output = model.generate(**inputs, logits_processor=[processor], max_new_tokens=30, **sampling)
    assert set(texts_of(tokenizer, output, inputs)) <= set(COLORS)
    assert processor.is_complete(output) == [True] * 3


def test_one_constraint_per_sequence(model: Any, tokenizer: Any, finite: Callable) -> None:
    inputs = inputs_of(tokenizer, ["hello", "world", "x"])
    processor = ConstrainedLogitsProcessor([finite(COLORS), None, finite(OTHERS)])
    torch.manual_seed(2)
    output = model.generate(
        **inputs,
        logits_processor=[processor],
        max_new_tokens=20,
        do_sample=True,
        num_return_sequences=4,
    )
    texts = texts_of(tokenizer, output, inputs)
    assert set(texts[:4]) <= set(COLORS)
    assert set(texts[8:]) <= set(OTHERS)
    assert len(set(texts[4:8])) > 1
    assert not set(texts[4:8]) & set(COLORS + OTHERS)


@pytest.mark.parametrize("sampling", [False, True])
def test_beams(model: Any, tokenizer: Any, finite: Callable, sampling: bool) -> None:
    texts = [f"[{i}, {j}]" for i in range(10) for j in range(10)]
    inputs = inputs_of(tokenizer, ["hello", "world world"])
    processor = ConstrainedLogitsProcessor([finite(texts), finite(COLORS + OTHERS)])
    torch.manual_seed(3)
    output = model.generate(
        **inputs,
        logits_processor=[processor],
        max_new_tokens=30,
        num_beams=3,
        num_return_sequences=2,
        do_sample=sampling,
    )
    result = texts_of(tokenizer, output, inputs)
    assert set(result[:2]) <= set(texts)
    assert set(result[2:]) <= set(COLORS + OTHERS)
    assert processor.is_complete(output) == [True] * 4


def test_more_beams_than_texts(model: Any, tokenizer: Any, finite: Callable) -> None:
    """Beams without a legal continuation survive with -inf; is_complete tells them apart."""
    inputs = inputs_of(tokenizer, ["hello"])
    processor = ConstrainedLogitsProcessor(finite(["yes", "no"]))
    output = model.generate(
        **inputs,
        logits_processor=[processor],
        max_new_tokens=8,
        num_beams=4,
        num_return_sequences=4,
    )
    texts = texts_of(tokenizer, output, inputs)
    complete = processor.is_complete(output)
    assert {text for text, done in zip(texts, complete) if done} == {"yes", "no"}
    assert texts[0] in ("yes", "no")


def test_prompt_lookup(model: Any, tokenizer: Any, finite: Callable) -> None:
    texts = ["hello world hello world", "hello world hello hello", "world hello"]
    inputs = inputs_of(tokenizer, ["hello world hello world hello world"])
    plain = model.generate(
        **inputs,
        logits_processor=[ConstrainedLogitsProcessor(finite(texts))],
        max_new_tokens=30,
        do_sample=False,
    )
    processor = ConstrainedLogitsProcessor(finite(texts))
    drafted = model.generate(
        **inputs,
        logits_processor=[processor],
        max_new_tokens=30,
        do_sample=False,
        prompt_lookup_num_tokens=4,
    )
    assert texts_of(tokenizer, drafted, inputs) == texts_of(tokenizer, plain, inputs)
    assert texts_of(tokenizer, drafted, inputs)[0] in texts
    assert processor.is_complete(drafted) == [True]


def test_assisted_decoding(model: Any, tokenizer: Any, finite: Callable) -> None:
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(9)
    assistant = transformers.LlamaForCausalLM(model.config).eval()
    texts = ["hello world hello world", "hello world red", "world hello green"]
    inputs = inputs_of(tokenizer, ["hello"])
    for sampling in (False, True):
        output = model.generate(
            **inputs,
            assistant_model=assistant,
            logits_processor=[ConstrainedLogitsProcessor(finite(texts))],
            max_new_tokens=30,
            do_sample=sampling,
        )
        assert texts_of(tokenizer, output, inputs)[0] in texts


def test_reused_for_other_prompts(model: Any, tokenizer: Any, finite: Callable) -> None:
    processor = ConstrainedLogitsProcessor(finite(COLORS))
    prompts = [["hello"], ["world"], ["hello", "world"], ["hello world hello", "no"]]
    output = inputs = None
    for prompt in prompts:
        inputs = inputs_of(tokenizer, prompt)
        output = model.generate(**inputs, logits_processor=[processor], max_new_tokens=30)
        assert set(texts_of(tokenizer, output, inputs)) <= set(COLORS)
    # a conversation: the next prompt contains what was generated
    longer = torch.cat([output, inputs["input_ids"]], dim=1)
    again = model.generate(
        input_ids=longer,
        attention_mask=torch.ones_like(longer),
        logits_processor=[processor],
        max_new_tokens=30,
    )
    assert set(texts_of(tokenizer, again, {"input_ids": longer})) <= set(COLORS)


def test_raw_logits_stay_unmasked(model: Any, tokenizer: Any, finite: Callable) -> None:
    inputs = inputs_of(tokenizer, ["hello"])
    output = model.generate(
        **inputs,
        logits_processor=[ConstrainedLogitsProcessor(finite(COLORS))],
        max_new_tokens=3,
        output_logits=True,
        output_scores=True,
        return_dict_in_generate=True,
    )
    assert bool(torch.isfinite(output.logits[0]).all())
    assert not bool(torch.isfinite(output.scores[0]).all())


# --- direct calls --------------------------------------------------------------------------------


def ids(vocabulary: Vocabulary, text: str) -> list[int]:
    encoded = vocabulary.encode(text.encode())
    assert encoded is not None
    return encoded


def rows(prefixes: list[list[int]], pad: int) -> Any:
    width = max(map(len, prefixes))
    return torch.tensor([[7, *prefix, *[pad] * (width - len(prefix))] for prefix in prefixes])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_mask_of_each_kind_of_row(vocabulary: Vocabulary, finite: Callable, dtype: str) -> None:
    constraint = finite(COLORS)
    eos = vocabulary.eos_token_ids[0]
    processor = ConstrainedLogitsProcessor(constraint, prompt_length=1)
    red, green = ids(vocabulary, "red"), ids(vocabulary, "green")
    length = max(len(red) + 1, len(green))
    scores = torch.randn(4, vocabulary.size + 5, dtype=getattr(torch, dtype))
    before = scores.clone()
    prefixes = [
        [*red, eos, *[1] * (length - len(red) - 1)],  # finished, then padded
        (ids(vocabulary, "x") * length)[:length],  # illegal
        (green + ids(vocabulary, "ish blue"))[:length],
        [*red, eos, *[1] * (length - len(red) - 1)],
    ]
    masked = processor(rows(prefixes, 1), scores)
    assert masked.dtype == scores.dtype
    assert torch.equal(scores, before)
    for row in (0, 3):
        assert torch.isfinite(masked[row]).nonzero().flatten().tolist() == [eos]
    assert torch.isfinite(masked[1]).nonzero().flatten().tolist() == [eos]
    matcher = constraint.matcher()
    for token_id in prefixes[2]:
        matcher.advance(token_id)
    legal = [i for i in range(vocabulary.size) if matcher.allows(i)]
    assert torch.isfinite(masked[2]).nonzero().flatten().tolist() == legal
    assert torch.equal(masked[2][legal], scores[2][legal])


def test_calls_in_any_order(vocabulary: Vocabulary, finite: Callable) -> None:
    """Whatever was asked before, the mask is the one of the prefix; the cache may be tiny."""
    import random

    texts = ["[1, 2, 3]", "[1, 2, 4]", "[1, 3]", "hello world"]
    walks = [ids(vocabulary, text) for text in texts]
    prefixes = [walk[:n] for walk in walks for n in range(len(walk) + 1)]
    choose = random.Random(5)
    processor = ConstrainedLogitsProcessor(finite(texts), prompt_length=1, cached_prefixes=2)
    for _ in range(100):
        prefix = choose.choice(prefixes)
        extra = [choose.randrange(vocabulary.size)] * choose.randrange(2)
        masked = processor(rows([prefix + extra], 0), torch.zeros(1, vocabulary.size))
        fresh = ConstrainedLogitsProcessor(finite(texts), prompt_length=1)
        expected = fresh(rows([prefix + extra], 0), torch.zeros(1, vocabulary.size))
        assert torch.equal(masked, expected)
    assert len(processor._states) <= 3


def test_dead_end_ends_only_its_row(vocabulary: Vocabulary, finite: Callable) -> None:
    """A constraint without any text: the row gets the end of sequence, others go on."""
    processor = ConstrainedLogitsProcessor([finite([]), finite(COLORS)], prompt_length=1)
    masked = processor(rows([[], []], 0), torch.zeros(2, vocabulary.size))
    assert torch.isfinite(masked[0]).nonzero().flatten().tolist() == [vocabulary.eos_token_ids[0]]
    assert int(torch.isfinite(masked[1]).sum()) > 1


def test_several_ends_of_sequence(vocabulary: Vocabulary, finite: Callable) -> None:
    wide = Vocabulary(vocabulary.tokens, [0, 1], size=vocabulary.size)
    constraint = type(finite([]))([b"red"], wide)
    processor = ConstrainedLogitsProcessor(constraint, prompt_length=1)
    masked = processor(rows([ids(vocabulary, "red")], 0), torch.zeros(1, wide.size))
    assert torch.isfinite(masked[0]).nonzero().flatten().tolist() == [0, 1]


def test_wrong_use_is_refused(vocabulary: Vocabulary, finite: Callable) -> None:
    with pytest.raises(ConstrainError, match="at least one"):
        ConstrainedLogitsProcessor([])
    with pytest.raises(ConstrainError, match="at least one"):
        ConstrainedLogitsProcessor([None])
    with pytest.raises(ConstrainError, match="prompt_length"):
        ConstrainedLogitsProcessor(finite(COLORS), prompt_length=-1)
    other = type(finite([]))([b"a"], Vocabulary([b"a"], [1]))
    with pytest.raises(ConstrainError, match="different vocabularies"):
        ConstrainedLogitsProcessor([finite(COLORS), other])
    processor = ConstrainedLogitsProcessor(finite(COLORS), prompt_length=3)
    with pytest.raises(ConstrainError, match="columns"):
        processor(rows([[]], 0), torch.zeros(1, vocabulary.size))
    with pytest.raises(ConstrainError, match="size"):
        processor(rows([[1, 2]], 0), torch.zeros(1, vocabulary.size - 1))
    pair = ConstrainedLogitsProcessor([finite(COLORS), finite(OTHERS)])
    with pytest.raises(ConstrainError, match="3 rows for 2"):
        pair(rows([[], [], []], 0), torch.zeros(3, vocabulary.size))
    with pytest.raises(ConstrainError, match="not known yet"):
        pair.is_complete(rows([[1], [2]], 0))


def test_cut_off_text_is_not_complete(vocabulary: Vocabulary, finite: Callable) -> None:
    processor = ConstrainedLogitsProcessor(finite(COLORS), prompt_length=1)
    assert processor.is_complete(rows([ids(vocabulary, "gre")], 0)) == [False]
    assert processor.is_complete(rows([ids(vocabulary, "green")], 0)) == [True]
    assert processor.is_complete(rows([ids(vocabulary, "x")], 0)) == [False]


def test_import_is_light() -> None:
    import subprocess
    import sys

    code = (
        "import sys, constrain.integrations.transformers;"
        "sys.exit(any(m in sys.modules for m in ('torch', 'transformers')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
