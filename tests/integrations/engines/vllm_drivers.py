"""Stand-ins for vLLM 0.32: both model runners, and the structured-output manager."""

from __future__ import annotations

import enum
import json
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from constrain.integrations import testkit
from constrain.integrations.base import Adapter, RequestError
from constrain.integrations.testkit import Job, Model, Outcome, Step
from tests.integrations.engines.drivers import AdapterDriver, Drafts, RequestDriver, is_over

# --- vLLM ----------------------------------------------------------------------------------------


class Direction(enum.Enum):
    UNIDIRECTIONAL = 0
    SWAP = 1


@dataclass
class Params:
    """SamplingParams, as far as they are read."""

    extra_args: dict[str, Any] | None = None
    max_tokens: int | None = None
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] | None = None
    ignore_eos: bool = False
    min_tokens: int = 0
    structured_outputs: Any = None


def vllm_config(vocabulary: Any, monkeypatch: Any = None, **scheduler: Any) -> Any:
    """VllmConfig with a tokenizer in the place of a model."""
    model = types.SimpleNamespace(
        logits_processors=scheduler.pop("logits_processors", None),
        try_get_generation_config=dict,
        get_vocab_size=lambda: vocabulary.size,
    )
    return types.SimpleNamespace(
        model_config=model,
        speculative_config=scheduler.pop("speculative_config", None),
        scheduler_config=types.SimpleNamespace(async_scheduling=False, **scheduler),
        structured_outputs_config=types.SimpleNamespace(
            disable_any_whitespace=False, disable_additional_properties=False, backend="guidance"
        ),
        use_v2_model_runner=False,
    )


class _VllmDriver:
    features = frozenset({"free", "errors", "budget"})
    slots = 4

    def __init__(self) -> None:
        from constrain.integrations import vllm

        self.vocabulary = testkit.small_vocabulary()
        self.plugin = vllm
        self.config = vllm_config(self.vocabulary)

    def params(self, job: Job) -> Params:
        arguments = None if job.constraint is None else {"constrain": job.constraint}
        return Params(extra_args=arguments, max_tokens=job.max_tokens)

    def admit(self, jobs: Sequence[Job], outcomes: list[Outcome]) -> list[int]:
        waiting = []
        for index, job in enumerate(jobs):
            try:
                self.plugin.ProcessorCore.validate_params(self.params(job))
            except ValueError as error:
                outcomes[index].error = error
            else:
                waiting.append(index)
        return waiting[::-1]

    def bypassing(self) -> Mapping[str, Callable[[], object]]:
        check = self.plugin.check_engine
        validate = self.plugin.ProcessorCore.validate_params
        asked = {"constrain": {"regex": "a"}}
        return {
            "speculation": lambda: check(vllm_config(self.vocabulary, speculative_config=object())),
            "asynchronous scheduling": lambda: check(self._asynchronous()),
            "allowed tokens": lambda: validate(Params(asked, allowed_token_ids=[1])),
            "bad words": lambda: validate(Params(asked, bad_words=["a"])),
            "ignored end": lambda: validate(Params(asked, ignore_eos=True)),
            "minimal length": lambda: validate(Params(asked, min_tokens=3)),
            "two constraints": lambda: validate(Params(asked, structured_outputs=object())),
        }

    def _asynchronous(self) -> Any:
        config = vllm_config(self.vocabulary)
        config.scheduler_config.async_scheduling = True
        return config


