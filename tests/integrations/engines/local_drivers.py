"""Stand-ins for ExLlamaV3 1.6, llama-cpp-python 0.3.36 and mlx-lm 0.32."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from constrain.integrations import testkit
from constrain.integrations.base import Adapter
from constrain.integrations.testkit import Job, Model, Outcome, Step
from tests.integrations.engines.drivers import AdapterDriver, Drafts, is_over

# --- ExLlamaV3 -----------------------------------------------------------------------------------


class Filter:
    """ExLlamaV3's base class: feeds, completes and rewinds."""

    def __init__(
        self, tokenizer: Any, trigger_token: Any, prefix_str: Any, eos_after_completed: bool
    ) -> None:
        self.tokenizer = tokenizer
        self.trigger_token = trigger_token
        self.prefix_str = prefix_str
        self.eos_after_completed = eos_after_completed
        self.is_active = trigger_token is None
        self.journal: list[int] = []

    def attach(self, job: Any) -> None:
        self.job = job
        self.vocab_size = job.generator.padded_vocab_size
        self.journal.clear()

    def feed(self, token: int) -> bool:
        if not self.is_active:
            if token == self.trigger_token:
                self.is_active = True
                self.reset()  # type: ignore[attr-defined]
            return False
        self.accept_token(token)  # type: ignore[attr-defined]
        self.journal.append(token)
        if self.is_completed():  # type: ignore[attr-defined]
            self.is_active = False
            return self.eos_after_completed
        return False

    def rewind(self, n: int) -> None:
        kept = self.journal[: len(self.journal) - n]
        self.is_active = True
        if not self.rollback_tokens(n):  # type: ignore[attr-defined]
            self.reset()  # type: ignore[attr-defined]
            for token in kept:
                self.accept_token(token)  # type: ignore[attr-defined]
        self.journal = kept


@dataclass
class ExllamaJob:
    max_new_tokens: int
    min_new_tokens: int = 0
    prefix_token: Any = None
    generator: Any = field(default_factory=lambda: types.SimpleNamespace(padded_vocab_size=320))


class Tokenizer:
    """Only an identity: the vocabulary is passed."""


class ExllamaDriver:
    """The engine ends a job when its filter is completed, without an end of sequence: the kit's
    outcomes get one, since it looks for it."""

    features = frozenset({"free", "errors", "budget"})
    slots = 4

    def __init__(self) -> None:
        from constrain.integrations import exllamav3

        self.vocabulary = testkit.small_vocabulary()
        self.tokenizer = Tokenizer()
        self.filter_class: Any = type("Constrained", (exllamav3.FilterCore, Filter), {})

    def make(self, constraint: Any, **options: Any) -> Any:
        return self.filter_class(self.tokenizer, constraint, vocabulary=self.vocabulary, **options)

    def run(self, jobs: Sequence[Job], model: Model, drafts: Drafts | None = None) -> list[Outcome]:
        outcomes = []
        for job in jobs:
            outcome = Outcome()
            outcomes.append(outcome)
            try:
                filters = [] if job.constraint is None else [self.make(job.constraint)]
                for one in filters:
                    one.attach(ExllamaJob(job.max_tokens))
                    one.reset()
            except ValueError as error:
                outcome.error = error
                continue
            self._run(job, outcome, model, filters)
        return outcomes

    def _run(self, job: Job, outcome: Outcome, model: Model, filters: list[Any]) -> None:
        ends = self.vocabulary.eos_token_ids
        rewound = False
        while not is_over(outcome, job, ends):
            logits = model.logits(job, outcome.tokens)
            for one in filters:
                mask = one.get_next_logit_mask()
                bits = np.unpackbits(mask.numpy().view(np.uint8), bitorder="little")
                logits[bits[: len(logits)] == 0] = -np.inf
            outcome.steps.append(Step(tuple(outcome.tokens), logits))
            token = int(logits.argmax())
            outcome.tokens.append(token)
            if any([one.feed(token) for one in filters]) and token not in ends:
                if len(outcome.tokens) < job.max_tokens:
                    outcome.tokens.append(ends[0])
                return
            if filters and len(outcome.tokens) == 3 and not rewound and token not in ends:
                rewound = True  # a banned string: two tokens are taken back and sampled again
                for one in filters:
                    one.rewind(2)
                del outcome.tokens[-2:]

    def bypassing(self) -> Mapping[str, Callable[[], object]]:
        one = {"regex": "a"}
        return {
            "token healing": lambda: self.make(one).attach(ExllamaJob(5, prefix_token=3)),
            "minimal length": lambda: self.make(one).attach(ExllamaJob(5, min_new_tokens=2)),
            "nothing": lambda: self.make(None),
        }


# --- llama-cpp-python and mlx-lm -----------------------------------------------------------------


