"""The choice of tokens from a pass: checks a draft, and draws where it ends.

Without a draft this is plain sampling: warp, draw.  With one it walks the tree from the root.

**Exactness.**  Let p be the model's masked and warped distribution at a position.  A node drawn
from the draft distribution q is taken with probability min(1, p/q), and else p becomes the
normalised max(p - q, 0).  A proposed node c is taken with probability p(c), and else c is taken out
of p.  When no child is taken, the token is drawn from what p has become.  Either way the token is
distributed as p (for a proposed node trivially; for a drawn one by the theorem of speculative
sampling), whatever the draft.  Forced runs are those of plain decoding, so texts are distributed as
without drafts; a given seed draws other ones.
"""

from __future__ import annotations

from typing import Any

from constrain.decoding.drafts import Draft
from constrain.decoding.masks import Masks
from constrain.decoding.sequence import Running

__all__ = ["check_child", "choose"]


def choose(
    sequence: Running,
    draft: Draft,
    logits: Any,
    masks: Masks,
    rows: list[int],
    removed: list[float],
) -> list[int]:
    """Append the tokens that a pass yields: drafted ones that are taken, then one that is drawn.

    Args:
        sequence: not finished; it may be afterwards.
        draft: behind the sequence.
        logits: float tensor ``[1 + nodes, width]``, masked: behind the sequence, behind each node.
        masks: filled for the same positions.
        rows: the row of `masks` for each position.
        removed: the share of probability that each mask removed; empty if that was not measured.

    Returns:
        The nodes that were taken, a path from the root.
    """
    taken: list[int] = []
    at = -1
    while sequence.finish_reason is None:
        if draft.is_forced_on(at):
            (at,) = draft.children(at)
            taken.append(at)
            sequence.timings.forced += 1
            sequence.append(draft.tokens[at])
            continue
        if at >= 0 and sequence.end_if_over(masks, rows[at + 1]):
            break
        if removed and sequence.matcher is not None:
            sequence.timings.removed.append(removed[at + 1])
        ids, probabilities = sequence.sampler.distribution(logits[at + 1])
        found = _taken_child(sequence, draft, draft.children(at), ids, probabilities)
        if isinstance(found, int):
            at = found
            taken.append(at)
            sequence.timings.accepted += 1
            sequence.append(draft.tokens[at])
            continue
        sequence.append(sequence.sampler.draw(ids, found))
        break
    return taken


def _taken_child(
    sequence: Running, draft: Draft, children: list[int], ids: Any, probabilities: Any
) -> Any:
    """The child that is taken, or the weights ``[ids]`` for the draw if none is."""
    weights = probabilities
    for child in children:
        chance, left = check_child(ids, weights, draft.tokens[child], draft.drawn_from[child])
        if chance >= 1 or (chance > 0 and sequence.sampler.uniform(ids.device) < chance):
            return child
        total = float(left.sum())
        if total <= 0:
            # Only rounding leaves nothing here: the child was all there is.
            return child
        weights = left / total
    return weights


def check_child(ids: Any, probabilities: Any, child: int, drawn_from: Any) -> tuple[float, Any]:
    """How a drafted token is checked.

    Args:
        ids, probabilities: the distribution p that the token is to have; int64 and float32 ``[n]``.
        child: the token that was drafted.
        drawn_from: float32 ``[width]``, the distribution that it was drawn from; None: proposed.

    Returns:
        The probability with which the child is taken, and float32 weights ``[n]`` (not normalised)
        from which the token is drawn where it is not.
    """
    here = ids == child
    share = float(probabilities[here].sum())
    if drawn_from is None:
        return share, probabilities.masked_fill(here, 0.0)
    q = drawn_from.new_zeros(len(ids))
    inside = ids < len(drawn_from)
    q[inside] = drawn_from[ids[inside]]
    return min(1.0, share / float(drawn_from[child])), (probabilities - q).clamp(min=0.0)
