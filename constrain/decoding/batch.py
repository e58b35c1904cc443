"""Forward passes of a batch over one KV cache: ragged chunks, tokens taken back, rows that leave.

Each pass takes a chunk of tokens for each row: a prompt, one sampled token, a run of forced tokens,
or a token and a draft behind it.  Chunks of different lengths end in the same column; the columns
that a row does not use, and those of tokens that were taken back, are *holes*: the attention mask
hides them, and positions count only what is there.  Holes are squeezed out when they become many.

Invariants: column c of the cache belongs to row r if and only if ``_valid[r, c]``; the position of
a token is the number of valid columns before it (in a tree: of its ancestors).

Two kinds of models cannot have holes.  With a sliding window, the distance of columns must be the
distance of positions: chunks begin in the same column there, and holes are squeezed out after each
pass.  Models that keep a state instead
of keys and values (recurrent and hybrid ones) cannot take tokens back at all: `can_take_back` is
false, and each pass takes one token of each row.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from constrain.errors import ConstrainError

__all__ = ["Batch", "Chunk", "context_limit"]

# Holes that are carried along before the cache is rewritten, beside a quarter of its width.
_SPARE_COLUMNS = 32


@dataclass(frozen=True)
class Chunk:
    """What one row reads in a pass.

    Attributes:
        tokens: token ids; none for a row that only waits.
        parents: for each token the index of the token of this chunk that it follows, -1 for what
            the row has read before; None: each follows the one before it.
    """

    tokens: Sequence[int]
    parents: Sequence[int] | None = None

    @property
    def is_tree(self) -> bool:
        """Whether some token does not follow the one before it."""
        return self.parents is not None and any(p != i - 1 for i, p in enumerate(self.parents))


class Batch:
    """A model and the KV cache of some rows.

    Args:
        model: a causal language model of transformers.
        rows: how many sequences.
    """

    def __init__(self, model: Any, rows: int) -> None:
        parameters = inspect.signature(model.forward).parameters
        self._model = model
        self._device = model.device
        self._cache_name = "cache" if "cache" in parameters else "past_key_values"
        self._takes_positions = "position_ids" in parameters
        self._last_only = next(
            (n for n in ("logits_to_keep", "num_logits_to_keep") if n in parameters), None
        )
        self._cache, self.can_take_back, self._is_sliding = _new_cache(model)
        self._valid = np.zeros((rows, 0), dtype=bool)
        # Rows of the cache, which cannot always drop some: index into it of each running row.
        self._rows = list(range(rows))
        self._chunks: list[Chunk] = []
        self.passes = 0

    @property
    def can_branch(self) -> bool:
        """Whether trees of drafts can be read: each token sees its ancestors only."""
        attention = getattr(getattr(self._model, "config", None), "_attn_implementation", None)
        plain = attention in ("sdpa", "eager", None) and not self._is_sliding
        return self.can_take_back and self._takes_positions and plain

    def read(self, chunks: Sequence[Chunk], wanted: int = 1) -> Any:
        """One forward pass.

        Args:
            chunks: one for each running row.
            wanted: for how many of the last tokens of each row the logits are needed.

        Returns:
            float32 tensor ``[running rows, w, width]``, a copy; ``w`` is `wanted`, or the length of
            the longest chunk if that is less.  The last token of a row's chunk is at -1.

        Raises:
            ConstrainError: the model returns no KV cache, or cannot read trees.
        """
        import torch

        if any(chunk.is_tree for chunk in chunks) and not self.can_branch:
            raise ConstrainError(f"{type(self._model).__name__} cannot read drafts that branch")
        width = max(len(chunk.tokens) for chunk in chunks)
        height, before = self._valid.shape
        # With a window, a hole between what was read and the chunk would count as a distance.
        aligned_left = self._is_sliding and before > 0
        ids = np.zeros((height, width), dtype=np.int64)
        positions = np.zeros((height, width), dtype=np.int64)
        valid = np.zeros((height, width), dtype=bool)
        for row, chunk in zip(self._rows, chunks):
            start = 0 if aligned_left else width - len(chunk.tokens)
            end = start + len(chunk.tokens)
            ids[row, start:end] = chunk.tokens
            positions[row, start:end] = int(self._valid[row].sum()) + _depths(chunk)
            valid[row, start:end] = True
        self._valid = np.concatenate([self._valid, valid], axis=1)
        self._chunks = list(chunks)
        if any(chunk.is_tree for chunk in chunks):
            mask = self._tree_mask(chunks, before, width)
        else:
            mask = torch.from_numpy(self._valid.astype(np.int64)).to(self._device)
        options: dict[str, Any] = {self._cache_name: self._cache, "use_cache": True}
        if self._takes_positions:
            options["position_ids"] = torch.from_numpy(positions).to(self._device)
        wanted = min(wanted, width)
        if self._last_only is not None:
            options[self._last_only] = width if aligned_left else wanted
        output = self._model(
            input_ids=torch.from_numpy(ids).to(self._device), attention_mask=mask, **options
        )
        self.passes += 1
        self._cache = getattr(output, self._cache_name, None)
        if self._cache is None:
            raise ConstrainError(
                f"{type(self._model).__name__} returns no KV cache, which this loop needs"
            )
        logits = output.logits
        if aligned_left:
            lengths = np.zeros(height, dtype=np.int64)
            lengths[self._rows] = [len(chunk.tokens) for chunk in chunks]
            order = (np.arange(width - wanted, width) - (width - lengths[:, None])).clip(min=0)
            columns = torch.from_numpy(order).to(logits.device)[:, :, None]
            logits = logits.gather(1, columns.expand(-1, -1, logits.shape[2]))
            self._squeeze()
        logits = logits[:, -wanted:, :]
        if len(self._rows) != height:
            logits = logits[self._rows]
        # A copy: the mask is applied in place.
        return logits.to(dtype=torch.float32, copy=True).contiguous()

    def keep_tokens(self, kept: Sequence[Sequence[int] | None]) -> None:
        """Take back tokens of the last chunks.

        Args:
            kept: for each running row the indices of the tokens of its last chunk that stay, which
                must be a path; None: all of them.
        """
        for row, chunk, indices in zip(self._rows, self._chunks, kept):
            if indices is not None:
                start = self._valid.shape[1] - len(chunk.tokens)
                self._valid[row, start:] = False
                self._valid[row, [start + index for index in indices]] = True
        self._squeeze()

    def truncate(self, lengths: Sequence[int]) -> None:
        """Keep only the first tokens of the running rows: so many of each."""
        for row, length in zip(self._rows, lengths):
            columns = self._valid[row].nonzero()[0]
            self._valid[row, columns[length:]] = False
        if self._valid.shape[1]:
            self._squeeze()

    def keep_rows(self, rows: Sequence[int]) -> None:
        """Go on with these of the running rows only."""
        import torch

        self._rows = [self._rows[row] for row in rows]
        if self._valid.shape[1] and self._rows:
            select = getattr(self._cache, "batch_select_indices", None)
            layers = getattr(self._cache, "layers", ())
            if select is None or not all(hasattr(x, "batch_select_indices") for x in layers):
                return  # the other rows are carried along
            select(torch.tensor(self._rows, dtype=torch.int64, device=self._device))
        self._valid = self._valid[self._rows]
        self._rows = list(range(len(self._rows)))

    def _squeeze(self) -> None:
        """Move the valid columns of each row to the right where holes have become many."""
        import torch

        if not self.can_take_back:
            return
        live = self._valid[self._rows]
        total, used = live.shape[1], int(live.sum(axis=1).max())
        ragged = self._is_sliding and bool((np.diff(live.astype(np.int8), axis=1) < 0).any())
        end = int(np.flatnonzero(live.any(axis=0)).max(initial=-1)) + 1
        if end < total:
            # Behind the last column in use: cut, without moving anything.
            for layer in _layers(self._cache):
                layer.keys = layer.keys[:, :, :end]
                layer.values = layer.values[:, :, :end]
            self._valid = self._valid[:, :end]
            total = end
        if not ragged and total - used <= _SPARE_COLUMNS + used // 4:
            return
        # A stable sort puts the holes first and keeps the order of the others.
        order = np.argsort(self._valid, axis=1, kind="stable")[:, total - used :]
        self._valid = np.take_along_axis(self._valid, order, axis=1)
        columns = torch.from_numpy(order).to(self._device)[:, None, :, None]
        for layer in _layers(self._cache):
            for name in ("keys", "values"):
                tensor = getattr(layer, name)
                index = columns.to(tensor.device).expand(-1, tensor.shape[1], -1, tensor.shape[3])
                setattr(layer, name, tensor.gather(2, index))

    def _tree_mask(self, chunks: Sequence[Chunk], before: int, width: int) -> Any:
        """An additive mask ``[height, 1, width, columns]`` by which tokens see their ancestors."""
        import torch

        height, columns = self._valid.shape
        seen = np.zeros((height, width, columns), dtype=bool)
        seen[:, :, :before] = self._valid[:, None, :before]
        # Unused queries see themselves: a row of softmax over nothing would be NaN.
        seen[:, range(width), range(before, columns)] = True
        for row, chunk in zip(self._rows, chunks):
            start = width - len(chunk.tokens)
            for index in range(len(chunk.tokens)):
                parent = index - 1 if chunk.parents is None else chunk.parents[index]
                if parent >= 0:
                    chunk_part = seen[row, :, before:]
                    chunk_part[start + index] |= chunk_part[start + parent]
        dtype = self._model.dtype
        mask = torch.zeros(seen.shape, dtype=dtype)
        mask.masked_fill_(torch.from_numpy(~seen), torch.finfo(dtype).min)
        return mask[:, None].to(self._device)


def _depths(chunk: Chunk) -> np.ndarray:
    """int64 ``[tokens]``: how many tokens of the chunk each one follows."""
    if chunk.parents is None:
        return np.arange(len(chunk.tokens))
    depths = np.zeros(len(chunk.tokens), dtype=np.int64)
    for index, parent in enumerate(chunk.parents):
        depths[index] = 0 if parent < 0 else depths[parent] + 1
    return depths


def _new_cache(model: Any) -> tuple[Any, bool, bool]:
    """A cache, whether tokens of it can be taken back, and whether attention has a window.

    Without a cache of its own (None), the model makes one at the first pass.
    """
    from transformers import cache_utils

    config = getattr(model, "config", None)
    plain = getattr(cache_utils, "DynamicLayer", None)
    sliding = getattr(cache_utils, "DynamicSlidingWindowLayer", None)
    if plain is None or config is None or getattr(model, "_is_stateful", False):
        return None, False, False
    try:
        layers = cache_utils.DynamicCache(config=config).layers
    except Exception:
        # Configurations of models with caches of their own fail in many ways.
        return None, False, False
    kinds = {type(layer) for layer in layers}
    if not kinds <= {plain, sliding}:
        return None, False, False
    # Without the configuration all layers keep all columns, which can be taken back; the model's
    # mask still hides what is outside of the window.
    return cache_utils.DynamicCache(), True, sliding in kinds


def _layers(cache: Any) -> list[Any]:
    return [layer for layer in cache.layers if layer.keys is not None]


def context_limit(model: Any) -> int | None:
    """How many tokens `model` can read, prompt included; None where it does not say."""
    config: Any = getattr(model, "config", None)
    if hasattr(config, "get_text_config"):
        config = config.get_text_config()
    limit = getattr(config, "max_position_embeddings", None)
    return int(limit) if isinstance(limit, int) and limit > 0 else None
