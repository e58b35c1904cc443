"""The grammar backend for SGLang: ``--grammar-backend constrain``.

SGLang finds :func:`register` by the entry point ``sglang.srt.plugins``.  Requests are SGLang's own:
``json_schema``, ``regex`` and ``ebnf`` (GBNF where a line begins with ``name ::=``, else Lark);
structural tags are refused.  Masks are packed int32 rows in CPU memory, which is what its tree
speculation reads; a step of the tree is ``accept_token``, ``fill_vocab_mask``, ``rollback(1)``.

SGLang keeps the grammars of keys for itself, without a bound, and copies them for each request: a
copy here is a new matcher of the same compiled constraint.  It does not tell a backend
``max_new_tokens``, so there is no token budget.

Custom backends are returned ahead of SGLang's reasoning wrapper, so this one wraps itself.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from constrain.errors import ConstrainError, UnsatisfiableError
from constrain.integrations.base import Adapter
from constrain.integrations.requests import grammar_syntax
from constrain.vocabulary import Vocabulary

__all__ = ["NAME", "BackendCore", "GrammarCore", "create_backend", "register"]

NAME = "constrain"

_log = logging.getLogger("constrain")


class GrammarCore:
    """The methods of SGLang's ``BaseGrammarObject`` for one request.

    Tokens behind an end of sequence are counted and change nothing, so that a rollback over them
    is exact.
    """

    def start(self, adapter: Adapter, compiled: Any) -> None:
        """Set up a new object at the start of a text."""
        self.adapter = adapter
        self.compiled = compiled
        self.matcher = compiled.matcher()
        self._behind = 0

    def accept_token(self, token: int) -> None:
        """Append a token; raises ValueError if it is illegal."""
        if self.matcher.is_finished:
            self._behind += 1
        else:
            self.matcher.advance(int(token))
        self.current_token = token

    def rollback(self, k: int) -> None:
        """Take back the last k tokens."""
        behind = min(k, self._behind)
        self._behind -= behind
        if k > behind:
            self.matcher.rollback(k - behind)

    def is_terminated(self) -> bool:
        """An end of sequence was accepted."""
        return bool(self.matcher.is_finished)

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> Any:
        """int32 tensor ``[batch_size, ceil(vocab_size / 32)]`` in CPU memory, all allowed."""
        import torch

        size = max(vocab_size, self.adapter.vocabulary.size)
        return torch.full((batch_size, (size + 31) // 32), -1, dtype=torch.int32)

    def fill_vocab_mask(self, vocab_mask: Any, idx: int) -> None:
        """Write the allowed tokens to row `idx`."""
        try:
            self.matcher.fill_bitmask(vocab_mask, idx)
        except UnsatisfiableError as error:
            _log.warning("sglang: %s", error)  # the row has its ends of sequence open

    @staticmethod
    def fill_vocab_mask_batched(entries: Iterable[Any], vocab_mask: Any) -> None:
        """Write several rows."""
        for entry in entries:
            entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @staticmethod
    def reset_vocab_mask(vocab_mask: Any) -> None:
        """Allow everything."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: Any, device: Any) -> Any:
        """The mask on the device of the logits."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: Any, vocab_mask: Any) -> None:
        """Mask logits ``[batch, width]`` in place."""
        import constrain

        constrain.apply_bitmask(logits, vocab_mask[: len(logits)])

    def copy(self) -> Any:
        """A new request's object: the same constraint, at the start."""
        other = type(self)()
        other.start(self.adapter, self.compiled)
        return other

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The tokens that are forced from here, if any."""
        tokens = self.matcher.forced_tokens()
        return (tokens, "") if tokens else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """SGLang's second step of a jump; tokens need none."""
        return "", -1

    def jump_and_retokenize(
        self, old_output_ids: list[int], new_output_ids: list[int], next_state: int
    ) -> None:
        """Go from the state behind `old_output_ids` to the one behind `new_output_ids`."""
        common = 0
        for old, new in zip(old_output_ids, new_output_ids):
            if old != new:
                break
            common += 1
        self.rollback(len(old_output_ids) - common)
        for token_id in new_output_ids[common:]:
            self.accept_token(token_id)


class BackendCore:
    """The methods of SGLang's ``BaseGrammarBackend`` that compile; `grammar_class` and
    `invalid_class` are given by `create_backend`."""

    adapter: Adapter
    grammar_class: type
    invalid_class: type

    def dispatch_json(self, key_string: str) -> Any:
        """A JSON Schema; ``$$ANY$$`` is any JSON value."""
        schema = {} if key_string == "$$ANY$$" else key_string
        return self._compile({"json_schema": schema})

    def dispatch_regex(self, key_string: str) -> Any:
        """A regular expression of Python."""
        return self._compile({"regex": key_string})

    def dispatch_ebnf(self, key_string: str) -> Any:
        """A GBNF or Lark grammar."""
        return self._compile({grammar_syntax(key_string): key_string})

    def dispatch_structural_tag(self, key_string: str) -> Any:
        """Refused: SGLang then fails the request with this message."""
        return self.invalid_class("structural tags are not served by constrain")

    def _compile(self, data: dict[str, Any]) -> Any:
        try:
            compiled = self.adapter.cache.get(data)
        except ConstrainError as error:
            return self.invalid_class(str(error))
        grammar = self.grammar_class()
        grammar.start(self.adapter, compiled)
        return grammar


def create_backend(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any = None
) -> Any:
    """The backend of one scheduler: what SGLang calls for ``--grammar-backend constrain``."""
    from sglang.srt.constrained import base_grammar_backend as base

    ends = [eos_token_ids] if isinstance(eos_token_ids, int) else list(eos_token_ids or ())
    own = getattr(tokenizer, "eos_token_id", None)
    vocabulary = Vocabulary.from_tokenizer(
        tokenizer, eos_token_ids=sorted({*ends, *([] if own is None else [own])}), size=vocab_size
    )
    grammar_class = type("ConstrainGrammar", (GrammarCore, base.BaseGrammarObject), {})
    backend_class = type("ConstrainBackend", (BackendCore, base.BaseGrammarBackend), {})
    backend: Any = backend_class()
    backend.adapter = Adapter(vocabulary, engine="sglang")
    backend.grammar_class = grammar_class
    backend.invalid_class = base.InvalidGrammarObject
    return _with_reasoning(backend, server_args, tokenizer)


def _with_reasoning(backend: Any, server_args: Any, tokenizer: Any) -> Any:
    name = getattr(server_args, "reasoning_parser", None)
    if not name:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=name, stream_reasoning=False, tokenizer=tokenizer)
    return ReasonerGrammarBackend(
        backend,
        parser,
        tokenizer,
        enable_strict_thinking=bool(getattr(server_args, "enable_strict_thinking", False)),
    )


def register() -> None:
    """Entry point ``sglang.srt.plugins``: makes the backend known by its name."""
    from sglang.srt.constrained.base_grammar_backend import register_grammar_backend
    from sglang.srt.server_args import add_grammar_backend_choices

    register_grammar_backend(NAME, create_backend)
    add_grammar_backend_choices([NAME])
