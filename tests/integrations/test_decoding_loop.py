"""The loop's batches and caches: ragged chunks, holes, models of other kinds; stops, prefixes."""

from __future__ import annotations

import json
from typing import Any

import pytest

import constrain
from constrain.decoding import DraftModel, PromptLookup, generate, generate_batch
from constrain.decoding.batch import Batch, Chunk
from constrain.errors import ConstrainError
from constrain.vocabulary import Vocabulary

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

PROMPTS = ["hello", "hello world hello world", "x", "no, yes", "red green red green red"]
LIST = r"\[(\"(red|green|blue) maybe\", ){0,3}\"(hello|world)\"\]"


def tiny(kind: str, **settings: Any) -> Any:
    torch.manual_seed(4)
    sizes = {
        "vocab_size": 352,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
    }
    if kind == "Mamba":
        sizes = {"vocab_size": 352, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4}
    if kind == "Gemma2":
        sizes["head_dim"] = 8
    config = getattr(transformers, f"{kind}Config")(**sizes, **settings)
    return getattr(transformers, f"{kind}ForCausalLM")(config).eval()


@pytest.fixture(scope="module")
def draft_model() -> Any:
    return tiny("Llama")


@pytest.fixture
def listed(vocabulary: Vocabulary) -> Any:
    return constrain.compile(constrain.Regex(LIST), vocabulary)


# --- the cache -----------------------------------------------------------------------------------


def plain_logits(model: Any, tokens: list[int]) -> Any:
    with torch.inference_mode():
        return model(torch.tensor([tokens])).logits[0, -1]


