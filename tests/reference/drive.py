"""Feeding whole texts through a matcher while holding it to its contract.

`judge` looks at the mask bit of each token before it advances by that token, so that a verdict is
one about *masks*, and checks on the way that masks and state agree: a token with a clear bit is
refused by `try_advance`, one with a set bit is taken, and the end-of-sequence bits say what
`is_accepting` says. A disagreement raises `ContractError`, which is a failure of its own kind.

Also here: tokenizations of a text that no tokenizer would choose. An exact mask allows every one.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


class ContractError(AssertionError):
    """A matcher contradicts itself: mask, advance and accepting state disagree."""


@dataclass(frozen=True)
class Verdict:
    """What became of a sequence of tokens.

    `accepted` is true where every token was allowed and the end of sequence after it. Otherwise
    `position` is the index of the refused token (the number of tokens when only the end was).
    """

    accepted: bool
    position: int


def bit(row: np.ndarray, token_id: int) -> bool:
    """Bit `token_id` of a mask row (int32 words, bit t % 32 of word t // 32)."""
    return bool((int(row[token_id >> 5]) >> (token_id & 31)) & 1)


def allowed_ids(row: np.ndarray, size: int) -> np.ndarray:
    """The ids whose bits are set in a mask row, ascending, as int64."""
    words = np.ascontiguousarray(row).view(np.uint8)
    return np.flatnonzero(np.unpackbits(words, bitorder="little")[:size])


def new_row(vocabulary: Any) -> np.ndarray:
    """A bitmask of one row for `vocabulary`, int32 [1, ceil(size / 32)]."""
    import constrain

    return constrain.allocate_bitmask(1, vocabulary.size)


def judge(
    compiled: Any, tokens: Sequence[int], eos_ids: Sequence[int], bitmask: np.ndarray
) -> Verdict:
    """Feed `tokens` and the end of sequence through a new matcher of `compiled`.

    `bitmask` is scratch of shape [1, words]. Raises ContractError where the matcher disagrees with
    its own masks.
    """
    import constrain

    matcher = compiled.matcher()
    row = np.asarray(bitmask)[0]
    for position, token in enumerate(tokens):
        try:
            matcher.fill_bitmask(bitmask, 0)
        except constrain.UnsatisfiableError as error:
            raise ContractError(f"a dead end before token {position}: {error}") from error
        if not bit(row, token):
            if matcher.try_advance(token):
                raise ContractError(f"token {token} at {position}: masked, yet advance took it")
            return Verdict(False, position)
        if not matcher.try_advance(token):
            raise ContractError(f"token {token} at {position}: allowed, yet advance refused it")
    matcher.fill_bitmask(bitmask, 0)
    ends = [bit(row, eos) for eos in eos_ids]
    if len(set(ends)) > 1:
        raise ContractError(f"end-of-sequence bits differ among {list(eos_ids)}: {ends}")
    if ends[0] != bool(matcher.is_accepting):
        raise ContractError(f"eos bit is {ends[0]}, is_accepting is {matcher.is_accepting}")
    if matcher.is_finished:
        raise ContractError("is_finished before the end of sequence was taken")
    if not ends[0]:
        return Verdict(False, len(tokens))
    matcher.advance(eos_ids[0])
    if not matcher.is_finished:
        raise ContractError("not is_finished after the end of sequence")
    return Verdict(True, len(tokens))


def random_tokens(
    text: bytes, by_bytes: Mapping[bytes, Sequence[int]], rng: random.Random, longest: int = 16
) -> list[int] | None:
    """A random tokenization of `text`, or None where the vocabulary cannot spell it.

    At each place one of the tokens that fit is drawn; where none of them leads on, None. With all
    single bytes in the vocabulary there is always one.
    """
    ids: list[int] = []
    position = 0
    while position < len(text):
        fitting = [
            length
            for length in range(1, min(longest, len(text) - position) + 1)
            if text[position : position + length] in by_bytes
        ]
        if not fitting:
            return None
        length = rng.choice(fitting)
        ids.append(rng.choice(by_bytes[text[position : position + length]]))
        position += length
    return ids


def tokens_by_bytes(tokens: Sequence[bytes | None]) -> dict[bytes, list[int]]:
    """Byte string to the ids that spell it; ids without text (special, unused) are left out."""
    table: dict[bytes, list[int]] = {}
    for token_id, text in enumerate(tokens):
        if text:
            table.setdefault(text, []).append(token_id)
    return table
