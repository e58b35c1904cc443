"""A stand-in for the scheduler of SGLang 0.5.23."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from constrain.integrations import testkit
from constrain.integrations.base import Adapter
from constrain.integrations.testkit import Job, Model, Outcome
from tests.integrations.engines.drivers import AdapterDriver, Drafts, is_over

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


class SglangDriver:
    """The scheduler of SGLang with a draft tree that is a chain."""

    features = frozenset({"free", "errors", "speculation"})
    slots = 4

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
        import json

        if "response_format" in constraint:
            inner = constraint["response_format"]["json_schema"]["schema"]
            constraint = {**constraint, "json_schema": inner}
        names = {"json_schema": "json", "regex": "regex", "lark": "ebnf", "gbnf": "ebnf"}
        if list(constraint) == ["choice"] and constraint["choice"]:
            import re

            key = ("regex", "|".join(map(re.escape, constraint["choice"])))
        else:
            kinds = [kind for kind in names if kind in constraint]
            if len(kinds) != 1 or set(constraint) - {*names, "whitespace", "response_format"}:
                raise ValueError("not a request of SGLang")
            if "whitespace" in constraint and "json_schema" not in constraint:
                raise ValueError("no such option")
            value = constraint[kinds[0]]
            key = (names[kinds[0]], value if isinstance(value, str) else json.dumps(value))
        compact = {"whitespace": "compact"} if "whitespace" in constraint else {}
        if compact:  # the kit's schemas are compact; SGLang has no such option for each request
            self.backend.adapter = Adapter(self.vocabulary, engine="sglang", defaults=compact)
        grammar = self.backend.get(key)
        if isinstance(grammar, InvalidGrammarObject):
            raise ValueError(grammar.error_message)
        return grammar

    def run(self, jobs: Sequence[Job], model: Model, drafts: Drafts | None = None) -> list[Outcome]:
        outcomes = [Outcome() for _ in jobs]
        for job, outcome in zip(jobs, outcomes):
            try:
                grammar = None if job.constraint is None else self.compile(job.constraint)
            except ValueError as error:
                outcome.error = error
                continue
            while not is_over(outcome, job, self.vocabulary.eos_token_ids):
                proposed = drafts(job, outcome.tokens) if drafts else []
                self._step(job, outcome, model, grammar, proposed)
        return outcomes

    def _step(
        self, job: Job, outcome: Outcome, model: Model, grammar: Any, proposed: list[int]
    ) -> None:
        prefixes = [[*outcome.tokens, *proposed[:n]] for n in range(len(proposed) + 1)]
        logits = torch.from_numpy(np.stack([model.logits(job, prefix) for prefix in prefixes]))
        if grammar is not None:
            mask = grammar.allocate_vocab_mask(self.vocabulary.size, len(prefixes), "cpu")
            self._visit(grammar, mask, [0, *proposed], 0)
            mask = grammar.move_vocab_mask(mask, "cpu")
            grammar.apply_vocab_mask(logits=logits, vocab_mask=mask)
        before = len(outcome.tokens)
        AdapterDriver._accept(self, job, outcome, logits.numpy(), proposed)  # type: ignore[arg-type]
        if grammar is not None:
            for token in outcome.tokens[before:]:
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