class VllmV1Driver(_VllmDriver):
    """The persistent batch of the V1 runner: removed, added, moved; live lists of ids."""

    def run(self, jobs: Sequence[Job], model: Model, drafts: Drafts | None = None) -> list[Outcome]:
        outcomes = [Outcome() for _ in jobs]
        waiting = self.admit(jobs, outcomes)
        processor = self.plugin.ProcessorCore(self.config, "cpu", False)
        processor._adapter = Adapter(self.vocabulary, engine="vllm")
        batch: list[int] = []
        step = 0
        while waiting or batch:
            removed, added, moved = [], [], []
            kept = [i for i in batch if not self._over(jobs[i], outcomes[i])]
            holes = [n for n, i in enumerate(batch) if self._over(jobs[i], outcomes[i])]
            batch = [i if i in kept else -1 for i in batch]
            for hole in list(holes):
                if waiting:  # a new request takes the place of one that has left
                    index = waiting.pop()
                    batch[hole] = index
                    added.append(self._added(hole, jobs, outcomes, index))
                    holes.remove(hole)
            removed = sorted(holes, reverse=True)
            while waiting and len(batch) < self.slots:
                index = waiting.pop()
                batch.append(index)
                added.append(self._added(len(batch) - 1, jobs, outcomes, index))
            while -1 in batch:  # condense: the last request moves into the first hole
                while batch and batch[-1] == -1:
                    batch.pop()
                if -1 in batch:
                    hole = batch.index(-1)
                    moved.append((len(batch) - 1, hole, Direction.UNIDIRECTIONAL))
                    batch[hole] = batch.pop()
            if len(batch) > 1 and step % 3 == 0:
                moved.append((0, len(batch) - 1, Direction.SWAP))
                batch[0], batch[-1] = batch[-1], batch[0]
            update = None
            if removed or added or moved:
                update = types.SimpleNamespace(
                    batch_size=len(batch), removed=removed, added=added, moved=moved
                )
            processor.update_state(update)
            if not batch:
                break
            logits = np.stack([model.logits(jobs[i], outcomes[i].tokens) for i in batch])
            masked = processor.apply(torch.from_numpy(logits)).numpy()
            for row, i in enumerate(batch):
                outcomes[i].steps.append(Step(tuple(outcomes[i].tokens), masked[row].copy()))
                outcomes[i].tokens.append(int(masked[row].argmax()))
            step += 1
        return self._ended(outcomes)

    def _added(self, row: int, jobs: Any, outcomes: Any, index: int) -> Any:
        job = jobs[index]
        return row, self.params(job), list(job.prompt), outcomes[index].tokens

    def _over(self, job: Job, outcome: Outcome) -> bool:
        return is_over(outcome, job, self.vocabulary.eos_token_ids)

    def _ended(self, outcomes: list[Outcome]) -> list[Outcome]:
        """A request that was refused behind its admission has ended at once."""
        for outcome in outcomes:
            if outcome.error is None and outcome.tokens[0] in self.vocabulary.eos_token_ids:
                outcome.error = RequestError("it ended without a text")
        return outcomes


class VllmV2Driver(_VllmDriver):
    """Slots and rows of the V2 runner; drafts are rows of their own."""

    features = frozenset({"free", "errors", "budget", "speculation"})

    def run(self, jobs: Sequence[Job], model: Model, drafts: Drafts | None = None) -> list[Outcome]:
        outcomes = [Outcome() for _ in jobs]
        waiting = self.admit(jobs, outcomes)
        width = 512
        state = types.SimpleNamespace(
            all_token_ids=types.SimpleNamespace(
                gpu=torch.zeros(self.slots, width, dtype=torch.int32)
            ),
            prompt_len=types.SimpleNamespace(np=np.zeros(self.slots, dtype=np.int32)),
        )
        processor = self.plugin.ProcessorCore(self.config, state)
        processor._adapter = Adapter(self.vocabulary, engine="vllm")
        slots: dict[int, int] = {}
        free = list(range(self.slots))
        while waiting or slots:
            while waiting and free:
                index = waiting.pop()
                slot = free.pop(0)
                slots[slot] = index
                prompt = list(jobs[index].prompt)
                state.prompt_len.np[slot] = len(prompt)
                state.all_token_ids.gpu[slot, : len(prompt)] = torch.tensor(prompt)
                processor.add_request(slot, self.params(jobs[index]))
            processor.apply_staged_writes()
            order = sorted(slots, key=lambda slot: (slot * 7 + len(slots)) % 5)
            rows, inputs, positions, offsets, prefixes = [], [], [], [], []
            proposals: dict[int, list[int]] = {}
            for slot in order:
                job, outcome = jobs[slots[slot]], outcomes[slots[slot]]
                proposals[slot] = drafts(job, outcome.tokens) if drafts else []
                text = [*job.prompt, *outcome.tokens]
                for n, token in enumerate([text[-1], *proposals[slot]]):
                    rows.append(slot)
                    inputs.append(token)
                    positions.append(len(text) - 1 + n)
                    offsets.append(n)
                    prefixes.append([*outcome.tokens, *proposals[slot][:n]])
            logits = np.stack([model.logits(jobs[slots[s]], p) for s, p in zip(rows, prefixes)])
            context = types.SimpleNamespace(
                expanded_idx_mapping=torch.tensor(rows),
                idx_mapping_np=np.array(order),
                expanded_local_pos=torch.tensor(offsets),
                input_ids=torch.tensor(inputs),
                pos=torch.tensor(positions),
            )
            masked = processor.apply(torch.from_numpy(logits), context).numpy()
            for slot in order:
                index = slots[slot]
                own = [n for n, s in enumerate(rows) if s == slot]
                self._accept(jobs[index], outcomes[index], masked[own], proposals[slot])
                text = [*jobs[index].prompt, *outcomes[index].tokens]
                state.all_token_ids.gpu[slot, : len(text)] = torch.tensor(text)
                if is_over(outcomes[index], jobs[index], self.vocabulary.eos_token_ids):
                    del slots[slot]
                    free.append(slot)
        return VllmV1Driver._ended(self, outcomes)  # type: ignore[arg-type]

    _accept = AdapterDriver._accept


