"""Every plugin against the conformance kit, with stand-ins for the engines.

`test_the_kit_finds` shows that the kit can fail: plugins that are broken in the ways in which
plugins break are all found.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from constrain.errors import ConstrainError
from constrain.integrations import testkit
from constrain.integrations.base import Adapter, ConstrainedSequence
from tests.integrations.engines import drivers, local_drivers, sglang_driver, vllm_drivers

DRIVERS = [
    drivers.AdapterDriver,
    vllm_drivers.VllmV1Driver,
    vllm_drivers.VllmV2Driver,
    vllm_drivers.VllmBackendDriver,
    sglang_driver.SglangDriver,
    local_drivers.ExllamaDriver,
    local_drivers.LlamaCppDriver,
    local_drivers.MlxDriver,
]


@pytest.fixture(autouse=True)
def _no_mlx(monkeypatch: pytest.MonkeyPatch) -> None:
    """NumPy in the place of ``mlx.core``."""
    package = types.ModuleType("mlx")
    core = types.ModuleType("mlx.core")
    core.array, core.float32, package.core = np.array, np.float32, core  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlx", package)
    monkeypatch.setitem(sys.modules, "mlx.core", core)


@pytest.mark.parametrize(
    ("driver", "check"),
    [
        pytest.param(driver, check, id=f"{driver.__name__}-{check.__name__}")
        for driver in DRIVERS
        for check in testkit.checks(driver)
    ],
)
def test_conformance(driver: Any, check: Any) -> None:
    check(driver())


# --- the kit itself ------------------------------------------------------------------------------


class _Broken(drivers.AdapterDriver):
    def __init__(self) -> None:
        super().__init__()
        self.adapter = self.adapter_class(self.vocabulary)

    adapter_class: type[Adapter] = Adapter


class _NoMask(Adapter):
    def mask(self, logits: Any, sequences: Any) -> None:
        pass


class _OneRowLate(Adapter):
    def mask(self, logits: Any, sequences: Any) -> None:
        super().mask(logits, [*sequences[1:], sequences[0]])


class _Stale(Adapter):
    """The mask of the step before."""

    def mask(self, logits: Any, sequences: Any) -> None:
        older = []
        for sequence in sequences:
            copy = None if sequence is None else sequence.fork()
            if copy is not None and copy.token_ids:
                copy.rollback(1)
            older.append(copy)
        super().mask(logits, older)


class _TooNarrow(Adapter):
    """Forbids a token that is allowed."""

    def mask(self, logits: Any, sequences: Any) -> None:
        super().mask(logits, sequences)
        for row, sequence in enumerate(sequences):
            allowed = np.flatnonzero(np.isfinite(logits[row]))
            if sequence is not None and len(allowed) > 1:
                logits[row, allowed[0]] = -np.inf


class _Scales(Adapter):
    def mask(self, logits: Any, sequences: Any) -> None:
        super().mask(logits, sequences)
        logits *= 0.5


class _IgnoresErrors(Adapter):
    def open(self, constraint: Any, **options: Any) -> ConstrainedSequence | None:
        try:
            return super().open(constraint, **options)
        except ConstrainError:
            return None


class _NoBudget(Adapter):
    def open(self, constraint: Any, **options: Any) -> ConstrainedSequence | None:
        return super().open(constraint)


class _Permissive(Adapter):
    """Does not see that other settings forbid everything."""

    def mask(self, logits: Any, sequences: Any) -> None:
        if np.isfinite(logits).all():
            super().mask(logits, sequences)


class _ForgetsRollback(drivers.AdapterDriver):
    """Leaves illegal and rejected drafts in the sequence."""

    def _at(self, sequence: Any, row: list[int]) -> Any:
        if sequence is not None:
            for token_id in row[len(sequence.token_ids) :]:
                sequence.advance(token_id)
        return sequence


class _StopsLate(drivers.AdapterDriver):
    """Goes on behind the end of a sequence."""

    def run(self, jobs: Sequence[Any], model: Any, drafts: Any = None) -> Any:
        outcomes = super().run(jobs, model, drafts)
        for outcome in outcomes:
            if outcome.tokens:
                outcome.tokens.append(outcome.tokens[-1])
        return outcomes


def _driver(adapter: type[Adapter]) -> type:
    return type(adapter.__name__, (_Broken,), {"adapter_class": adapter})


@pytest.mark.parametrize(
    ("driver", "check"),
    [
        (_driver(_NoMask), testkit.check_each_constraint_alone),
        (_driver(_OneRowLate), testkit.check_mixed_batch),
        (_driver(_Stale), testkit.check_each_constraint_alone),
        (_driver(_TooNarrow), testkit.check_each_constraint_alone),
        (_driver(_Scales), testkit.check_each_constraint_alone),
        (_driver(_IgnoresErrors), testkit.check_invalid_request),
        (_driver(_IgnoresErrors), testkit.check_invalid_request_fails_alone),
        (_driver(_NoBudget), testkit.check_budget),
        (_driver(_Permissive), testkit.check_bypassing_is_refused),
        (_ForgetsRollback, testkit.check_speculation),
        (_StopsLate, testkit.check_each_constraint_alone),
    ],
    ids=lambda value: value.__name__,
)
def test_the_kit_finds(driver: Any, check: Any) -> None:
    with pytest.raises((testkit.ConformanceError, AssertionError, ConstrainError)):
        check(driver())


def test_checks_follow_features() -> None:
    class Plain:
        features = frozenset({"free"})

    names = {check.__name__ for check in testkit.checks(Plain)}
    assert "check_mixed_batch" in names
    assert not names & {"check_speculation", "check_beams", "check_budget"}
    Plain.features = frozenset({"batches"})
    with pytest.raises(ConstrainError, match="unknown features: batches"):
        testkit.checks(Plain)
