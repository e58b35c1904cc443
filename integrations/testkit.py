"""A conformance kit for engine plugins: what every adapter must do, as checks.

The author of a plugin writes one *driver*: a small object that runs jobs through the engine (or
through a stand-in that calls the plugin exactly as the engine does), with logits that the kit
makes up, choosing the token of the largest masked logit.  Then::

    @pytest.mark.parametrize("check", testkit.checks(MyDriver), ids=lambda c: c.__name__)
    def test_conformance(check):
        check(MyDriver())

The made-up logits prefer whatever they like, nearly always a token that is forbidden, so a mask
that is missing, late, stale, or on the wrong row shows at once.  Masks are compared bit by bit
with those of a matcher that was fed the same tokens from the start.

The checks need neither pytest nor an engine.  A failed one raises `ConformanceError`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

import constrain
from constrain.errors import ConstrainError
from constrain.integrations.requests import parse_constraint

__all__ = [
    "CONSTRAINTS",
    "INVALID",
    "ConformanceError",
    "Driver",
    "Job",
    "Model",
    "Outcome",
    "Step",
    "checks",
    "small_vocabulary",
]

# Bounded, so that every text ends whatever is sampled.
CONSTRAINTS: tuple[dict[str, Any], ...] = (
    {
        "json_schema": {
            "type": "object",
            "properties": {
                "kind": {"enum": ["red", "green", "blue"]},
                "count": {"type": "integer", "minimum": 0, "maximum": 99},
                "ok": {"type": "boolean"},
            },
            "required": ["kind", "ok"],
            "additionalProperties": False,
        },
        "whitespace": "compact",
    },
    {
        "json_schema": '{"type": "array", "items": {"enum": [1, 2, 33]}, "maxItems": 4,'
        ' "uniqueItems": true}',
        "whitespace": "compact",
    },
    {"regex": "[a-c]{2,5}-[0-9]{1,3}"},
    {"choice": ["yes", "no", "maybe so", "n\u00e9ant"]},
    {"lark": 'start: pair ~ 1..3\npair: "(" LETTER? ")"\nLETTER: "x" | "yy"\n'},
    {"gbnf": 'root ::= pair "," pair\npair ::= [a-z] "=" [0-9]?\n'},
    {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "t", "schema": {"enum": ["a", "bb", None, 12]}},
        },
        "whitespace": "compact",
    },
)

# What a request may get wrong.  Each is a ConstrainError.
INVALID: tuple[Any, ...] = (
    {"json_schema": {"type": "strange"}},
    {"json_schema": '{"type": '},
    {"regex": "(a"},
    {"choice": []},
    {"lark": "start: undefined_rule"},
    {"regex": "a", "choice": ["a"]},
    {"regexp": "a"},
    {"regex": "a", "whitespace": "any"},
)

MAX_TOKENS = 96


class ConformanceError(AssertionError):
    """A plugin that does not do what it must."""


@dataclass(frozen=True)
class Job:
    """One request: a constraint as plain data (None: free), a prompt and a limit.

    `name` seeds the made-up logits, so that a job gives the same text in any batch.
    """

    name: str
    constraint: Any
    prompt: tuple[int, ...] = (1, 2, 3)
    max_tokens: int = MAX_TOKENS


@dataclass(frozen=True)
class Step:
    """What was sampled from: the generated ids before, and the logits as the sampler saw them."""

    prefix: tuple[int, ...]
    logits: np.ndarray


@dataclass
class Outcome:
    """What became of a job: its generated ids (an end of sequence included) or its error."""

    tokens: list[int] = field(default_factory=list)
    error: Exception | None = None
    steps: list[Step] = field(default_factory=list)


class Model:
    """Made-up logits: a function of the job and of the ids generated so far.

    Args:
        vocabulary: the driver's vocabulary; the logits are as wide.
        seed: another model.
    """

    def __init__(self, vocabulary: constrain.Vocabulary, seed: int = 0) -> None:
        self.vocabulary = vocabulary
        self._seed = seed

    def logits(self, job: Job, prefix: Sequence[int]) -> np.ndarray:
        """float32 ``[size]``."""
        text = f"{self._seed} {job.name} {list(prefix)}".encode()
        seed = int.from_bytes(hashlib.sha256(text).digest()[:8], "little")
        return np.random.default_rng(seed).normal(size=self.vocabulary.size).astype(np.float32)


class Driver(Protocol):
    """Runs jobs through a plugin.  A new driver is a new engine.

    Attributes:
        vocabulary: of the logits; `small_vocabulary` where the engine has none of its own.
        slots: how many sequences the engine runs at once; more jobs than slots come one after the
            other, into slots that others have left.
        features: what the engine can do, of "free" (jobs without a constraint), "errors" (an
            invalid request fails alone, in its outcome), "speculation" (`run` takes `drafts`),
            "beams" (there is a method `run_beams`), "budget" (it tells the plugin `max_tokens`).
    """

    vocabulary: constrain.Vocabulary
    slots: int
    features: frozenset[str]

    def run(
        self,
        jobs: Sequence[Job],
        model: Model,
        drafts: Callable[[Job, Sequence[int]], list[int]] | None = None,
    ) -> list[Outcome]:
        """Run jobs together, to their ends, always choosing the largest logit.

        A job ends with an end of sequence (part of its tokens) or after `max_tokens`.  With
        `drafts`, the ids that a draft model proposes behind a prefix, good or bad, go through the
        engine's verification.
        """
        ...

    def bypassing(self) -> Mapping[str, Callable[[], object]]:
        """Configurations that would drop or break the constraint, by name: each sets one up and
        must raise a ConstrainError."""
        ...


def small_vocabulary() -> constrain.Vocabulary:
    """All bytes, some longer tokens, two that are no text, and two ends of sequence."""
    words = [
        '{"',
        '":',
        '","',
        "red",
        "true",
        "false",
        "kind",
        "ok",
        "yes",
        "ab",
        "12",
        "may",
        "be",
    ]
    tokens: list[bytes | None] = [None, *(bytes([b]) for b in range(256))]
    tokens += [word.encode() for word in words] + [None]
    return constrain.Vocabulary(tokens, eos_token_ids=[len(tokens), len(tokens) + 1])


# --- checks --------------------------------------------------------------------------------------


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ConformanceError(message)


def _jobs(driver: Driver, constraints: Iterable[Any], tag: str = "") -> list[Job]:
    jobs = [Job(f"{tag}{i}", constraint) for i, constraint in enumerate(constraints)]
    if "free" in driver.features:
        jobs.insert(1, Job(f"{tag}free", None, max_tokens=7))
        jobs.append(Job(f"{tag}free too", None, prompt=(5,), max_tokens=20))
    return jobs


def _reference(driver: Driver, job: Job) -> constrain.Matcher | None:
    spec = parse_constraint(job.constraint)
    return None if spec is None else constrain.compile(spec, driver.vocabulary).matcher()


def _check_outcome(driver: Driver, model: Model, job: Job, outcome: Outcome) -> None:
    """The text is valid and ended, and every mask was exact."""
    _require(outcome.error is None, f"job {job.name} failed: {outcome.error!r}")
    ends = driver.vocabulary.eos_token_ids
    tokens = outcome.tokens
    _require(tokens, f"job {job.name} has no token")
    ended = tokens[-1] in ends
    _require(
        not any(token in ends for token in tokens[:-1]),
        f"job {job.name} went on behind its end of sequence: {tokens}",
    )
    _require(
        ended or len(tokens) == job.max_tokens,
        f"job {job.name} stopped after {len(tokens)} tokens without an end of sequence",
    )
    _require(outcome.steps, f"job {job.name} recorded no step")
    matcher = _reference(driver, job)
    if matcher is not None:
        _require(ended, f"job {job.name} of a bounded constraint did not end: {tokens}")
        count = matcher.validate(tokens)
        _require(
            count == len(tokens),
            f"job {job.name}: token {count} of {tokens} is not allowed"
            f" (text {driver.vocabulary.decode(tokens)!r}, constraint {job.constraint})",
        )
    for step in outcome.steps:
        raw = model.logits(job, step.prefix)
        _check_step(driver, job, matcher, step, raw)


def _check_step(
    driver: Driver, job: Job, matcher: constrain.Matcher | None, step: Step, raw: np.ndarray
) -> None:
    where = f"job {job.name} behind {list(step.prefix)}"
    seen = np.asarray(step.logits, dtype=np.float32)[: len(raw)]
    if matcher is None:
        _require(np.array_equal(seen, raw), f"{where}: logits of a free job were changed")
        return
    matcher.reset()
    if matcher.validate(list(step.prefix)) < len(step.prefix):
        return  # behind an illegal draft: nothing that is sampled there is kept
    for token in step.prefix:
        matcher.advance(token)
    bitmask = constrain.allocate_bitmask(1, driver.vocabulary.size)
    remaining = job.max_tokens - len(step.prefix) if "budget" in driver.features else None
    matcher.fill_bitmask(bitmask, remaining=remaining)
    bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[: len(raw)].astype(bool)
    wrong = np.flatnonzero(np.isfinite(seen) != bits)
    _require(
        not len(wrong),
        f"{where}: the mask is wrong at tokens {wrong[:8].tolist()}, which are"
        f" {'allowed' if len(wrong) and bits[wrong[0]] else 'forbidden'} there",
    )
    _require(np.array_equal(seen[bits], raw[bits]), f"{where}: logits of allowed tokens changed")


def _run(driver: Driver, jobs: Sequence[Job], model: Model, drafts: Any = None) -> list[Outcome]:
    outcomes = driver.run(jobs, model) if drafts is None else driver.run(jobs, model, drafts)
    _require(len(outcomes) == len(jobs), f"{len(jobs)} jobs gave {len(outcomes)} outcomes")
    return outcomes


def check_each_constraint_alone(driver: Driver) -> None:
    """Every kind of constraint is enforced, before sampling, exactly."""
    model = Model(driver.vocabulary)
    for job in _jobs(driver, CONSTRAINTS):
        (outcome,) = _run(driver, [job], model)
        _check_outcome(driver, model, job, outcome)


def check_mixed_batch(driver: Driver) -> None:
    """A batch of different constraints and of none: each job gets the text that it gets alone."""
    model = Model(driver.vocabulary, seed=1)
    jobs = _jobs(driver, CONSTRAINTS)
    alone = [_run(driver, [job], model)[0] for job in jobs]
    together = _run(driver, jobs, model)
    for job, one, outcome in zip(jobs, alone, together):
        _check_outcome(driver, model, job, outcome)
        _require(
            one.tokens == outcome.tokens,
            f"job {job.name} gave {one.tokens} alone and {outcome.tokens} in a batch",
        )


def check_early_finish(driver: Driver) -> None:
    """Sequences that end early disturb no other, in any order."""
    model = Model(driver.vocabulary, seed=2)
    short, long = {"choice": ["a"]}, {"regex": "[a-d]{12,15}"}
    for constraints in ([short, long], [long, short], [short, long, short, short, long]):
        jobs = [Job(f"early {i}", constraint) for i, constraint in enumerate(constraints)]
        for job, outcome in zip(jobs, _run(driver, jobs, model)):
            _check_outcome(driver, model, job, outcome)


def check_slots_are_used_again(driver: Driver) -> None:
    """More jobs than slots, twice: nothing of a former job is left in a slot."""
    for seed in (3, 4):
        model = Model(driver.vocabulary, seed=seed)
        constraints = [CONSTRAINTS[i * (seed - 1) % len(CONSTRAINTS)] for i in range(driver.slots)]
        jobs = _jobs(driver, constraints + [CONSTRAINTS[i] for i in (3, 2, 1)], f"slot {seed} ")
        for job, outcome in zip(jobs, _run(driver, jobs, model)):
            _check_outcome(driver, model, job, outcome)


def check_invalid_request(driver: Driver) -> None:
    """A wrong constraint is a ConstrainError (or what the engine makes of it), never ignored."""
    model = Model(driver.vocabulary, seed=5)
    for number, wrong in enumerate(INVALID):
        try:
            (outcome,) = _run(driver, [Job(f"invalid {number}", wrong)], model)
        except ConstrainError:
            continue
        _require(
            isinstance(outcome.error, ValueError),
            f"the constraint {wrong} is wrong, but the job gave {outcome.tokens}"
            f" and the error {outcome.error!r}",
        )


def check_invalid_request_fails_alone(driver: Driver) -> None:
    """A wrong constraint in a batch fails its own job only."""
    model = Model(driver.vocabulary, seed=6)
    jobs = [
        Job("good", CONSTRAINTS[0]),
        Job("bad", INVALID[0]),
        Job("good too", CONSTRAINTS[2]),
        Job("bad too", INVALID[2]),
    ]
    for job, outcome in zip(jobs, _run(driver, jobs, model)):
        if job.name.startswith("bad"):
            _require(
                isinstance(outcome.error, ValueError) and not outcome.tokens,
                f"the job with a wrong constraint gave {outcome.tokens}, {outcome.error!r}",
            )
        else:
            _check_outcome(driver, model, job, outcome)


def check_speculation(driver: Driver) -> None:
    """Drafts, right and wrong, legal and not: the text is the one without them."""
    model = Model(driver.vocabulary, seed=7)
    jobs = [job for job in _jobs(driver, CONSTRAINTS)[: driver.slots]]
    plain = [_run(driver, [job], model)[0] for job in jobs]
    texts = {job.name: outcome.tokens for job, outcome in zip(jobs, plain)}
    size, ends = driver.vocabulary.size, driver.vocabulary.eos_token_ids

    def right(job: Job, prefix: Sequence[int]) -> list[int]:
        return texts[job.name][len(prefix) : len(prefix) + 3]

    def half_right(job: Job, prefix: Sequence[int]) -> list[int]:
        return [*right(job, prefix)[:1], (7 * len(prefix) + 3) % size, 5]

    def illegal(job: Job, prefix: Sequence[int]) -> list[int]:
        return [0, size - 1, ends[0]]

    def too_long(job: Job, prefix: Sequence[int]) -> list[int]:
        return [*texts[job.name][len(prefix) :], ends[0], 7, 8]

    for drafts in (right, half_right, illegal, too_long):
        for job, one, outcome in zip(jobs, plain, _run(driver, jobs, model, drafts)):
            _check_outcome(driver, model, job, outcome)
            _require(
                one.tokens == outcome.tokens,
                f"job {job.name} gave {one.tokens}, with {drafts.__name__} drafts {outcome.tokens}",
            )


def check_beams(driver: Driver) -> None:
    """Every beam that ends is a valid text, and they differ."""
    model = Model(driver.vocabulary, seed=8)
    for job in (Job("beams", CONSTRAINTS[0]), Job("beams too", CONSTRAINTS[2])):
        beams = driver.run_beams(job, model, 3)  # type: ignore[attr-defined]
        _require(len(beams) == 3, f"3 beams were asked for, {len(beams)} came")
        _require(len({tuple(beam) for beam in beams}) == 3, "beams are equal")
        for beam in beams:
            matcher = _reference(driver, job)
            valid = matcher is not None and matcher.validate(beam) == len(beam)
            _require(valid and beam[-1] in driver.vocabulary.eos_token_ids, f"{beam} is not valid")


def check_budget(driver: Driver) -> None:
    """A text is valid within its limit of tokens; a limit that is too small fails the request."""
    model = Model(driver.vocabulary, seed=9)
    unbounded: tuple[Any, ...] = (
        {"regex": "(ab|[a-z])*!"},
        {"json_object": True},
        {"json_schema": {}},
    )
    for constraint in (*unbounded, CONSTRAINTS[0], CONSTRAINTS[2]):
        spec = parse_constraint(constraint)
        needed = constrain.compile(spec, driver.vocabulary).matcher().tokens_needed
        if needed is None:
            raise ConformanceError(f"no text is known for {constraint}")
        for limit in (needed, needed + 1, needed + 7):
            job = Job(f"budget {limit}", constraint, max_tokens=limit)
            (outcome,) = _run(driver, [job], model)
            _require(outcome.error is None, f"a limit of {limit} tokens: {outcome.error!r}")
            _require(len(outcome.tokens) <= limit, f"{len(outcome.tokens)} tokens, limit {limit}")
            matcher = _reference(driver, job)
            valid = matcher is not None and matcher.validate(outcome.tokens) == len(outcome.tokens)
            _require(valid, f"{outcome.tokens} is not valid under {constraint}")
            for token in outcome.tokens:
                matcher.advance(token)  # type: ignore[union-attr]
            _require(
                matcher is not None and matcher.is_accepting,
                f"{driver.vocabulary.decode(outcome.tokens)!r} was cut off at {limit} tokens",
            )
        if needed > 1:
            job = Job("too small", constraint, max_tokens=needed - 1)
            try:
                (outcome,) = _run(driver, [job], model)
            except ConstrainError:
                continue
            _require(outcome.error is not None, f"{needed - 1} tokens are too few: {outcome}")


def check_bypassing_is_refused(driver: Driver) -> None:
    """Configurations that would drop the constraint raise a ConstrainError that names them."""
    for name, configure in driver.bypassing().items():
        try:
            result = configure()
        except ConstrainError as error:
            _require(str(error), f"{name}: the error says nothing")
        else:
            raise ConformanceError(f"{name} would drop the constraint, but gave {result!r}")


_NEEDED: Mapping[Callable[[Driver], None], str] = {
    check_invalid_request_fails_alone: "errors",
    check_speculation: "speculation",
    check_beams: "beams",
    check_budget: "budget",
}

_ALL: tuple[Callable[[Driver], None], ...] = (
    check_each_constraint_alone,
    check_mixed_batch,
    check_early_finish,
    check_slots_are_used_again,
    check_invalid_request,
    check_invalid_request_fails_alone,
    check_speculation,
    check_beams,
    check_budget,
    check_bypassing_is_refused,
)


def checks(driver: Any) -> list[Callable[[Driver], None]]:
    """The checks that apply to a driver (an instance, or a class with `features`)."""
    unknown = driver.features - {"free", "errors", "speculation", "beams", "budget"}
    if unknown:
        raise ConstrainError(f"unknown features: {', '.join(sorted(unknown))}")
    return [check for check in _ALL if _NEEDED.get(check) in (None, *driver.features)]