@pytest.mark.parametrize("kind", ["Llama", "Mistral"])
def test_ragged_chunks_equal_whole_prompts(kind: str) -> None:
    """Holes, tokens taken back and rows that leave: the logits are those of the tokens alone."""
    model = tiny(kind, **({"sliding_window": 9} if kind == "Mistral" else {}))
    generator = torch.Generator().manual_seed(0)

    def some(count: int) -> list[int]:
        return torch.randint(0, 352, (count,), generator=generator).tolist()

    texts = [some(3), some(11), some(6), some(1)]
    with torch.inference_mode():
        batch = Batch(model, 4)
        logits = batch.read([Chunk(text) for text in texts])
        for step in range(14):
            for row, text in enumerate(texts):
                expected = plain_logits(model, text)
                assert torch.allclose(logits[row, -1], expected, atol=1e-4), (step, row)
            if step == 6:
                batch.keep_rows([0, 2, 3])
                texts = [texts[0], texts[2], texts[3]]
            if step == 9:
                lengths = [len(text) - 3 for text in texts]
                batch.truncate(lengths)
                texts = [text[:length] for text, length in zip(texts, lengths)]
            chunks = [some(int(torch.randint(1, 8, (), generator=generator))) for _ in texts]
            logits = batch.read([Chunk(chunk) for chunk in chunks])
            if step % 2:
                kept = [list(range(max(1, len(chunk) // 2))) for chunk in chunks]
                batch.keep_tokens(kept)
                chunks = [chunk[: len(k)] for chunk, k in zip(chunks, kept)]
                ends = [some(1) for _ in texts]
                logits = batch.read([Chunk(end) for end in ends])
                chunks = [chunk + end for chunk, end in zip(chunks, ends)]
            texts = [text + chunk for text, chunk in zip(texts, chunks)]
        width = batch._valid.shape[1]
        longest = max(map(len, texts))
        assert longest <= width <= longest + 32 + longest // 4 + 16


def test_trees_equal_their_paths() -> None:
    model = tiny("Llama")
    prompts = [[5, 6, 7, 8], [9]]
    tokens, parents = [20, 21, 22, 23, 24], [-1, 0, 0, -1, 3]
    paths = [[20], [20, 21], [20, 22], [23], [23, 24]]
    with torch.inference_mode():
        batch = Batch(model, 2)
        batch.read([Chunk(prompt) for prompt in prompts])
        logits = batch.read([Chunk(tokens, parents), Chunk([30, 31])], wanted=5)
        for at, path in enumerate(paths):
            expected = plain_logits(model, prompts[0] + path)
            assert torch.allclose(logits[0, at], expected, atol=1e-4), path
        assert torch.allclose(logits[1, -1], plain_logits(model, [9, 30, 31]), atol=1e-4)
        batch.keep_tokens([[0, 2], None])
        logits = batch.read([Chunk([40]), Chunk([41])])
        assert torch.allclose(
            logits[0, -1], plain_logits(model, [5, 6, 7, 8, 20, 22, 40]), atol=1e-4
        )
        assert torch.allclose(logits[1, -1], plain_logits(model, [9, 30, 31, 41]), atol=1e-4)


# --- batches -------------------------------------------------------------------------------------


@pytest.mark.parametrize("forced", ["off", "single", "text"])
@pytest.mark.parametrize("speculation", [None, "lookup", "draft"])
def test_a_sequence_does_not_see_the_batch(
    model: Any,
    tokenizer: Any,
    listed: Any,
    vocabulary: Vocabulary,
    draft_model: Any,
    forced: str,
    speculation: str | None,
) -> None:
    source = {
        None: None,
        "lookup": PromptLookup(branches=2),
        "draft": DraftModel(draft_model, tokens=3, branches=2),
    }[speculation]
    choice = constrain.compile(constrain.Choice(["yes", "no", "maybe hello world"]), vocabulary)
    constraints = [listed, choice, None, listed, choice]
    options: dict[str, Any] = {"max_tokens": 40, "forced": forced, "speculation": source}
    batch = generate_batch(model, tokenizer, PROMPTS, constraints, seed=5, **options)
    for index, result in enumerate(batch):
        alone = generate(
            model, tokenizer, PROMPTS[index], constraints[index], seed=5 + index, **options
        )
        assert alone == result
    assert all(result.is_complete is not False for result in batch)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("Mistral", {"sliding_window": 12}),
        ("Gemma2", {"sliding_window": 8}),
        ("Mamba", {}),
    ],
)
def test_models_of_other_kinds(
    kind: str, settings: dict, tokenizer: Any, listed: Any, vocabulary: Vocabulary
) -> None:
    model = tiny(kind, **settings)
    constraints = [listed, listed, None, listed]
    options: dict[str, Any] = {"max_tokens": 30, "temperature": 0}
    # A recurrent model reads the padding of a batch, so its prompts are of one length here.
    prompts = ["hello world"] * 4 if kind == "Mamba" else PROMPTS[:4]
    batch = generate_batch(model, tokenizer, prompts, constraints, **options)
    for prompt, constraint, result in zip(prompts, constraints, batch):
        assert generate(model, tokenizer, prompt, constraint, **options) == result
        assert result.is_complete is not False
    assert batch[0].timings.forced > 0
    if kind == "Mamba":
        with pytest.raises(ConstrainError, match="cannot check drafts"):
            generate(model, tokenizer, "x", listed, speculation=PromptLookup(), **options)
        with pytest.raises(ConstrainError, match="cannot draft"):
            generate(tiny("Llama"), tokenizer, "x", speculation=DraftModel(model), **options)
        return
    assert batch[0].timings.passes < batch[0].timings.tokens
    drafted = generate_batch(
        model, tokenizer, prompts, constraints, speculation=PromptLookup(), **options
    )
    assert [r.token_ids for r in drafted] == [r.token_ids for r in batch]
    with pytest.raises(ConstrainError, match="branch"):
        generate(model, tokenizer, "x", listed, speculation=PromptLookup(branches=2), **options)


def test_sixteen_schemas_in_one_batch(model: Any, tokenizer: Any, vocabulary: Vocabulary) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schemas: list[Any] = [{"const": 1}]
    for index in range(15):
        kinds = [
            {"type": "integer", "minimum": index, "maximum": 10 * index + 5},
            {"enum": [f"red{index}", "green", None]},
            {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 1 + index},
            {"type": "string", "maxLength": index},
        ]
        schemas.append(
            {
                "type": "object",
                "properties": {f"key{n}": kinds[(index + n) % 4] for n in range(1 + index % 3)},
                "required": ["key0"],
                "additionalProperties": False,
            }
        )
    compiled = [
        constrain.compile(
            constrain.JsonSchema(s, whitespace="bounded" if n else "compact"), vocabulary
        )
        for n, s in enumerate(schemas)
    ]
    # Answers that were begun: some as a text, some as ids.
    prefixes: list[Any] = [""] * 16
    prefixes[5] = '{"key0"'
    prefixes[6] = vocabulary.encode(b'{"key0":')
    results = generate_batch(
        model,
        tokenizer,
        ["hello"] * 16,
        compiled,
        prefixes=prefixes,
        max_tokens=60,
        seed=2,
        temperature=1.5,
    )
    starts = ["", "", "", "", "", '{"key0"', '{"key0":', *[""] * 9]
    for schema, start, result in zip(schemas, starts, results):
        assert result.is_complete
        jsonschema.validate(json.loads(start + result.text), schema)
    assert len(results[0].token_ids) == 1
    assert results[0].timings.passes == 0  # all of it is forced
    assert max(len(result.token_ids) for result in results) > 20


# --- forced tokens -------------------------------------------------------------------------------


def test_forced_tokens_save_passes(model: Any, tokenizer: Any, vocabulary: Vocabulary) -> None:
    words = " ".join(["hello world maybe"] * 4)
    compiled = constrain.compile(constrain.Regex(f"(red|blue): {words}"), vocabulary)
    result = generate(model, tokenizer, "x", compiled, temperature=0)
    assert result.text[4:].strip() == words
    assert result.timings.passes <= 3
    assert result.timings.forced >= len(result.token_ids) - 3
    spelled = vocabulary.encode(f": {words}".encode())
    assert spelled is not None
    assert result.token_ids[-len(spelled) + 1 :] == spelled[1:]
    single = generate(model, tokenizer, "x", compiled, temperature=0, forced="single")
    off = generate(model, tokenizer, "x", compiled, temperature=0, forced="off")
    assert single == off  # greedy: a token without alternative is what the mask leaves
    assert off.timings.passes == off.timings.tokens


# --- stop strings --------------------------------------------------------------------------------


def test_stop_strings(model: Any, tokenizer: Any, vocabulary: Vocabulary) -> None:
    free = generate(model, tokenizer, "hello", max_tokens=40, temperature=2.0, seed=3)
    text = free.text
    assert len(text) > 12
    for stop in ([text[5:8]], ["never there", text[4:9]], [text[:1]], [text[6:], text[7:9]]):
        pieces: list[str] = []
        result = generate(
            model,
            tokenizer,
            "hello",
            max_tokens=40,
            temperature=2.0,
            seed=3,
            stop=stop,
            on_text=pieces.append,
        )
        # The earliest end of a stop string decides; what is before it is the text.
        ends = {s: text.find(s) for s in stop if s in text}
        assert result.finish_reason == "stop"
        assert result.stop_string in ends
        assert result.text == text[: ends[result.stop_string]]
        assert "".join(pieces) == result.text
        assert len(result.token_ids) <= len(free.token_ids)
    cut = constrain.compile(constrain.Choice(["red, green", "red"]), vocabulary)
    result = generate(model, tokenizer, "x", cut, stop=[", g"], logit_bias={11: 50.0})
    assert (result.text, result.is_complete) == ("red", True)
    only = constrain.compile(constrain.Choice(["red, green"]), vocabulary)
    for stop, expected in ((", g", "red"), ("green", "red, ")):
        result = generate(model, tokenizer, "x", only, stop=[stop])
        assert (result.text, result.is_complete) == (expected, False)
        assert (result.finish_reason, result.stop_string) == ("stop", stop)


def test_stop_in_a_batch_is_streamed_apart(model: Any, tokenizer: Any) -> None:
    pieces: dict[int, str] = {}
    results = generate_batch(
        model,
        tokenizer,
        PROMPTS,
        max_tokens=25,
        seed=1,
        stop=["e", "\n"],
        on_text=lambda index, text: pieces.update({index: pieces.get(index, "") + text}),
    )
    for index, result in enumerate(results):
        assert pieces.get(index, "") == result.text
        assert "e" not in result.text


# --- penalties -----------------------------------------------------------------------------------


def test_penalties_cannot_break_the_mask(
    model: Any, tokenizer: Any, listed: Any, vocabulary: Vocabulary
) -> None:
    bias = {i: 1e6 for i in range(0, 300, 3)} | {i: -1e6 for i in range(1, 300, 3)}
    for seed in range(4):
        result = generate(
            model,
            tokenizer,
            "hello",
            listed,
            seed=seed,
            repetition_penalty=50.0,
            logit_bias=bias,
            max_tokens=80,
        )
        assert result.is_complete


def test_penalties_equal_those_of_transformers(model: Any, tokenizer: Any) -> None:
    inputs = tokenizer("hello world hello", return_tensors="pt")
    expected = model.generate(
        **{k: inputs[k] for k in ("input_ids", "attention_mask")},
        max_new_tokens=15,
        do_sample=False,
        repetition_penalty=1.3,
        sequence_bias={(20,): 0.7, (31,): -2.0},
    )[0, inputs["input_ids"].shape[1] :].tolist()
    result = generate(
        model,
        tokenizer,
        "hello world hello",
        temperature=0,
        max_tokens=15,
        repetition_penalty=1.3,
        logit_bias={20: 0.7, 31: -2.0},
    )
    assert result.token_ids == [i for i in expected if i != tokenizer.eos_token_id]


def test_numbers_of_calls(model: Any, tokenizer: Any, listed: Any) -> None:
    """on_token sees every token once, forced and drafted ones too."""
    seen: list[tuple[int, int]] = []
    results = generate_batch(
        model,
        tokenizer,
        PROMPTS,
        [listed] * 5,
        seed=3,
        speculation=PromptLookup(),
        on_token=lambda index, token_id: seen.append((index, token_id)),
    )
    for index, result in enumerate(results):
        assert [t for i, t in seen if i == index] == result.token_ids
        assert result.timings.tokens >= len(result.token_ids)
