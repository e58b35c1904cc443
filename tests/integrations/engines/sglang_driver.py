"""A stand-in for the scheduler of SGLang 0.5.23."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from constrain.integrations import testkit
from constrain.integrations.base import Adapter
from constrain.integrations.testkit import Job, Model, Outcome
from tests.integrations.engines.drivers import RequestDriver

# --- SGLang --------------------------------------------------------------------------------------


class BaseGrammarObject:
    def __init__(self) -> None:
        self._finished = False
        self.grammar_stats = None
        self.current_token = None

    def maybe_init_reasoning(self, reasoning: bool) -> None:
        pass

    @property
    def finished(self) -> bool:
        return self._finished

    @finished.setter
    def finished(self, finished: bool) -> None:
        self._finished = finished


class InvalidGrammarObject(BaseGrammarObject):
    def __init__(self, error_message: str = "Unknown grammar error") -> None:
        super().__init__()
        self.error_message = error_message


class BaseGrammarBackend:
    def __init__(self) -> None:
        self.cache: dict[tuple[str, str], Any] = {}

    def get(self, key: tuple[str, str]) -> Any:
        """The scheduler's way: the cached template is copied, a new one is cached as a copy."""
        value = self.cache.get(key)
        if value is not None:
            return value.copy()
        value = getattr(self, f"dispatch_{key[0]}")(key[1])
        if not isinstance(value, InvalidGrammarObject):
            self.cache[key] = value.copy()
        return value


class SglangDriver(RequestDriver):
    """The scheduler of SGLang with a draft tree that is a chain."""

    def __init__(self) -> None:
        from constrain.integrations import sglang

        self.vocabulary = testkit.small_vocabulary()
        grammar = type("Grammar", (sglang.GrammarCore, BaseGrammarObject), {})
        backend = type("Backend", (sglang.BackendCore, BaseGrammarBackend), {})
        self.backend: Any = backend()
        self.backend.adapter = Adapter(self.vocabulary, engine="sglang")
        self.backend.grammar_class = grammar
        self.backend.invalid_class = InvalidGrammarObject

    def compile(self, constraint: Any) -> Any:
        names = {
            "json_schema": "json", "regex": "regex", "choice": "regex", "lark": "ebnf",
            "gbnf": "ebnf",
        }  # fmt: skip
        kind, value, compact = self.request(constraint, names)
        if kind == "choice":
            if not value:
                raise ValueError("nothing to choose from")
            value = "|".join(map(re.escape, value))
        if compact:  # the kit's schemas are compact; SGLang has no such option for each request
            self.backend.adapter = Adapter(
                self.vocabulary, engine="sglang", defaults={"whitespace": "compact"}
            )
        key = (names[kind], value if isinstance(value, str) else json.dumps(value))
        grammar = self.backend.get(key)
        if isinstance(grammar, InvalidGrammarObject):
            raise ValueError(grammar.error_message)
        return grammar

    def step(
        self, job: Job, outcome: Outcome, model: Model, grammar: Any, proposed: list[int]
    ) -> None:
        prefixes = [[*outcome.tokens, *proposed[:n]] for n in range(len(proposed) + 1)]
        logits = torch.from_numpy(np.stack([model.logits(job, prefix) for prefix in prefixes]))
        if grammar is not None:
            mask = grammar.allocate_vocab_mask(self.vocabulary.size, len(prefixes), "cpu")
            self._visit(grammar, mask, [0, *proposed], 0)
            mask = grammar.move_vocab_mask(mask, "cpu")
            grammar.apply_vocab_mask(logits=logits, vocab_mask=mask)
        for token in self.sampled(job, outcome, logits.numpy(), proposed):
            if grammar is not None:
                grammar.accept_token(token)

    def _visit(self, grammar: Any, mask: Any, tokens: list[int], at: int) -> None:
        """Its depth-first walk: legality is read from the parent's packed row."""
        token = tokens[at]
        legal = at == 0 or bool(mask[at - 1][token // 32] & (1 << token % 32))
        if not legal:
            return
        if at:
            grammar.accept_token(token)
        if not grammar.is_terminated():
            grammar.fill_vocab_mask(mask, at)
            if at + 1 < len(tokens):
                self._visit(grammar, mask, tokens, at + 1)
        if at:
            grammar.rollback(1)

    def bypassing(self) -> Mapping[str, Callable[[], object]]:
        def tag() -> object:
            invalid = self.backend.dispatch_structural_tag("{}")
            from constrain.errors import ConstrainError

            if isinstance(invalid, InvalidGrammarObject) and "structural" in invalid.error_message:
                raise ConstrainError(invalid.error_message)
            return invalid

        return {"structural tags": tag}
