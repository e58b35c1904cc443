"""Bitmasks and their application to logits.

A bitmask is an int32 array ``[batch, ceil(size / 32)]``; token ``t`` of row ``i`` is allowed if bit
``t % 32`` of ``bitmask[i, t // 32]`` is set.  This is the layout that inference engines use.

CPU memory with adjacent logits is masked by native code, everything else (other devices, strided
logits) by a few operations of the array library.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from constrain import _native
from constrain.errors import ConstrainError

__all__ = ["allocate_bitmask", "apply_bitmask", "fill_bitmasks"]

_ALIGNMENT = 64
_FLOATS = (np.float16, np.float32, np.float64)
_SHIFTS = np.arange(32, dtype=np.int32)


def allocate_bitmask(batch_size: int, vocabulary_size: int) -> np.ndarray:
    """A bitmask for `batch_size` rows.

    Args:
        batch_size: number of rows.
        vocabulary_size: ``vocabulary.size``, the width of the logits.

    Returns:
        int32 array ``[batch_size, ceil(vocabulary_size / 32)]``, contiguous, beginning at a
        multiple of 64 bytes.  It allows nothing until it is filled.
    """
    if batch_size < 0 or vocabulary_size < 0:
        raise ConstrainError(f"no bitmask has the shape of {batch_size} x {vocabulary_size} tokens")
    words = (vocabulary_size + 31) // 32
    count = batch_size * words
    spare = _ALIGNMENT // 4
    memory = np.zeros(count + spare, dtype=np.int32)
    start = -(memory.ctypes.data // 4) % spare
    return memory[start : start + count].reshape(batch_size, words)


def fill_bitmasks(
    matchers: Sequence[Any],
    bitmask: Any,
    *,
    first_row: int = 0,
    remaining: Sequence[int | None] | None = None,
    threads: int | None = None,
) -> None:
    """Write the allowed tokens of a batch of sequences: matcher i to row ``first_row + i``.

    One call without the GIL.  None in place of a matcher opens the whole row: a sequence without a
    constraint.

    Args:
        matchers: a sequence of `Matcher` or None.
        bitmask: int32 ``[rows, ceil(size / 32)]``, NumPy array or torch tensor in CPU memory.
        first_row: row of the first matcher.
        remaining: for each matcher the number of tokens that may still be written, or None for no
            limit; see `Matcher.fill_bitmask`.
        threads: at most so many threads fill rows (no more than 4); None: as many as pay, by what
            masks took lately.  Each thread beyond the first has automata and tables of its own.

    Raises:
        UnsatisfiableError: some rows have no allowed token at all; its ``rows`` lists them.  All
            rows are written before it is raised; those have their end-of-sequence tokens open.
        LimitExceededError: some rows cannot be finished within what remains: ``rows`` lists them,
            ``needed`` is the largest number of tokens that one of them needs.  All rows are
            written before it is raised; those have their end-of-sequence tokens open.
        TypeError: `bitmask` is no int32 array in CPU memory.
        ValueError: its rows do not fit the vocabulary.
        IndexError: it has too few rows.
    """
    if threads is not None and (isinstance(threads, bool) or threads < 1):
        raise ConstrainError(f"threads must be at least 1, found {threads!r}")
    _native.fill_bitmasks(matchers, bitmask, first_row, remaining, threads or 0)


def apply_bitmask(logits: Any, bitmask: Any, *, rows: Sequence[int] | None = None) -> None:
    """Set the logits of tokens that are not allowed to minus infinity, in place.

    Args:
        logits: ``[batch, width]`` or ``[width]``; NumPy float16, float32 or float64, or a torch
            tensor of a floating type on any device.
        bitmask: int32 ``[batch, words]`` or ``[words]``, NumPy array or torch tensor.  Row i
            belongs to row i of the logits.  Logits behind the last word are masked; a bitmask that
            is wider than the logits must not allow a token behind the last word that they use.
        rows: the rows to mask; the others are left alone.  By default all of them.

    Raises:
        TypeError: an array of another kind or dtype.
        ConstrainError: shapes that do not fit (it is a ValueError).
    """
    torch = sys.modules.get("torch")
    if isinstance(logits, np.ndarray):
        _apply_numpy(logits, bitmask, rows, torch)
    elif torch is not None and isinstance(logits, torch.Tensor):
        _apply_torch(logits, bitmask, rows, torch)
    else:
        raise TypeError(f"logits are {type(logits).__name__}, expected a NumPy array or a tensor")


def _apply_numpy(logits: np.ndarray, bitmask: Any, rows: Sequence[int] | None, torch: Any) -> None:
    if logits.dtype not in _FLOATS or not logits.dtype.isnative:
        raise TypeError(f"logits have dtype {logits.dtype}, expected float16, float32 or float64")
    if not logits.flags.writeable:
        raise ConstrainError("the logits are read-only")
    mask = _numpy_mask(bitmask, torch)
    values, mask, chosen = _matched(logits, mask, rows)
    if chosen is not None and len(chosen) == 0:
        return
    if values.size == 0:
        return
    _check_cut(mask if chosen is None else mask[chosen], values.shape[1])
    adjacent = values.shape[1] == 1 or values.strides[1] == values.itemsize
    if adjacent and values.flags.aligned and values.strides[0] % values.itemsize == 0:
        _native.apply_bitmask(values, _adjacent(mask), chosen)
        return
    for row in range(len(values)) if chosen is None else chosen:
        closed = np.ones(values.shape[1], dtype=bool)
        allowed = ((mask[row][:, None] >> _SHIFTS) & 1).astype(bool).ravel()
        shared = min(len(allowed), len(closed))
        closed[:shared] = ~allowed[:shared]
        values[row, closed] = -np.inf


def _apply_torch(logits: Any, bitmask: Any, rows: Sequence[int] | None, torch: Any) -> None:
    if not logits.is_floating_point() or logits.element_size() == 1:
        raise TypeError(f"logits have dtype {logits.dtype}, expected a floating type")
    logits = logits.detach()
    native = logits.device.type == "cpu" and logits.layout == torch.strided
    if native or isinstance(bitmask, np.ndarray) or bitmask.device.type == "cpu":
        # On the CPU until the shapes are checked: a look at a device's memory waits for it.
        mask: Any = _numpy_mask(bitmask, torch)
    else:
        mask = bitmask
        if mask.dtype != torch.int32:
            raise TypeError(f"the bitmask has dtype {mask.dtype}, expected int32")
    values, mask, chosen = _matched(logits, mask, rows)
    if values.numel() == 0 or (chosen is not None and len(chosen) == 0):
        return
    width = values.shape[1]
    if isinstance(mask, np.ndarray):
        _check_cut(mask if chosen is None else mask[chosen], width)
        if native and (width == 1 or values.stride(1) == 1):
            _native.apply_bitmask(values, _adjacent(mask), chosen)
            return
        mask = torch.from_numpy(_adjacent(mask))
    elif mask.shape[1] > (width + 31) // 32 and bool(mask[:, (width + 31) // 32 :].any()):
        raise ConstrainError(f"the bitmask allows tokens behind the {width} logits")
    mask = mask.to(values.device)
    picked = None if chosen is None else torch.from_numpy(chosen).to(values.device)
    if picked is not None:
        mask = mask[picked]
    shifts = torch.arange(32, dtype=torch.int32, device=values.device)
    closed = (mask.unsqueeze(-1) >> shifts & 1).flatten(1) == 0
    if closed.shape[1] < width:
        tail = closed.new_ones((closed.shape[0], width - closed.shape[1]))
        closed = torch.cat([closed, tail], dim=1)
    closed = closed[:, :width]
    if picked is None:
        values.masked_fill_(closed, float("-inf"))
    else:
        values[picked] = values[picked].masked_fill(closed, float("-inf"))


def _numpy_mask(bitmask: Any, torch: Any) -> np.ndarray:
    if torch is not None and isinstance(bitmask, torch.Tensor):
        bitmask = bitmask.detach().cpu().numpy()
    if not isinstance(bitmask, np.ndarray):
        raise TypeError(
            f"the bitmask is {type(bitmask).__name__}, expected a NumPy array or tensor"
        )
    if bitmask.dtype != np.int32 or not bitmask.dtype.isnative:
        raise TypeError(f"the bitmask has dtype {bitmask.dtype}, expected int32")
    return bitmask


def _matched(logits: Any, mask: Any, rows: Any) -> tuple[Any, Any, np.ndarray | None]:
    """Two-dimensional views of both, and the row indices as int64."""
    if logits.ndim not in (1, 2) or mask.ndim not in (1, 2):
        raise ConstrainError(
            f"logits {tuple(logits.shape)} and bitmask {tuple(mask.shape)}: expected one or two"
            " dimensions each"
        )
    values = logits[None] if logits.ndim == 1 else logits
    words = mask[None] if mask.ndim == 1 else mask
    chosen = None
    if rows is None:
        if len(values) != len(words):
            raise ConstrainError(f"{len(values)} rows of logits, {len(words)} of the bitmask")
    else:
        chosen = np.asarray(rows)
        if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
            raise TypeError("rows must be a sequence of row indices")
        chosen = np.ascontiguousarray(chosen, dtype=np.int64)
        limit = min(len(values), len(words))
        if chosen.size and (chosen.min() < 0 or chosen.max() >= limit):
            raise ConstrainError(f"rows {chosen.tolist()}: expected indices from 0 to {limit - 1}")
    return values, words, chosen


def _adjacent(mask: np.ndarray) -> np.ndarray:
    """The mask with the words of a row next to each other, copied only if they are not."""
    regular = mask.shape[1] <= 1 or mask.strides[1] == mask.itemsize
    if regular and mask.strides[0] % mask.itemsize == 0 and mask.flags.aligned:
        return mask
    return np.ascontiguousarray(mask)


def _check_cut(mask: np.ndarray, width: int) -> None:
    used = (width + 31) // 32
    if mask.shape[1] > used and mask[:, used:].any():
        raise ConstrainError(f"the bitmask allows tokens behind the {width} logits")
