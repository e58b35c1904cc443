"""Latency between tokens under a constraint, against free decoding, step by step.

    python -m tests.benchmarks.end_to_end [--batch 1,8] [--rounds 3] [--json end_to_end.json]

A first run under the constraint gives the texts (it warms up as well). Then the decode loop writes
exactly these texts again, with the constraint and without it in turns: same tokens, same forward
passes, same lengths of the cache, forced tokens off. What differs is what the constraint costs: the
masks, their application, and the sampler behind them. Step i of one run is compared with step i of
the other, by the clock and by processor time; what counts is the median of the ratios. Greedy by
default: with a temperature, free decoding also pays for softmax and draw over all the vocabulary.
SmolLM2 takes about eight minutes on two cores.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from constrain.decoding import Metrics, Sampler, Timings
from constrain.decoding.loop import decode
from constrain.decoding.prompts import encode_prompt
from constrain.decoding.sequence import Running
from tests.benchmarks import tables
from tests.benchmarks.measuring import machine, settle


class Replay(Sampler):
    """Does the work of a sampler, then takes the token that is written down.

    Args:
        token_ids: what it chooses, one after the other.
        settings: those of `Sampler`.
    """

    def __init__(self, token_ids: Sequence[int], **settings: Any) -> None:
        super().__init__(**settings)
        self._left = iter(token_ids)
        self.stamps: list[float] = []  # the processor time of the process at each token

    def draw(self, ids: Any, probabilities: Any) -> int:
        super().draw(ids, probabilities)
        self.stamps.append(time.process_time())
        return next(self._left)


class Recorder(Sampler):
    """A sampler that writes down what it chose, ends of sequence included, in `chosen`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.chosen: list[int] = []

    def draw(self, ids: Any, probabilities: Any) -> int:
        self.chosen.append(super().draw(ids, probabilities))
        return self.chosen[-1]


class Job:
    """A batch of prompts with their constraints, and the texts that are written again and again.

    Args:
        loaded: model, tokenizer, vocabulary.
        prompts: each a text, chat messages or token ids.
        compiled: a constraint for each.
        max_tokens: at most this many tokens are recorded for each.
        settings: those of `Sampler`.
    """

    def __init__(
        self,
        loaded: tuple[Any, Any, Any],
        prompts: Sequence[Any],
        compiled: Sequence[Any],
        *,
        max_tokens: int,
        **settings: Any,
    ) -> None:
        self._model, tokenizer, self._vocabulary = loaded
        self._prompts = [encode_prompt(tokenizer, prompt) for prompt in prompts]
        self._compiled = compiled
        self._max_tokens = max_tokens
        self._settings = settings
        recorders = [Recorder(**settings) for _ in prompts]
        self._decode(recorders, compiled, [max_tokens] * len(prompts))
        self.texts = [recorder.chosen for recorder in recorders]

    def run(self, *, constrained: bool) -> tuple[list[Timings], list[float]]:
        """Write the texts once more.

        Returns:
            The timings of each text, and the processor seconds of each step.
        """
        samplers = [Replay(ids, **self._settings) for ids in self.texts]
        # Free text does not know where it ends, so its limit is its length.
        free_limits = [max(1, len(ids)) for ids in self.texts]
        timings = self._decode(
            samplers,
            self._compiled if constrained else [None] * len(self.texts),
            [self._max_tokens] * len(self.texts) if constrained else free_limits,
        )
        stamps = max((sampler.stamps for sampler in samplers), key=len)
        return timings, [after - before for before, after in itertools.pairwise(stamps)]

    def _decode(
        self, samplers: Sequence[Sampler], compiled: Sequence[Any], limits: Sequence[int]
    ) -> list[Timings]:
        sequences = [
            Running(prompt, constraint, self._vocabulary, sampler, max_tokens=limit)
            for prompt, constraint, sampler, limit in zip(
                self._prompts, compiled, samplers, limits, strict=True
            )
        ]
        decode(self._model, self._vocabulary, sequences, forced="off")
        return [sequence.timings for sequence in sequences]


def steps_of(timings: Sequence[Timings]) -> list[float]:
    """Seconds of each step of a batch: the latencies of its longest sequence."""
    return max((t.inter_token for t in timings), key=len)


