"""allocate_bitmask, apply_bitmask and the batch call: shapes, dtypes and what is refused."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import constrain

torch = pytest.importorskip("torch")

_PATH = Path(__file__).parents[1] / "reference" / "masks.py"
_SPEC = importlib.util.spec_from_file_location("reference_masks", _PATH)
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)

TORCH_TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


def random_case(seed: int, rows: int, width: int, words: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(rows, width)).astype(np.float32)
    bitmask = rng.integers(-(2**31), 2**31, size=(rows, words)).astype(np.int32)
    bitmask[rng.random(bitmask.shape) < 0.3] = -1
    bitmask[rng.random(bitmask.shape) < 0.3] = 0
    return logits, bitmask


@pytest.mark.parametrize("size", [1, 31, 32, 33, 301, 319, 352, 128256])
def test_allocated_bitmask_is_aligned_and_allows_nothing(size):
    bitmask = constrain.allocate_bitmask(3, size)
    assert bitmask.shape == (3, -(-size // 32))
    assert bitmask.dtype == np.int32
    assert bitmask.flags.c_contiguous
    assert bitmask.ctypes.data % 64 == 0
    assert not bitmask.any()


def test_allocate_refuses_negative_sizes():
    with pytest.raises(constrain.ConstrainError):
        constrain.allocate_bitmask(-1, 10)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("width", "words"), [(1, 1), (32, 1), (40, 2), (301, 10), (352, 10)])
def test_numpy_logits(dtype, width, words):
    logits, bitmask = random_case(width, 3, width, words)
    logits = logits.astype(dtype)
    expected = reference.masked(logits, bitmask)
    constrain.apply_bitmask(logits, bitmask)
    np.testing.assert_array_equal(logits, expected)


@pytest.mark.parametrize("dtype", TORCH_TYPES)
@pytest.mark.parametrize("torch_mask", [False, True])
@pytest.mark.parametrize("width", [40, 301, 352])
def test_torch_logits(dtype, torch_mask, width):
    logits, bitmask = random_case(7, 3, width, 10 if width > 40 else 2)
    tensor = torch.from_numpy(logits).to(dtype)
    expected = reference.masked(tensor.double().numpy(), bitmask)
    constrain.apply_bitmask(tensor, torch.from_numpy(bitmask) if torch_mask else bitmask)
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(tensor.double().numpy(), expected)


@pytest.mark.parametrize("rows", [[], [1], [2, 0]])
def test_rows_leave_the_others_alone(rows):
    logits, bitmask = random_case(3, 3, 100, 4)
    expected = reference.masked(logits, bitmask, rows)
    tensor = torch.from_numpy(logits.copy())
    strided = torch.from_numpy(np.repeat(logits, 2, axis=1))[:, ::2]
    for given in (tensor, strided):
        constrain.apply_bitmask(given, bitmask, rows=rows)
        np.testing.assert_array_equal(given.numpy(), expected)
    constrain.apply_bitmask(logits, bitmask, rows=np.array(rows, dtype=np.int32))
    np.testing.assert_array_equal(logits, expected)


def test_one_dimension_and_views():
    logits, bitmask = random_case(5, 4, 100, 4)
    expected = reference.masked(logits, bitmask)
    one = logits[1].copy()
    constrain.apply_bitmask(one, bitmask[1])
    np.testing.assert_array_equal(one, expected[1])
    tensor = torch.from_numpy(logits[1].copy())
    constrain.apply_bitmask(tensor, bitmask[1:2])
    np.testing.assert_array_equal(tensor.numpy(), expected[1])
    wide = np.zeros((4, 200), dtype=np.float32)
    wide[:, ::2] = logits
    constrain.apply_bitmask(wide[:, ::2], np.repeat(bitmask, 2, axis=1)[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], expected)
    assert not wide[:, 1::2].any()


def test_a_model_in_training_is_masked_too():
    logits = torch.zeros((1, 40), requires_grad=True)
    constrain.apply_bitmask(logits, np.array([[1, 0]], dtype=np.int32))
    assert torch.isinf(logits).sum() == 39


def test_narrow_logits_must_not_lose_an_allowed_token():
    bitmask = np.zeros((1, 4), dtype=np.int32)
    bitmask[0, 0] = -1
    logits = np.zeros((1, 40), dtype=np.float32)
    constrain.apply_bitmask(logits, bitmask)
    assert np.isfinite(logits).sum() == 32
    bitmask[0, 3] = 4
    for given in (logits, torch.from_numpy(logits)):
        with pytest.raises(ValueError, match="behind"):
            constrain.apply_bitmask(given, bitmask)


def test_refused_shapes_and_types():
    logits = np.zeros((2, 64), dtype=np.float32)
    bitmask = np.zeros((2, 2), dtype=np.int32)
    for bad in (bitmask[:1], np.zeros((2, 2, 2), dtype=np.int32)):
        with pytest.raises(constrain.ConstrainError):
            constrain.apply_bitmask(logits, bad)
    for bad in (bitmask.astype(np.int64), bitmask.tolist(), bitmask.astype(np.uint32)):
        with pytest.raises(TypeError):
            constrain.apply_bitmask(logits, bad)
    for bad in (logits.astype(np.int32), logits.tolist(), torch.zeros((2, 64), dtype=torch.int32)):
        with pytest.raises(TypeError):
            constrain.apply_bitmask(bad, bitmask)
    for rows in ([2], [-1]):
        with pytest.raises(constrain.ConstrainError):
            constrain.apply_bitmask(logits, bitmask, rows=rows)
    with pytest.raises(TypeError):
        constrain.apply_bitmask(logits, bitmask, rows=[True, False])
    logits.flags.writeable = False
    with pytest.raises(constrain.ConstrainError):
        constrain.apply_bitmask(logits, bitmask)
