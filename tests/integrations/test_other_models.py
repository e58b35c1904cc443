"""Models that are no plain text models, inside their own `generate`, and audio tokens.

Tiny random weights: vision-language (LLaVA), speech recognition (Whisper), encoder-decoder (BART),
and a causal model whose vocabulary has ranges of audio tokens, as speech synthesis models have.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import constrain
from constrain.decoding import PromptLookup, generate, generate_batch
from constrain.integrations.transformers import ConstrainedLogitsProcessor
from constrain.vocabulary import Vocabulary

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

WIDTH = 352
# JSON without escapes and blanks: a random model would get lost in them.
PATTERN = r'\{"hello":"(red|green)","world":(true|false)\}'
MODES = [
    {"do_sample": True, "temperature": 1.5},
    {"do_sample": False},
    {"do_sample": False, "num_beams": 3},
]


@pytest.fixture
def compiled(vocabulary: Vocabulary) -> Any:
    return constrain.compile(constrain.Regex(PATTERN), vocabulary)


def check(texts: list[bytes]) -> None:
    for text in texts:
        value = json.loads(text)
        assert value["hello"] in ("red", "green")
        assert isinstance(value["world"], bool)


def generated(vocabulary: Vocabulary, output: Any, start: int) -> list[bytes]:
    """The bytes of each row up to its end of sequence or padding (Whisper takes them off)."""
    texts = []
    for row in output[:, start:].tolist():
        ends = [i for i, token_id in enumerate(row) if token_id in vocabulary.eos_token_ids]
        texts.append(vocabulary.decode(row[: ends[0]] if ends else row))
    return texts


def llama(width: int) -> Any:
    return transformers.LlamaConfig(
        vocab_size=width,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
    )


@pytest.mark.parametrize("options", MODES, ids=["sample", "greedy", "beams"])
def test_vision_language(
    tokenizer: Any, vocabulary: Vocabulary, compiled: Any, options: Any
) -> None:
    torch.manual_seed(0)
    vision = transformers.CLIPVisionConfig(
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        image_size=8,
        patch_size=4,
    )
    image_token = WIDTH - 1
    config = transformers.LlavaConfig(
        vision_config=vision,
        text_config=llama(WIDTH),
        image_token_index=image_token,
        vision_feature_select_strategy="default",
        vision_feature_layer=-1,
    )
    model = transformers.LlavaForConditionalGeneration(config).eval()
    words = tokenizer("hello world", add_special_tokens=False)["input_ids"]
    ids = torch.tensor([[image_token] * 4 + words] * 2)
    pixels = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    processor = ConstrainedLogitsProcessor(compiled)
    output = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        pixel_values=pixels,
        logits_processor=[processor],
        max_new_tokens=60,
        eos_token_id=list(vocabulary.eos_token_ids),
        pad_token_id=tokenizer.pad_token_id,
        **options,
    )
    check(generated(vocabulary, output, ids.shape[1]))
    assert processor.is_complete(output) == [True, True]


@pytest.mark.parametrize("options", MODES, ids=["sample", "greedy", "beams"])
@pytest.mark.parametrize("kind", ["whisper", "bart"])
def test_encoder_decoder(
    tokenizer: Any, vocabulary: Vocabulary, compiled: Any, options: Any, kind: str
) -> None:
    """The decoder's start tokens are the prompt; the text begins behind them."""
    torch.manual_seed(0)
    end, pad, begin = (
        tokenizer.eos_token_id,
        tokenizer.pad_token_id,
        tokenizer.bos_token_id,
    )
    shared = {
        "vocab_size": WIDTH,
        "d_model": 16,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_attention_heads": 2,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 16,
        "decoder_ffn_dim": 16,
        "eos_token_id": end,
        "pad_token_id": pad,
        "bos_token_id": begin,
        "decoder_start_token_id": begin,
        "forced_eos_token_id": None,
    }
    if kind == "whisper":
        config = transformers.WhisperConfig(
            **shared,
            num_mel_bins=8,
            max_source_positions=20,
            max_target_positions=120,
            suppress_tokens=None,
            begin_suppress_tokens=None,
        )
        model = transformers.WhisperForConditionalGeneration(config).eval()
        model.generation_config.no_timestamps_token_id = WIDTH - 3
        inputs = {"input_features": torch.randn(2, 8, 40)}
        given = {"decoder_input_ids": torch.tensor([[begin, WIDTH - 3]] * 2)}
    else:
        config = transformers.BartConfig(**shared, max_position_embeddings=120)
        model = transformers.BartForConditionalGeneration(config).eval()
        inputs = {"input_ids": torch.tensor([[5, 6, 7], [8, 9, 10]])}
        given = {}
    processor = ConstrainedLogitsProcessor(compiled)
    output = model.generate(
        **inputs,
        **given,
        logits_processor=[processor],
        max_new_tokens=60,
        eos_token_id=end,
        pad_token_id=pad,
        **options,
    )
    # Whisper hands out what comes behind its start tokens, where these were given.
    start = 0 if output[0, 0] != begin else len(given.get("decoder_input_ids", [[begin]])[0])
    check(generated(vocabulary, output, start))