class VllmBackendDriver(RequestDriver):
    """The structured-output manager: bitmask rows, one for each draft and one more."""

    def __init__(self) -> None:
        from constrain.integrations import vllm_backend

        self.vocabulary = testkit.small_vocabulary()
        self.plugin = vllm_backend
        backend = object.__new__(vllm_backend.ConstrainBackend)
        backend.vllm_config = vllm_config(self.vocabulary)
        backend.vocab_size = self.vocabulary.size
        backend._adapter = Adapter(self.vocabulary, engine="vllm")
        self.backend = backend

    def compile(self, constraint: Any) -> Any:
        names = {
            "json_schema": "JSON", "regex": "REGEX", "choice": "CHOICE", "lark": "GRAMMAR",
            "gbnf": "GRAMMAR",
        }  # fmt: skip
        kind, value, compact = self.request(constraint, names)
        self.backend.vllm_config.structured_outputs_config.disable_any_whitespace = compact
        if kind in ("json_schema", "choice") and not isinstance(value, str):
            value = json.dumps(value)
        return self.backend.compile_grammar(
            types.SimpleNamespace(name=names[kind]),
            value,
            stop_token_ids={*self.vocabulary.eos_token_ids},
        )

    def step(
        self, job: Job, outcome: Outcome, model: Model, grammar: Any, proposed: list[int]
    ) -> None:
        import constrain

        if grammar is not None and not grammar.is_terminated():
            proposed = grammar.validate_tokens([*proposed, -1])
        bitmask = self.backend.allocate_token_bitmask(len(proposed) + 1)
        advanced = 0
        for row, token in enumerate([*proposed, None]):
            if grammar is not None and not grammar.is_terminated():
                grammar.fill_bitmask(bitmask, row)
                if token is not None:
                    assert grammar.accept_tokens(job.name, [token])
                    advanced += 1
        if advanced:
            grammar.rollback(advanced)
        prefixes = [[*outcome.tokens, *proposed[:n]] for n in range(len(proposed) + 1)]
        logits = torch.from_numpy(np.stack([model.logits(job, prefix) for prefix in prefixes]))
        constrain.apply_bitmask(logits, bitmask)
        tokens = self.sampled(job, outcome, logits.numpy(), proposed)
        if grammar is not None:
            assert grammar.accept_tokens(job.name, list(tokens))

    def bypassing(self) -> Mapping[str, Callable[[], object]]:
        tag = types.SimpleNamespace(name="STRUCTURAL_TAG")
        return {"structural tags": lambda: self.backend.compile_grammar(tag, "{}")}