def pair(job: Job, *, constrained_first: bool) -> dict[str, Any]:
    """One run of each kind, one after the other, as lists of seconds and their timings."""
    found: dict[str, Any] = {}
    for constrained in (constrained_first, not constrained_first):
        timings, cpu = job.run(constrained=constrained)
        found["constrained" if constrained else "free"] = {
            "steps": steps_of(timings),
            "timings": timings,
            "cpu": cpu,
        }
    passes = {side: [t.passes for t in found[side]["timings"]] for side in found}
    if passes["free"] != passes["constrained"]:
        raise SystemExit(f"the runs are not comparable: their forward passes are {passes}")
    return found


def summary(pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the constraint costs, over all pairs of runs."""

    def steps(side: str, what: str) -> list[float]:
        return [step for one in pairs for step in one[side][what]]

    def median_of_ratios(what: str) -> float:
        both = zip(steps("constrained", what), steps("free", what), strict=True)
        return statistics.median(c / f for c, f in both)

    free, constrained = steps("free", "steps"), steps("constrained", "steps")
    metrics = {
        side: asdict(Metrics.of(*(one[side]["timings"] for one in pairs)))
        for side in ("free", "constrained")
    }
    masks = metrics["constrained"]["mask_time"]
    return {
        "steps": len(free),
        "free_p50": statistics.median(free),
        "constrained_p50": statistics.median(constrained),
        "ratio_of_medians": statistics.median(constrained) / statistics.median(free),
        "median_of_ratios": median_of_ratios("steps"),
        "ratio_of_processor_time": median_of_ratios("cpu"),
        "mask_share": metrics["constrained"]["mask_share"],
        "mask_per_step": masks / len(constrained),
        "metrics": metrics,
    }


def measure(
    loaded: tuple[Any, Any, Any],
    tasks: Sequence[Any],
    batches: Sequence[int],
    *,
    rounds: int,
    max_tokens: int,
    say: Any = print,
    **settings: Any,
) -> dict[str, Any]:
    """The summary for each size of batch. Each task has `messages` and a `schema`."""
    import constrain

    vocabulary = loaded[2]
    found: dict[str, Any] = {}
    for batch in batches:
        jobs = []
        for first in range(0, max(len(tasks), batch), batch):
            chosen = [tasks[(first + i) % len(tasks)] for i in range(batch)]
            specs = [constrain.JsonSchema(t.schema, extra_properties="forbid") for t in chosen]
            compiled = [constrain.compile(spec, vocabulary) for spec in specs]
            prompts = [task.messages for task in chosen]
            jobs.append(Job(loaded, prompts, compiled, max_tokens=max_tokens, **settings))
        settle()
        pairs = []
        for number in range(rounds):
            for index, job in enumerate(jobs):
                pairs.append(pair(job, constrained_first=(number + index) % 2 == 0))
            say(f"batch {batch}: round {number + 1} of {rounds}")
        found[str(batch)] = summary(pairs)
    return found


def report(result: dict[str, Any]) -> str:
    """The result as Markdown."""
    head = [
        *("batch", "steps", "free, ms", "constrained, ms", "constrained by free, step by step"),
        *("by medians", "by processor time", "masks per step, µs", "share of masks"),
    ]
    rows = [
        [
            batch,
            f"{one['steps']:,}",
            f"{one['free_p50'] * 1e3:.2f}",
            f"{one['constrained_p50'] * 1e3:.2f}",
            f"{one['median_of_ratios']:.4f}",
            f"{one['ratio_of_medians']:.4f}",
            f"{one['ratio_of_processor_time']:.4f}",
            tables.number(one["mask_per_step"] * 1e6),
            f"{one['mask_share']:.3%}",
        ]
        for batch, one in result["batches"].items()
    ]
    return tables.markdown(head, rows)


def main() -> None:
    """Latency between tokens under a constraint, against free decoding."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model", help="a local folder or a hub name (default: SmolLM2)")
    parser.add_argument("--batch", default="1,8", metavar="N,N")
    parser.add_argument("--tasks", type=int, default=8, help="how many function calls of 24")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=80)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="of torch (default: its own choice)")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    import torch

    from constrain.cli import _runtime
    from constrain.cli._tasks import TASKS

    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    where = machine()
    result: dict[str, Any] = {
        "kind": "end_to_end",
        "machine": where,
        "threads": torch.get_num_threads(),
        "temperature": arguments.temperature,
        "batches": measure(
            _runtime.open_model(arguments.model),
            TASKS[: arguments.tasks],
            [int(part) for part in arguments.batch.split(",")],
            rounds=arguments.rounds,
            max_tokens=arguments.max_tokens,
            say=lambda text: print(text, flush=True),
            temperature=arguments.temperature,
            seed=arguments.seed,
        ),
    }
    print(report(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