FRAME = 4  # codebooks
CODES = 16  # entries of each
FIRST = 300  # id of the first audio token; the tokenizer's own end before


def speech(vocabulary: Vocabulary) -> tuple[Vocabulary, Any]:
    """A vocabulary with `FRAME` ranges of audio tokens, and frames between two marks."""
    size = FIRST + FRAME * CODES + 2
    start, end = size - 2, size - 1
    tokens = [*vocabulary.tokens[:FIRST], *[None] * (size - FIRST)]
    wide = Vocabulary(
        tokens,
        vocabulary.eos_token_ids,
        size=size,
        special_tokens={"<audio>": start, "</audio>": end},
    )
    ranges = [
        constrain.TokenRange(FIRST + book * CODES, FIRST + (book + 1) * CODES - 1)
        for book in range(FRAME)
    ]
    spec = constrain.Sequence(
        constrain.Choice(["hello", "world"]),
        constrain.Token("<audio>"),
        constrain.Repeat(constrain.Sequence(*ranges), 2, 5),
        constrain.Token("</audio>"),
    )
    return wide, spec


def check_speech(token_ids: list[int], wide: Vocabulary) -> None:
    start, end = wide.size - 2, wide.size - 1
    at = token_ids.index(start)
    assert wide.decode(token_ids[:at]) in (b"hello", b"world")
    assert token_ids[-1] == end
    frames = token_ids[at + 1 : -1]
    assert len(frames) % FRAME == 0
    assert 2 <= len(frames) // FRAME <= 5
    for index, token_id in enumerate(frames):
        assert (token_id - FIRST) // CODES == index % FRAME


def test_audio_tokens(vocabulary: Vocabulary) -> None:
    """In the own loop, with and without drafts and near the budget, and in `generate`."""
    torch.manual_seed(0)
    wide, spec = speech(vocabulary)
    compiled = constrain.compile(spec, wide)
    model = transformers.LlamaForCausalLM(llama(wide.size)).eval()
    prompts = [[5, 6, 7], [8, 9], [10, 11, 12, 13]]
    for speculation in (None, PromptLookup()):
        for result in generate_batch(
            model, None, prompts, compiled, seed=1, max_tokens=60, speculation=speculation
        ):
            assert result.is_complete
            assert result.text in ("hello", "world")
            check_speech(result.token_ids, wide)
    tight = generate(model, None, prompts[0], compiled, seed=1, max_tokens=12, forced="off")
    check_speech(tight.token_ids, wide)
    assert tight.is_complete
    ids = torch.tensor([[5, 6, 7]] * 3)
    output = model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        logits_processor=[ConstrainedLogitsProcessor(compiled)],
        do_sample=True,
        max_new_tokens=60,
        eos_token_id=list(wide.eos_token_ids),
        pad_token_id=wide.eos_token_ids[0],
    )
    for row in output[:, 3:].tolist():
        check_speech(row[: row.index(wide.eos_token_ids[0])], wide)
