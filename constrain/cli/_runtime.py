"""The seam between the command line and the model: everything that needs torch is behind it.

Tests replace `open_engine`; nothing else in ``constrain.cli`` touches a model, a tokenizer or a
vocabulary.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = [
    "Engine",
    "Messages",
    "Output",
    "Sampling",
    "compile_alone",
    "open_chat",
    "open_engine",
    "unfinished",
]

Messages = list[dict[str, str]]


@dataclass(frozen=True)
class Sampling:
    """How tokens are chosen; `temperature` 0 takes the likeliest token.

    `speculate` is None, "lookup", "constraint", "both", or the name of a draft model; `measure` has the loop record what
    the masks remove.  The others are as `constrain.decoding.generate` has them.
    """

    temperature: float
    top_k: int | None
    top_p: float | None
    seed: int | None
    max_tokens: int
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    budget: bool = True
    forced: str = "text"
    speculate: str | None = None
    measure: bool = False


class Output(Protocol):
    """What the decode loop returns for one sequence."""

    @property
    def text(self) -> str: ...
    @property
    def token_ids(self) -> list[int]: ...
    @property
    def finish_reason(self) -> str: ...  # "stop", "length" or "dead_end"
    @property
    def is_complete(self) -> bool | None: ...
    @property
    def timings(self) -> Any: ...  # constrain.decoding.Timings


class Engine(Protocol):
    """A loaded model with a compiled constraint."""

    def generate(
        self, messages: Messages, sampling: Sampling, on_text: Callable[[str], None] | None
    ) -> Output:
        """One sequence; `on_text` gets each piece of text as it is certain."""
        ...

    def generate_batch(
        self, batch: list[Messages], sampling: Sampling, on_tokens: Callable[[int], None]
    ) -> Sequence[Output]:
        """One sequence for each of `batch`, in order; `on_tokens` is told of every new tokens."""
        ...


def unfinished(output: Output, sampling: Sampling, *, is_json: bool) -> tuple[str, str] | None:
    """Why an output is not finished: a kind and a sentence part; None if it is.

    A JSON text that closes its last bracket or quote with the last token it may have is finished:
    only whitespace could follow.  A number or a regular expression's text could have gone on.
    """
    if output.finish_reason == "stop":
        return None
    if output.finish_reason == "length":
        if is_json and output.is_complete and output.text.rstrip()[-1:] in ("}", "]", '"'):
            return None
        count = len(output.token_ids)
        full = "" if count >= sampling.max_tokens else ", where the model's context is full"
        return "max_tokens", f"the output was cut off after {count} tokens{full}"
    return "dead_end", "no token of the model continues the output towards a valid one"


def compile_alone(spec: Any) -> Any:
    """The `CompiledConstraint` of a spec for the vocabulary of single bytes.

    It costs about a millisecond and says all that a compilation for a model can say: a malformed,
    unsupported or unsatisfiable constraint is a ConstrainError here, before a model is loaded.
    """
    import constrain
    from constrain._programs import byte_vocabulary

    return constrain.compile(spec, byte_vocabulary())


def open_engine(model_name: str | None, spec: Any) -> Engine:
    """Load a model and compile `spec` for its vocabulary.

    Raises ConstrainError if the model is missing or the constraint does not fit its vocabulary.
    """
    import constrain

    model, tokenizer, vocabulary = open_model(model_name)
    return _TransformersEngine(model, tokenizer, constrain.compile(spec, vocabulary))


def open_model(
    model_name: str | None, *, device: str | None = None, dtype: str | None = None
) -> tuple[Any, Any, Any]:
    """Load a model: the model, its tokenizer and its vocabulary.

    Raises ConstrainError if it is missing, cannot be loaded or has no vocabulary that can be read.
    """
    import constrain
    from constrain import models

    _silence_transformers()
    model, tokenizer = models.load_model(model_name, device=device, dtype=dtype)
    return model, tokenizer, constrain.Vocabulary.from_tokenizer(tokenizer, model=model)


def open_chat(model_name: str | None, sampling: Sampling, **options: Any) -> Any:
    """Load a model that calls tools: a `constrain.tools.agent.ChatModel`.

    `options` are those of `TransformersChat`.  A template that writes no calls is given the format
    hermes where the format is "auto", and that is said.

    Raises ConstrainError if the model is missing or its chat template cannot be used.
    """
    from constrain import models
    from constrain.tools.chat import ChatPrompts, TransformersChat

    _silence_transformers()
    model, tokenizer = models.load_model(model_name)
    if options.get("format") == "auto" and not ChatPrompts(tokenizer, "hermes").writes_tools:
        sys.stderr.write(
            "constrain: the model's chat template writes no tools: they are described in the "
            "system message, and calls are written in the format hermes\n"
        )
        options["format"] = "hermes"
    return TransformersChat(model, tokenizer, **options, **loop_options(sampling))


def _silence_transformers() -> None:
    """Keep its progress bars and advice away from the command's own messages, if it is there."""
    if importlib.util.find_spec("transformers") is None:
        return  # load_model says what to install
    # Read by tqdm when it is imported; on a terminal, its bar for the one-time conversion may stay.
    if not sys.stderr.isatty():
        os.environ.setdefault("TQDM_DISABLE", "1")
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()


class _TransformersEngine:
    """An `Engine` on `constrain.decoding`."""

    def __init__(self, model: Any, tokenizer: Any, compiled: Any) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._compiled = compiled

    def generate(
        self, messages: Messages, sampling: Sampling, on_text: Callable[[str], None] | None
    ) -> Output:
        from constrain import decoding

        return decoding.generate(
            self._model,
            self._tokenizer,
            messages,
            self._compiled,
            on_text=on_text,
            **loop_options(sampling),
        )

    def generate_batch(
        self, batch: list[Messages], sampling: Sampling, on_tokens: Callable[[int], None]
    ) -> Sequence[Output]:
        from constrain import decoding

        return decoding.generate_batch(
            self._model,
            self._tokenizer,
            batch,
            self._compiled,
            on_token=lambda index, token_id: on_tokens(1),
            **loop_options(sampling),
        )


def loop_options(sampling: Sampling) -> dict[str, Any]:
    """The keyword arguments of the decode loop; loads the draft model, if there is one."""
    options = vars(sampling).copy()
    options["speculation"] = speculation(options.pop("speculate"))
    return options


def speculation(name: str | None) -> Any:
    """The source of drafts: "lookup", "constraint", "both" of them in this order, or the name of a
    draft model; None for None."""
    from constrain import decoding

    if name is None:
        return None
    if name == "lookup":
        return decoding.PromptLookup()
    if name == "constraint":
        return decoding.ConstraintDrafts()
    if name == "both":
        return decoding.FirstOf(decoding.PromptLookup(), decoding.ConstraintDrafts())
    return decoding.DraftModel(open_model(name)[0])
