"""Stand-ins for engines that call our plugins exactly as the engines do.

Each is a driver of `constrain.integrations.testkit`.  The classes in the place of the engines' own
(`BaseGrammarObject`, `Filter`, `BatchUpdate`, ...) have the documented methods and no more.  What
was read is named in each file; here is the contract itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from constrain.integrations import testkit
from constrain.integrations.base import Adapter, RequestError
from constrain.integrations.testkit import Job, Model, Outcome, Step

Drafts = Callable[[Job, Sequence[int]], list[int]]


def is_over(outcome: Outcome, job: Job, ends: Sequence[int]) -> bool:
    return bool(outcome.tokens) and (
        outcome.tokens[-1] in ends or len(outcome.tokens) == job.max_tokens
    )


class AdapterDriver:
    """The contract itself: a loop on `Adapter`, with beams, drafts and recycled slots."""

    features = frozenset({"free", "errors", "speculation", "beams", "budget"})
    slots = 4

    def __init__(self) -> None:
        self.vocabulary = testkit.small_vocabulary()
        self.adapter = Adapter(self.vocabulary, max_entries=3)

    def run(self, jobs: Sequence[Job], model: Model, drafts: Drafts | None = None) -> list[Outcome]:
        outcomes = [Outcome() for _ in jobs]
        waiting = list(range(len(jobs)))[::-1]
        running: dict[int, Any] = {}
        while waiting or running:
            while waiting and len(running) < self.slots:
                index = waiting.pop()
                job = jobs[index]
                try:
                    running[index] = self.adapter.open(
                        job.constraint, max_tokens=job.max_tokens, request_id=job.name
                    )
                except RequestError as error:
                    outcomes[index].error = error
            if running:
                self._step(model, jobs, outcomes, running, drafts)
            for index in list(running):
                if is_over(outcomes[index], jobs[index], self.vocabulary.eos_token_ids):
                    del running[index]
        return outcomes

    def _step(
        self, model: Model, jobs: Any, outcomes: Any, running: dict[int, Any], drafts: Any
    ) -> None:
        """One pass over all running sequences and their drafts."""
        rows: list[tuple[int, list[int]]] = []
        proposals: dict[int, list[int]] = {}
        for index in running:
            tokens = outcomes[index].tokens
            proposals[index] = drafts(jobs[index], tokens) if drafts else []
            rows += [
                (index, [*tokens, *proposals[index][:n]]) for n in range(len(proposals[index]) + 1)
            ]
        logits = np.stack([model.logits(jobs[index], row) for index, row in rows])
        copies = [self._at(running[index], row) for index, row in rows]
        self.adapter.mask(logits, copies)
        for index, sequence in running.items():
            own = [n for n, (i, _) in enumerate(rows) if i == index]
            self._accept(jobs[index], outcomes[index], logits[own], proposals[index])
            if sequence is not None:
                assert sequence.follow(outcomes[index].tokens)

    def _at(self, sequence: Any, row: list[int]) -> Any:
        """The sequence behind drafts, or None behind an illegal one."""
        if sequence is None:
            return None
        copy = sequence.fork()
        return copy if copy.follow(row) else None

    def _accept(self, job: Job, outcome: Outcome, masked: Any, proposed: list[int]) -> None:
        """Sample rows as long as what is sampled is the draft."""
        for row, draft in zip(masked, [*proposed, None]):
            outcome.steps.append(Step(tuple(outcome.tokens), row.copy()))
            token = int(row.argmax())
            outcome.tokens.append(token)
            if token != draft or is_over(outcome, job, self.vocabulary.eos_token_ids):
                return

    def run_beams(self, job: Job, model: Model, width: int) -> list[list[int]]:
        ends = self.vocabulary.eos_token_ids
        beams = [(0.0, [], self.adapter.open(job.constraint))]
        done: list[tuple[float, list[int]]] = []
        while beams and len(done) < width:
            logits = np.stack([model.logits(job, tokens) for _, tokens, _ in beams])
            self.adapter.mask(logits, [sequence for _, _, sequence in beams])
            options = []
            for row, (score, tokens, sequence) in enumerate(beams):
                for token in np.argsort(-logits[row])[: 2 * width]:
                    if np.isfinite(logits[row, token]):
                        options.append(
                            (score + float(logits[row, token]), tokens, sequence, int(token))
                        )
            options.sort(key=lambda option: -option[0])
            beams = []
            for score, tokens, sequence, token in options[: 2 * width]:
                if token in ends:
                    done.append((score, [*tokens, token]))
                elif len(beams) < width:
                    copy = sequence.fork()
                    assert copy.advance(token)
                    beams.append((score, [*tokens, token], copy))
        return [tokens for _, tokens in done[:width]]

    def bypassing(self) -> Mapping[str, Callable[[], object]]:
        def forbid_everything() -> object:
            sequence = self.adapter.open({"choice": ["a"]})
            logits = np.full((1, self.vocabulary.size), -np.inf, dtype=np.float32)
            logits[0, 5] = 1.0
            return self.adapter.mask(logits, [sequence])

        def narrow() -> object:
            sequence = self.adapter.open({"choice": ["a"]})
            return self.adapter.mask(np.zeros((1, 100), dtype=np.float32), [sequence])

        return {"all legal tokens forbidden": forbid_everything, "narrow logits": narrow}


class RequestDriver:
    """Engines that make a grammar of each request; requests run one after the other.

    A driver has `compile` and `step`, which makes one pass and accepts what is sampled.
    """

    features = frozenset({"free", "errors", "speculation"})
    slots = 4
    vocabulary: Any

    def compile(self, constraint: Any) -> Any:
        raise NotImplementedError

    def step(
        self, job: Job, outcome: Outcome, model: Model, grammar: Any, proposed: list[int]
    ) -> None:
        raise NotImplementedError

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
                self.step(job, outcome, model, grammar, proposed)
        return outcomes

    @staticmethod
    def request(constraint: Any, kinds: Collection[str]) -> tuple[str, Any, bool]:
        """The kind and the value of a request, and whether its JSON is to be compact.

        Raises ValueError for what an engine with these kinds cannot be asked.
        """
        if "response_format" in constraint:
            inner = constraint["response_format"]["json_schema"]["schema"]
            constraint = {**constraint, "json_schema": inner}
        found = [kind for kind in kinds if kind in constraint]
        if len(found) != 1 or set(constraint) - {*kinds, "whitespace", "response_format"}:
            raise ValueError("not a request of this engine")
        if "whitespace" in constraint and "json_schema" not in constraint:
            raise ValueError("no such option")
        return found[0], constraint[found[0]], constraint.get("whitespace") == "compact"

    def sampled(
        self, job: Job, outcome: Outcome, masked: Any, proposed: list[int]
    ) -> Sequence[int]:
        """Samples the rows of a pass as `AdapterDriver` does; gives the tokens that are new."""
        before = len(outcome.tokens)
        AdapterDriver._accept(self, job, outcome, masked, proposed)  # type: ignore[arg-type]
        return outcome.tokens[before:]
