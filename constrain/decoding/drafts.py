"""Drafts: trees of tokens that may come next, for a model to check in one pass.

A node holds a token, the state of the constraint behind it (a `fork` of its parent's matcher), and
how it was found: *forced* (the text has no alternative), *drawn* from a draft distribution, or just
*proposed*.  A token that the constraint refuses never enters, nor one that ends the sequence.

Invariant: behind every drawn or proposed node comes all of the run that is forced there, so that a
loop with drafts forces exactly the tokens that a loop without them forces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from constrain.decoding.sequence import Running
from constrain.forced import forced_run

__all__ = ["Draft"]


class Draft:
    """The draft of one sequence; the root, -1, is the sequence as it is.

    Args:
        sequence: not finished, with its forced run appended.
        mode: how runs are forced (`constrain.forced.MODES`).
    """

    def __init__(self, sequence: Running, mode: str) -> None:
        self._mode = mode
        self._ends = sequence.vocabulary.eos_token_ids
        self._size = sequence.vocabulary.size
        self._root = sequence.matcher
        self._budgeted = sequence.remaining is not None
        self._left = sequence.left
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.forced: list[bool] = []
        self.drawn_from: list[Any] = []  # the draft's distribution [width], None if not drawn
        self.matchers: list[Any] = []
        self.lefts: list[int] = []
        self._children: dict[int, list[int]] = {}

    def __len__(self) -> int:
        return len(self.tokens)

    def left(self, node: int) -> int:
        """How many tokens the sequence may still have behind `node`."""
        return self._left if node < 0 else self.lefts[node]

    def remaining(self, node: int) -> int | None:
        """The budget of the mask behind `node`; None without one, or if nothing is left of it."""
        return self.left(node) or None if self._budgeted else None

    def matcher(self, node: int) -> Any:
        """The matcher behind `node`, None without a constraint; not to be advanced."""
        return self._root if node < 0 else self.matchers[node]

    def children(self, node: int) -> list[int]:
        """The nodes that follow `node`, in the order in which they are tried."""
        return self._children.get(node, [])

    def is_forced_on(self, node: int) -> bool:
        """Whether what follows `node` is forced, so that nothing is chosen there."""
        children = self.children(node)
        return bool(children) and self.forced[children[0]]

    def path(self, node: int) -> list[int]:
        """The tokens from the root to `node`."""
        tokens: list[int] = []
        while node >= 0:
            tokens.append(self.tokens[node])
            node = self.parents[node]
        return tokens[::-1]

    def add(self, parent: int, token_id: int, drawn_from: Any = None) -> int | None:
        """Add a token behind `parent`, and what is forced behind it.

        Returns:
            The last node of what was added (or of what was there already), None where the token is
            refused: it is not allowed, ends the sequence, or there is no room for it.
        """
        if token_id in self._ends or token_id >= self._size or self.left(parent) < 1:
            return None
        for node in self.children(parent):
            if self.tokens[node] == token_id:
                return self._end_of_run(node)
        before = self.matcher(parent)
        behind = None
        if before is not None:
            behind = before.fork()
            if not behind.try_advance(token_id):
                return None
        node = self._append(parent, token_id, behind, forced=False, drawn_from=drawn_from)
        while behind is not None and self.lefts[node] > 0:
            run = forced_run(behind, remaining=self.remaining(node), mode=self._mode)
            if not run:
                break
            for forced in run[: self.lefts[node]]:
                behind = behind.fork()
                behind.advance(forced)
                node = self._append(node, forced, behind, forced=True, drawn_from=None)
        return node

    def _append(
        self, parent: int, token_id: int, matcher: Any, *, forced: bool, drawn_from: Any
    ) -> int:
        self.lefts.append(self.left(parent) - 1)
        self.tokens.append(token_id)
        self.parents.append(parent)
        self.forced.append(forced)
        self.drawn_from.append(drawn_from)
        self.matchers.append(matcher)
        node = len(self.tokens) - 1
        self._children.setdefault(parent, []).append(node)
        return node

    def _end_of_run(self, node: int) -> int:
        """The last node of the run that is forced behind `node`."""
        while self.is_forced_on(node):
            (node,) = self.children(node)
        return node

    def add_path(self, parent: int, token_ids: Sequence[int]) -> int:
        """Add tokens one behind the other, as far as they are allowed; gives the last node.

        Tokens that repeat a forced run are that run; others end the path.
        """
        tokens = list(token_ids)
        node = parent
        while tokens:
            end = self.add(node, tokens[0])
            if end is None:
                break
            added = self.path(end)[len(self.path(node)) :]
            if tokens[: len(added)] != added:
                return end
            tokens = tokens[len(added) :]
            node = end
        return node
