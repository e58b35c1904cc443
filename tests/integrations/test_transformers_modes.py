"""Every way of generating in transformers, under real constraints with a tiny random model.

The model is random, so what it would write on its own is valid nowhere; budgets make every text end.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

import constrain
from constrain.errors import ConstrainError, LimitExceededError
from constrain.integrations.errors import EngineConfigurationError, RequestError
from constrain.integrations.transformers import (
    ConstrainedLogitsProcessor,
    generate,
    generate_batch,
)
from constrain.vocabulary import Vocabulary

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

SCHEMAS: list[Any] = [
    {"type": "integer", "minimum": 3, "maximum": 12345},
    {"enum": ["red", "green", None, 7]},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 4},
    {"type": "string", "maxLength": 5},
    {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
    {"type": "string", "pattern": "^[a-f]{2}-[0-9]{2}$"},
    {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
    {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
    {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 2},
    {"not": {"type": ["object", "array", "string"]}},
    {"type": "string", "format": "date"},
    {"const": {"ok": [True, "yes"]}},
    {"type": "number", "multipleOf": 0.25, "minimum": 0, "maximum": 2},
    {"oneOf": [{"type": "integer", "maximum": 50}, {"type": "string", "maxLength": 3}]},
    {"type": "array", "prefixItems": [{"const": "x"}, {"type": "null"}], "items": False},
    {},
]


@pytest.fixture(scope="module")
def compiled(vocabulary: Vocabulary) -> list[Any]:
    return [constrain.compile(constrain.JsonSchema(schema), vocabulary) for schema in SCHEMAS]


def inputs_of(tokenizer: Any, prompts: list[str]) -> dict[str, Any]:
    encoded = tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left")
    return {"input_ids": encoded["input_ids"], "attention_mask": encoded["attention_mask"]}


def text_of(vocabulary: Vocabulary, ids: list[int]) -> str:
    kept = []
    for token_id in ids:
        if token_id in vocabulary.eos_token_ids:
            break
        kept.append(token_id)
    return vocabulary.decode(kept).decode()


def assert_valid(text: str, schema: Any) -> None:
    checker = jsonschema.FormatChecker()
    jsonschema.Draft202012Validator(schema, format_checker=checker).validate(json.loads(text))


def texts_of(vocabulary: Vocabulary, output: Any, inputs: dict[str, Any]) -> list[str]:
    start = inputs["input_ids"].shape[1]
    return [text_of(vocabulary, row) for row in output[:, start:].tolist()]


@pytest.mark.parametrize(
    "options",
    [
        {"do_sample": False},
        {"do_sample": True, "temperature": 1.7, "top_k": 20, "top_p": 0.9},
        {"do_sample": True, "num_return_sequences": 3},
        {"num_beams": 3, "num_return_sequences": 2},
        {"num_beams": 4, "do_sample": True},
        {"do_sample": True, "cache_implementation": "static"},
        {"do_sample": True, "repetition_penalty": 1.4},
        {"do_sample": False, "use_cache": False},
    ],
    ids=lambda options: "-".join(f"{key}={value}" for key, value in options.items()),
)
def test_sixteen_schemas_in_one_batch(
    model: Any, tokenizer: Any, vocabulary: Vocabulary, compiled: list[Any], options: Any
) -> None:
    prompts = ["hello world " * (n % 4 + 1) for n in range(16)]
    inputs = inputs_of(tokenizer, prompts)
    torch.manual_seed(4)
    output = generate(model, inputs, compiled, max_new_tokens=40, **options)
    texts = texts_of(vocabulary, output, inputs)
    copies = len(texts) // 16
    assert copies == options.get("num_return_sequences", 1)
    for n, text in enumerate(texts):
        assert_valid(text, SCHEMAS[n // copies])
    lengths = (output != model.config.pad_token_id).sum(dim=1)
    assert len(set(lengths.tolist())) > 1  # some sequences end early


@pytest.mark.parametrize("number", [0, 4, 5, 8, 11])
@pytest.mark.parametrize("sampling", [False, True])
@pytest.mark.parametrize("drafts", ["assistant", "lookup"])
def test_speculation(
    model: Any,
    tokenizer: Any,
    vocabulary: Vocabulary,
    compiled: list[Any],
    number: int,
    sampling: bool,
    drafts: str,
) -> None:
    torch.manual_seed(number)
    options: dict[str, Any] = {"prompt_lookup_num_tokens": 4}
    if drafts == "assistant":
        options = {"assistant_model": transformers.LlamaForCausalLM(model.config).eval()}
    inputs = inputs_of(tokenizer, ["hello world hello world hello world 1, 2, 3"])
    output = generate(
        model, inputs, compiled[number], max_new_tokens=40, do_sample=sampling, **options
    )
    assert_valid(texts_of(vocabulary, output, inputs)[0], SCHEMAS[number])
    if not sampling:
        plain = generate(model, inputs, compiled[number], max_new_tokens=40, do_sample=False)
        assert torch.equal(plain, output)


def test_budget(model: Any, tokenizer: Any, vocabulary: Vocabulary, compiled: list[Any]) -> None:
    """A limit for each sequence, down to the shortest text; one less is refused."""
    needed = [constraint.matcher().tokens_needed for constraint in compiled]
    inputs = inputs_of(tokenizer, ["hello"] * 16)
    for more in (0, 1, 3):
        processor = ConstrainedLogitsProcessor(compiled, max_new_tokens=[n + more for n in needed])
        output = generate(model, inputs, processor, max_new_tokens=60, do_sample=True)
        start = inputs["input_ids"].shape[1]
        for row, schema, count in zip(output[:, start:].tolist(), SCHEMAS, needed):
            assert_valid(text_of(vocabulary, row[: count + more]), schema)
    with pytest.raises(LimitExceededError, match="constraint 0") as caught:
        generate(model, inputs_of(tokenizer, ["a"]), compiled[11], max_new_tokens=needed[11] - 1)
    assert caught.value.needed == needed[11]


def test_resumed_prefix(
    model: Any, tokenizer: Any, vocabulary: Vocabulary, compiled: list[Any]
) -> None:
    """Texts that were begun before, of different lengths, are continued."""
    begun = ['{"a":', "", "12", '"ab-']
    schemas = [4, 0, 0, 5]
    prompts = ["hello world", "hello", "hello hello hello", "world"]
    rows = []
    for prompt, text in zip(prompts, begun):
        ids = tokenizer(prompt)["input_ids"]
        rows.append((ids, vocabulary.encode(text.encode()) if text else []))
    width = max(len(a) + len(b) for a, b in rows)
    input_ids = torch.full((4, width), tokenizer.pad_token_id)
    mask = torch.zeros_like(input_ids)
    for row, (prompt_ids, text_ids) in enumerate(rows):
        both = torch.tensor([*prompt_ids, *text_ids])
        input_ids[row, width - len(both) :] = both
        mask[row, width - len(both) :] = 1
    lengths = [width - len(text_ids) for _, text_ids in rows]
    output = generate(
        model,
        {"input_ids": input_ids, "attention_mask": mask},
        [compiled[n] for n in schemas],
        prompt_length=lengths,
        max_new_tokens=30,
        do_sample=True,
    )
    for row, length, text, number in zip(output.tolist(), lengths, begun, schemas):
        whole = text_of(vocabulary, row[length:])
        assert whole.startswith(text)
        assert_valid(whole, SCHEMAS[number])


def test_pipeline(model: Any, tokenizer: Any, vocabulary: Vocabulary, compiled: list[Any]) -> None:
    pipe = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer)
    processor = ConstrainedLogitsProcessor(compiled[5], max_new_tokens=20)
    prompts = ["hello", "hello world", "world hello world", "hello"]
    for batch_size in (1, 2):
        results = pipe(
            prompts,
            batch_size=batch_size,
            logits_processor=processor.as_list(),
            max_new_tokens=20,
            do_sample=True,
            return_full_text=False,
            eos_token_id=list(vocabulary.eos_token_ids),
        )
        assert len(results) == 4
        for result in results:
            assert_valid(result[0]["generated_text"], SCHEMAS[5])


# --- continuous batching -------------------------------------------------------------------------


def small() -> Any:
    """A cache of a few blocks: by default it takes most of the memory."""
    return transformers.ContinuousBatchingConfig(num_blocks=64, page_size=16, max_batch_tokens=64)


@pytest.mark.parametrize("sampling", [False, True])
def test_continuous_batching(
    model: Any, tokenizer: Any, vocabulary: Vocabulary, compiled: list[Any], sampling: bool
) -> None:
    prompts = [tokenizer("hello world " * (n % 3 + 1))["input_ids"] for n in range(16)]
    config = transformers.GenerationConfig(do_sample=sampling, temperature=1.5, top_k=30)
    constraints = [*compiled[:6], None, *compiled[7:]]
    results = generate_batch(
        model,
        prompts,
        constraints,
        max_new_tokens=40,
        generation_config=config,
        continuous_batching_config=small(),
    )
    assert len(results) == 16
    for n, ids in enumerate(results):
        assert 1 <= len(ids) <= 41
        if constraints[n] is not None:
            assert_valid(text_of(vocabulary, ids), SCHEMAS[n])
    if not sampling:
        # the same texts as from generate
        for n in (0, 5, 8):
            inputs = {"input_ids": torch.tensor([prompts[n]])}
            plain = generate(model, inputs, compiled[n], max_new_tokens=40, do_sample=False)
            assert texts_of(vocabulary, plain, inputs)[0] == text_of(vocabulary, results[n])


def test_continuous_batching_of_several_samples(
    model: Any, tokenizer: Any, vocabulary: Vocabulary, compiled: list[Any]
) -> None:
    prompts = [tokenizer("hello")["input_ids"], tokenizer("world world")["input_ids"]]
    config = transformers.GenerationConfig(do_sample=True, num_return_sequences=3)
    results = generate_batch(
        model,
        prompts,
        compiled[4:6],
        max_new_tokens=[30, 20],
        generation_config=config,
        continuous_batching_config=small(),
    )
    assert len(results) == 6
    for n, ids in enumerate(results):
        assert_valid(text_of(vocabulary, ids), SCHEMAS[4 + n // 3])


def test_continuous_batching_refuses(model: Any, tokenizer: Any, compiled: list[Any]) -> None:
    batching = transformers.ContinuousBatchingConfig
    prompts = [tokenizer("hello")["input_ids"]]
    for config in (batching(use_async_batching=True), batching(use_cuda_graph=(False, True))):
        with pytest.raises(EngineConfigurationError):
            generate_batch(
                model, prompts, compiled[0], max_new_tokens=9, continuous_batching_config=config
            )
    with pytest.raises(RequestError, match="request 0"):
        generate_batch(model, prompts, compiled[11], max_new_tokens=1)
    with pytest.raises(ConstrainError, match="1 prompts and 2 constraints"):
        generate_batch(model, prompts, compiled[:2], max_new_tokens=9)
    with pytest.raises(ConstrainError, match="max_new_tokens"):
        generate_batch(model, prompts, compiled[0], max_new_tokens=0)
    with pytest.raises(ConstrainError, match="at least one"):
        generate_batch(model, prompts, None, max_new_tokens=9)


def test_errors_of_the_loop_are_raised(
    model: Any, tokenizer: Any, compiled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from constrain.integrations import base

    def fail(*_: Any) -> None:
        raise RuntimeError("a broken mask")

    monkeypatch.setattr(base.Adapter, "mask", fail)
    with pytest.raises(ConstrainError, match="a broken mask"):
        generate_batch(
            model,
            [tokenizer("hello")["input_ids"]],
            compiled[0],
            max_new_tokens=9,
            continuous_batching_config=small(),
        )


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"min_new_tokens": 5},
        {"min_length": 50},
        {"forced_eos_token_id": 0},
        {"forced_bos_token_id": 2},
        {"no_repeat_ngram_size": 2},
        {"token_healing": True},
        {"penalty_alpha": 0.6},
        {"dola_layers": "low"},
        {"num_beam_groups": 2},
        {"custom_generate": "someone/something"},
        {"prefix_allowed_tokens_fn": lambda batch, ids: [1]},
        {"assistant_ensemble_weight": 0.5},
        {"assistant_tokenizer": object()},
        {"eos_token_id": 5},
        {"eos_token_id": [0, 5]},
    ],
    ids=lambda options: next(iter(options)),
)
def test_refused_settings(model: Any, tokenizer: Any, compiled: list[Any], options: Any) -> None:
    inputs = inputs_of(tokenizer, ["hello"])
    with pytest.raises(EngineConfigurationError) as caught:
        generate(model, inputs, compiled[0], max_new_tokens=9, **options)
    assert caught.value.setting == next(iter(options))


def test_refused_models(model: Any, tokenizer: Any, compiled: list[Any]) -> None:
    inputs = inputs_of(tokenizer, ["hello"])
    other = transformers.LlamaConfig(**{**model.config.to_dict(), "vocab_size": 340})
    assistant = transformers.LlamaForCausalLM(other).eval()
    with pytest.raises(EngineConfigurationError, match="340 logits"):
        generate(model, inputs, compiled[0], max_new_tokens=9, assistant_model=assistant)
    with pytest.raises(EngineConfigurationError, match="20 tokens"):
        generate(model, inputs, compiled[0])
    before = model.config._attn_implementation
    model.config._attn_implementation = "paged|eager"
    try:
        with pytest.raises(EngineConfigurationError, match="generate_batch"):
            generate(model, inputs, compiled[0], max_new_tokens=9)
    finally:
        model.config._attn_implementation = before


def test_a_processor_alone_is_loud_too(
    model: Any, tokenizer: Any, vocabulary: Vocabulary, compiled: list[Any]
) -> None:
    """Without `generate` of ours: what leaves no legal token is an error, not a wrong token."""
    inputs = inputs_of(tokenizer, ["hello"])
    eos = list(vocabulary.eos_token_ids)
    with pytest.raises(EngineConfigurationError, match="forbid every token"):
        model.generate(
            **inputs,
            logits_processor=[ConstrainedLogitsProcessor(compiled[1])],
            max_new_tokens=30,
            min_new_tokens=25,
            eos_token_id=eos,
        )
    processor = ConstrainedLogitsProcessor(compiled[0], prompt_length=1)
    processor(torch.tensor([[1]]), torch.zeros(1, vocabulary.size))
    with pytest.raises(EngineConfigurationError, match="another vocabulary"):
        processor(torch.tensor([[1]]), torch.zeros(1, vocabulary.size + 3))


def test_other_processors_run_before(
    model: Any, tokenizer: Any, vocabulary: Vocabulary, compiled: list[Any]
) -> None:
    class Resets(transformers.LogitsProcessor):
        """Would open again what was masked before it."""

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            return torch.zeros_like(scores)

    inputs = inputs_of(tokenizer, ["hello"])
    output = generate(
        model, inputs, compiled[5], max_new_tokens=20, logits_processor=[Resets()], do_sample=True
    )
    assert_valid(texts_of(vocabulary, output, inputs)[0], SCHEMAS[5])


def test_numbers_for_each_sequence(compiled: list[Any]) -> None:
    for wrong in ({"prompt_length": [1, 2, 3]}, {"max_new_tokens": [9, 9, 9]}):
        with pytest.raises(ConstrainError, match="3 numbers"):
            ConstrainedLogitsProcessor(compiled[:2], **wrong)
    with pytest.raises(ConstrainError, match="max_new_tokens is 0"):
        ConstrainedLogitsProcessor(compiled[0], max_new_tokens=0)
