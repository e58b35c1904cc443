"""Temperature, top-k, top-p and draws, against sums done by hand."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrain.decoding.sampling import Sampler, kept_probabilities
from constrain.errors import ConstrainError

torch = pytest.importorskip("torch")

LOGITS = st.lists(
    st.one_of(st.floats(-20, 20, width=32), st.just(-math.inf)), min_size=1, max_size=30
).filter(lambda values: any(math.isfinite(v) for v in values))


def reference(
    logits: list[float], temperature: float, top_k: int | None, top_p: float | None
) -> list[float] | None:
    """The kept probabilities, falling, by the definition; None where rounding decides."""
    order = sorted(
        (i for i, v in enumerate(logits) if v > -math.inf), key=lambda i: (-logits[i], i)
    )
    order = order[: top_k or None]
    largest = max(logits)
    weights = {i: math.exp((logits[i] - largest) / temperature) for i in order}
    total = sum(weights.values())
    kept, reached = [], 0.0
    for i in order:
        if top_p is not None and abs(reached - top_p) < 1e-4:
            return None
        if top_p is not None and reached >= top_p:
            break
        kept.append(i)
        reached += weights[i] / total
    total = sum(weights[i] for i in kept)
    return [weights[i] / total for i in kept]


@given(
    logits=LOGITS,
    temperature=st.floats(0.1, 5),
    top_k=st.one_of(st.none(), st.integers(1, 40)),
    top_p=st.one_of(st.none(), st.floats(0.05, 0.99)),
)
@settings(max_examples=200, deadline=None)
def test_kept_probabilities(
    logits: list[float], temperature: float, top_k: int | None, top_p: float | None
) -> None:
    ids, probabilities = kept_probabilities(
        torch.tensor(logits), temperature=temperature, top_k=top_k, top_p=top_p
    )
    assert abs(float(probabilities.sum()) - 1) < 1e-5
    assert all(math.isfinite(logits[i]) for i in ids.tolist())
    expected = reference(logits, temperature, top_k, top_p)
    if expected is None:
        return
    found = sorted(probabilities.tolist(), reverse=True)
    # What underflows in float32 is not listed.
    assert len(found) <= len(expected)
    found += [0.0] * (len(expected) - len(found))
    assert found == pytest.approx(expected, abs=1e-4)


def test_top_p_takes_the_fewest() -> None:
    logits = torch.log(torch.tensor([0.1, 0.4, 0.2, 0.3]))
    ids, probabilities = kept_probabilities(logits, temperature=1.0, top_k=None, top_p=0.65)
    assert ids.tolist() == [1, 3]
    assert probabilities.tolist() == pytest.approx([4 / 7, 3 / 7])
    ids, _ = kept_probabilities(logits, temperature=1.0, top_k=None, top_p=0.01)
    assert ids.tolist() == [1]


def test_top_p_beyond_the_sorted_part() -> None:
    ids, probabilities = kept_probabilities(
        torch.zeros(5000), temperature=1.0, top_k=None, top_p=0.5
    )
    assert abs(len(ids) - 2500) <= 2
    assert len(set(ids.tolist())) == len(ids)
    assert float(probabilities.sum()) == pytest.approx(1)


def test_temperature_zero_is_the_argmax() -> None:
    logits = torch.tensor([0.0, 3.0, 3.0, -math.inf])
    sampler = Sampler(temperature=0, top_k=5, top_p=0.1)
    assert {sampler.sample(logits) for _ in range(5)} == {1}


def test_tiny_temperature_does_not_overflow() -> None:
    sampler = Sampler(temperature=1e-30, seed=0)
    assert sampler.sample(torch.tensor([-1e4, 5e4, -math.inf])) == 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_draws_follow_the_distribution(dtype: str) -> None:
    logits = torch.log(torch.tensor([0.5, 0.25, 0.25])).to(getattr(torch, dtype))
    sampler = Sampler(seed=3)
    counts = Counter(sampler.sample(logits) for _ in range(2000))
    assert counts[0] / 2000 == pytest.approx(0.5, abs=0.05)
    assert counts[1] / 2000 == pytest.approx(0.25, abs=0.05)


def test_seeds_repeat() -> None:
    logits = torch.zeros(1000)
    runs = [[Sampler(seed=seed).sample(logits) for _ in range(1)] for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    first, second = Sampler(seed=5), Sampler(seed=5)
    assert [first.sample(logits) for _ in range(20)] == [second.sample(logits) for _ in range(20)]
    unseeded = {Sampler().sample(logits) for _ in range(20)}
    assert len(unseeded) > 1


def test_illegal_tokens_are_never_drawn() -> None:
    logits = torch.full((50,), -math.inf)
    logits[7] = -100.0
    logits[9] = -100.0
    sampler = Sampler(temperature=3.0, top_k=10, top_p=0.999, seed=0)
    assert {sampler.sample(logits) for _ in range(60)} == {7, 9}


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1},
        {"temperature": math.nan},
        {"temperature": math.inf},
        {"top_k": -1},
        {"top_p": 0},
        {"top_p": 1.5},
        {"top_p": math.nan},
    ],
)
def test_settings_out_of_range(options: dict) -> None:
    with pytest.raises(ConstrainError, match=next(iter(options))):
        Sampler(**options)


@pytest.mark.parametrize(("value", "message"), [(-math.inf, "no token"), (math.nan, "not finite")])
@pytest.mark.parametrize("temperature", [0, 1])
def test_unusable_logits(value: float, message: str, temperature: float) -> None:
    logits = torch.full((4,), -math.inf)
    logits[2] = value
    with pytest.raises(ConstrainError, match=message):
        Sampler(temperature=temperature).sample(logits)
