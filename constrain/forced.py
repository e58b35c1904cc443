"""Text that has no alternative, as tokens: what a decode loop appends without a forward pass.

**What is forced.**  From a state, the constraint may allow one text only for a while: the rest of a
key, a closing bracket.  Several tokenizations of that text may be allowed, and near its end also
tokens that reach beyond it, where the text has alternatives again.  The rule:

* The stretch is written as the tokenizer writes it (`Vocabulary.encode`), token by token.
* The run ends at the first border between these tokens from which *some allowed token reaches
  beyond the stretch*: there the choice is one of text, and the model makes it among all allowed
  tokens.  So ``{"name": 1`` is not forced up to the space if `` 1`` is a token.
* Inside the run only the choice among spellings of the same text is taken from the model.  Where
  exactly one token is allowed there is no choice at all.

At every position where texts can differ, the distribution is therefore that of plain decoding given
the tokens before it.  Mode "single" takes tokens only where the mask has exactly one, which leaves
also the distribution over spellings as it is.

**Budget.**  A token is taken only if the mask of the remaining budget has it, so where the usual
spelling of a stretch is too long, the model's masks lead it to a shorter one.

Cost: a look at the machine for states without a forced text; otherwise some microseconds a token,
and one look at all tokens where a token might reach beyond the stretch.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from constrain import _native
from constrain.errors import ConstrainError, UnsatisfiableError
from constrain.masks import allocate_bitmask

__all__ = ["MODES", "check_mode", "forced_run", "spelled_run"]

MODES = ("text", "single", "off")

_LONGEST_RUN = 256  # tokens; a loop finds the rest in its next step
_LONGEST_TEXT = 2048  # bytes

_lengths: weakref.WeakKeyDictionary[Any, np.ndarray] = weakref.WeakKeyDictionary()


def check_mode(mode: str) -> None:
    """Raise ConstrainError if `mode` is none of `MODES`."""
    if mode not in MODES:
        raise ConstrainError(f"forced is {mode!r}, expected {', '.join(map(repr, MODES))}")


def forced_run(matcher: Any, *, remaining: int | None = None, mode: str = "text") -> list[int]:
    """The tokens that can be appended now without asking the model, possibly none.

    Args:
        matcher: of a sequence; it is left as it is.
        remaining: the tokens that the sequence may still have; the run keeps to masks that were
            filled with this budget.
        mode: "text", "single", or "off" (never a token), as the module says.

    Returns:
        Token ids, each allowed in its turn; none of them ends the sequence.
    """
    if mode == "off" or remaining == 0 or matcher.is_finished:
        return []
    if mode == "text":
        run = spelled_run(matcher, remaining=remaining)
        if run:
            return run
    return _single_run(matcher, remaining)


def spelled_run(matcher: Any, *, remaining: int | None = None) -> list[int]:
    """The part of `forced_run` that has a text without alternative; [] where there is none."""
    text = matcher.forced_bytes(_LONGEST_TEXT)
    vocabulary = matcher.compiled.vocabulary
    spelled = vocabulary.encode(_whole_characters(text)) if text else None
    if not spelled:
        return []
    if remaining is None:
        spelled = spelled[: matcher.validate(spelled)]
    else:
        spelled = spelled[: matcher.validate(spelled[:remaining], remaining=remaining)]
    run: list[int] = []
    for token_id in spelled:
        # Zero: all of the text is a proper prefix of some token.
        if _native.safe_cut(vocabulary.native, text) == 0:
            ahead = matcher.fork()
            for before in run:
                ahead.advance(before)
            row = allocate_bitmask(1, vocabulary.size)
            # Without the budget: what only the limit closes is an alternative all the same.
            if not _fill(ahead, row, None) or _longest(row, vocabulary) > len(text):
                break
        run.append(token_id)
        text = text[len(vocabulary.tokens[token_id]) :]
    return run


def _single_run(matcher: Any, remaining: int | None) -> list[int]:
    """Tokens as long as the mask has exactly one, which does not end the sequence."""
    vocabulary = matcher.compiled.vocabulary
    row = allocate_bitmask(1, vocabulary.size)
    ahead = matcher
    run: list[int] = []
    limit = _LONGEST_RUN if remaining is None else min(remaining, _LONGEST_RUN)
    while len(run) < limit:
        if not _fill(ahead, row, None if remaining is None else remaining - len(run)):
            break
        words = row[0].nonzero()[0]
        if len(words) != 1:
            break
        word = int(row[0, words[0]]) & 0xFFFFFFFF
        token_id = int(words[0]) * 32 + word.bit_length() - 1
        if word & (word - 1) or token_id in vocabulary.eos_token_ids:
            break
        if ahead is matcher:
            ahead = matcher.fork()
        ahead.advance(token_id)
        run.append(token_id)
    return run


def _fill(matcher: Any, row: np.ndarray, remaining: int | None) -> bool:
    """Fill the mask; False where no token is allowed."""
    try:
        if remaining is None:
            matcher.fill_bitmask(row, 0)
        else:
            matcher.fill_bitmask(row, 0, remaining=remaining)
    except UnsatisfiableError:
        return False
    return True


def _longest(row: np.ndarray, vocabulary: Any) -> int:
    """Bytes of the longest allowed token."""
    lengths = _lengths.get(vocabulary)
    if lengths is None:
        lengths = np.array(
            [0 if data is None else len(data) for data in vocabulary.tokens], dtype=np.int32
        )
        _lengths[vocabulary] = lengths
    allowed = np.unpackbits(row[0].view(np.uint8), bitorder="little")[: vocabulary.size]
    return int(lengths[allowed.view(bool)].max(initial=0))


def _whole_characters(text: bytes) -> bytes:
    """Without a UTF-8 sequence that is cut off at the end."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        return text[: error.start]
    return text
