"""From prompts to token ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from constrain.errors import ConstrainError

__all__ = ["Prompt", "encode_prefix", "encode_prompt"]

Prompt = str | Sequence[int] | Sequence[Mapping[str, Any]]


def encode_prompt(tokenizer: Any, prompt: Prompt) -> list[int]:
    """The token ids of a prompt.

    Args:
        tokenizer: of transformers.
        prompt: a text, taken as it is, with the special tokens that the tokenizer adds; chat
            messages (``{"role", "content"}``), put through the model's chat template; or ids.

    Raises:
        ConstrainError: the prompt is empty or of another kind, or there is no chat template.
    """
    if isinstance(prompt, str):
        ids = list(tokenizer(prompt)["input_ids"])
    elif isinstance(prompt, (bytes, Mapping)) or not isinstance(prompt, Sequence):
        raise ConstrainError(
            f"a prompt is a text, a list of messages or token ids, not {type(prompt).__name__}"
        )
    elif prompt and all(isinstance(message, Mapping) for message in prompt):
        ids = _encode_messages(tokenizer, prompt)
    else:
        try:
            ids = [token_id.__index__() for token_id in prompt]  # type: ignore[union-attr]
        except AttributeError as error:
            raise ConstrainError("a prompt that is a list holds messages or token ids") from error
    if not ids:
        raise ConstrainError("the prompt is empty: a model needs at least one token to begin with")
    return ids


def _encode_messages(tokenizer: Any, messages: Sequence[Any]) -> list[int]:
    if not getattr(tokenizer, "chat_template", None):
        raise ConstrainError("the model has no chat template: give the prompt as a text")
    try:
        text = tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True
        )
    except Exception as error:
        # Templates are programs: they raise jinja2 errors of their own for roles they refuse.
        raise ConstrainError(f"the model's chat template refuses the messages: {error}") from error
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def encode_prefix(vocabulary: Any, prefix: str | Sequence[int]) -> list[int]:
    """The token ids of what an answer begins with: a text, as a continuation, or ids.

    Raises:
        ConstrainError: the text has no tokens, or something else was given.
    """
    if isinstance(prefix, str):
        ids = vocabulary.encode(prefix.encode()) if prefix else []
        if ids is None:
            raise ConstrainError(
                "the prefix cannot be written in tokens of the vocabulary (which needs its"
                " tokenizer for that): give it as token ids"
            )
        return list(ids)
    try:
        return [token_id.__index__() for token_id in prefix]
    except (AttributeError, TypeError) as error:
        raise ConstrainError("a prefix is a text or token ids") from error
