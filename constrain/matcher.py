"""One sequence under a constraint.

A matcher is a list of tokens and of state ids: advancing appends, rolling back drops the tail, a
fork copies the list.  The methods that a decode loop calls for every token are those of the native
base class; a call costs a few hundred nanoseconds beside the work itself.

After the end: behind an end-of-sequence token the sequence is finished.  Then exactly the
end-of-sequence tokens are allowed, so that an engine that keeps sampling a finished row finds
something; advancing over one of them changes nothing but is counted by `rollback`; every other
token is rejected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain import _native
from constrain.forced import forced_run

if TYPE_CHECKING:
    from constrain.compile import CompiledConstraint
    from constrain.explanations import Explanation

__all__ = ["Matcher"]


class Matcher(_native.Matcher):
    """Follows one sequence; made by ``compiled.matcher()``.

    Inherited from the native class:

    * ``advance(token_id)``: append a token.  Raises `TokenRejectedError` with the token, its text
      and what was expected where it is not allowed; the state is then unchanged.
    * ``try_advance(token_id) -> bool``: the same, False instead of the error.
    * ``rollback(n)``: take back the last n tokens, end-of-sequence tokens included.  Raises
      `ConstrainError` if there are fewer.
    * ``reset()``: take back all of them.
    * ``validate(token_ids, *, remaining=None) -> int``: how many of these tokens could be appended
      one after the other, and the text still be finished; the state is unchanged.
    * ``fill_bitmask(bitmask, row=0, *, remaining=None)``: write the allowed tokens to a row of an
      int32 bitmask (`constrain.allocate_bitmask`; NumPy array or torch tensor in CPU memory).
      Raises `UnsatisfiableError` where no token of the vocabulary can continue; the row then
      holds the end-of-sequence tokens, never nothing.
    * ``is_accepting``: the text so far is valid as it is (or the sequence is finished).
    * ``is_finished``: an end-of-sequence token was appended.
    * ``tokens``: the ids so far, a new list.
    * ``expected() -> str``: what may come next, for people.
    * ``completion(limit) -> bytes | None``: a short text that would complete this one.
    * ``shortest_completion() -> list[int] | None``: the fewest tokens that would complete this
      text, as far as is known; [] for a valid text, None where no completion was found.
    * ``tokens_needed``: how many they are, or None.

    Token budgets: ``remaining=n`` says that at most n more tokens will be appended.  Then only
    tokens are allowed after which the text can be finished within n - 1 further ones.  A text that
    is valid needs no end-of-sequence token at its limit, so n counts the tokens of the text; an
    end-of-sequence token that is sampled before the limit counts like any other.  A sequence that
    is filled with a budget from its first token on therefore ends in a valid text, whatever is
    sampled.  Raises `LimitExceededError` where even the shortest completion needs more than n
    tokens; its ``needed`` says how many; the row then holds the end-of-sequence tokens.

    All methods may be called from any thread.
    """

    __slots__ = ("compiled",)

    compiled: CompiledConstraint

    def __init__(self, compiled: CompiledConstraint) -> None:
        super().__init__(compiled._native)
        self.compiled = compiled

    def fork(self) -> Matcher:
        """An independent matcher at the same point: for beams, samples and drafts."""
        other = type(self).__new__(type(self))
        _native.Matcher.__init__(other, self)
        other.compiled = self.compiled
        return other

    def forced_tokens(self, *, remaining: int | None = None) -> list[int]:
        """The tokens of the text that has no alternative from here, possibly none.

        They are what the tokenizer itself would write for that text, and stop before the first one
        where an allowed token would reach beyond the text, into what has alternatives again.
        Without a tokenizer at hand, only tokens without any other allowed token are given.  Each of
        them is allowed in its turn, also within a budget of `remaining` tokens (see above); none
        ends the sequence; the state is unchanged.  `constrain.forced` has the details.
        """
        return forced_run(self, remaining=remaining)

    def explain(self, token_id: int | None = None, *, remaining: int | None = None) -> Explanation:
        """Where the sequence stands, what may come next and, of a token, why it may not.

        An explanation has the places in the schema (JSON pointers) or in the grammar (rules with
        their lines), the bytes that may come next and, of a token that is not allowed, how much of
        it could be read, the byte that is refused, and the reasons: for JSON the few keywords of
        the schema that are enough to refuse it.  ``str()`` gives it as lines for people,
        ``to_dict()`` as plain JSON values.  The state is unchanged.  It takes milliseconds, with
        large schemas up to seconds: it is for people and logs, not for a decode loop.

        Args:
            token_id: the token that is asked about.
            remaining: the budget under which it is asked about, see above.

        Raises:
            ConstrainError: there is no such token.
        """
        from constrain.explanations import explain_token

        return explain_token(self, token_id, remaining=remaining)

    def __repr__(self) -> str:
        state = "finished" if self.is_finished else "accepting" if self.is_accepting else "open"
        return f"<Matcher {state}, {len(self.tokens)} tokens>"