class LlamaCppDriver:
    """Calls from C: the ids are int32, the scores a view with gaps, exceptions are dropped."""

    features = frozenset({"errors", "budget"})
    slots = 1

    def __init__(self) -> None:
        from constrain.integrations import llama_cpp

        self.vocabulary = testkit.small_vocabulary()
        self.plugin = llama_cpp
        self.adapter = Adapter(self.vocabulary, engine="llama-cpp-python")

    def run(self, jobs: Sequence[Job], model: Model, drafts: Drafts | None = None) -> list[Outcome]:
        outcomes = []
        for job in jobs:
            outcome = Outcome()
            outcomes.append(outcome)
            try:
                processor = self.plugin.ConstrainedProcessor(
                    self.adapter, job.constraint, max_tokens=job.max_tokens
                )
            except ValueError as error:
                outcome.error = error
                continue
            kind = np.dtype([("id", np.intc), ("logit", np.single), ("p", np.single)], align=True)
            data = np.recarray(shape=(self.vocabulary.size,), dtype=kind)
            while not is_over(outcome, job, self.vocabulary.eos_token_ids):
                data.logit[:] = model.logits(job, outcome.tokens)
                ids = np.array([*job.prompt, *outcome.tokens], dtype=np.intc)
                data.logit[:] = processor(ids, data.logit)
                processor.check()
                outcome.steps.append(Step(tuple(outcome.tokens), data.logit.copy()))
                outcome.tokens.append(int(data.logit.argmax()))
        return outcomes

    def bypassing(self) -> Mapping[str, Callable[[], object]]:
        def call(model: Any, **options: Any) -> object:
            return self.plugin.create_completion(model, "a", {"regex": "a"}, **options)

        plain = type("Llama", (), {"draft_model": None})()
        drafting = type("Llama", (), {"draft_model": object()})()

        def second_generation() -> object:
            processor = self.plugin.ConstrainedProcessor(self.adapter, {"regex": "a+"})
            scores = np.zeros(self.vocabulary.size, dtype=np.float32)
            for ids in ([1, 2], [1, 2, 98], [4, 5, 6]):
                processor(np.array(ids, dtype=np.intc), scores)
            return processor.check()

        return {
            "a draft model": lambda: call(drafting),
            "a grammar beside it": lambda: call(plain, grammar=object()),
            "a response format beside it": lambda: call(plain, response_format={}),
            "a second generation": second_generation,
        }


class MlxDriver:
    """mlx-lm's two loops.  Arrays are NumPy's: `mlx_module` is what ``mlx.core`` is replaced by.

    Without drafts, the next step is computed before a token is handed out, so there is a call more
    behind the end.  With drafts, the prefixes that are shown begin with the last token of the
    prompt, grow by the draft model's tokens, and go back.
    """

    features = frozenset({"free", "errors", "budget", "speculation"})
    slots = 4

    def __init__(self) -> None:
        from constrain.integrations import mlx_lm

        self.vocabulary = testkit.small_vocabulary()
        self.constraints = mlx_lm.Constraints(vocabulary=self.vocabulary)

    def run(self, jobs: Sequence[Job], model: Model, drafts: Drafts | None = None) -> list[Outcome]:
        outcomes = []
        for job in jobs:
            outcome = Outcome()
            outcomes.append(outcome)
            try:
                processor = self.constraints.processor(job.constraint, max_tokens=job.max_tokens)
            except ValueError as error:
                outcome.error = error
                continue
            (self._plain if drafts is None else self._drafted)(
                job, outcome, model, processor, drafts
            )
        return outcomes

    def _logits(
        self, job: Job, model: Model, prompt: list[int], processor: Any, tokens: Any
    ) -> Any:
        shown = np.array([*prompt, *tokens], dtype=np.uint32)
        return processor(shown, model.logits(job, tokens)[None])[0]

    def _plain(self, job: Job, outcome: Outcome, model: Model, processor: Any, _: Any) -> None:
        ends = self.vocabulary.eos_token_ids
        prompt = list(job.prompt)
        ahead: list[int] = []
        while not is_over(outcome, job, ends):
            logits = self._logits(job, model, prompt, processor, ahead)
            outcome.steps.append(Step(tuple(ahead), logits))
            ahead = [*ahead, int(logits.argmax())]
            outcome.tokens = list(ahead)
        self._logits(job, model, prompt, processor, ahead)

    def _drafted(
        self, job: Job, outcome: Outcome, model: Model, processor: Any, drafts: Any
    ) -> None:
        ends = self.vocabulary.eos_token_ids
        prompt = list(job.prompt[-1:])
        while not is_over(outcome, job, ends):
            proposed = drafts(job, outcome.tokens)
            for n in range(len(proposed)):  # the draft model's own steps
                self._logits(job, model, prompt, processor, [*outcome.tokens, *proposed[:n]])
            start = list(outcome.tokens)
            rows = [
                self._logits(job, model, prompt, processor, [*start, *proposed[:n]])
                for n in range(len(proposed) + 1)
            ]
            AdapterDriver._accept(self, job, outcome, rows, proposed)  # type: ignore[arg-type]

    def bypassing(self) -> Mapping[str, Callable[[], object]]:
        def second_generation() -> object:
            processor = self.constraints.processor({"regex": "a+"})
            for ids in ([1, 2], [1, 2, 98], [1, 2, 98, 98, 98, 98, 98]):
                processor(np.array(ids), np.zeros((1, self.vocabulary.size), dtype=np.float32))
            return None

        return {"a second generation": second_generation}
