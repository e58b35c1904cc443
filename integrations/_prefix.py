"""Which ids are generated, for engines that show a processor prompt and generated ids together."""

from __future__ import annotations

from typing import Any

import numpy as np

from constrain.integrations.errors import EngineConfigurationError

__all__ = ["Continuation"]

_STEP = 2  # ids by which a call may be longer than the longest before


class Continuation:
    """Cuts the prompt off the ids of one sequence.

    The ids of the first call are the prompt, unless `prompt_length` says how many are.  Later calls
    may go back (drafts) and grow by a token or two.  Anything else is another generation, for
    which another processor is needed: its text would be taken for a part of this one.

    Args:
        engine: for messages.
        prompt_length: how many ids are prompt.
    """

    def __init__(self, engine: str, prompt_length: int | None = None) -> None:
        self._engine = engine
        self._length = prompt_length
        self._prompt: np.ndarray | None = None
        self._longest = 0

    def generated(self, ids: Any) -> list[int]:
        """The generated ids of a call.

        Args:
            ids: integers ``[n]``, prompt and generated.

        Raises:
            EngineConfigurationError: the ids belong to another generation.
        """
        array = np.asarray(ids)
        if self._prompt is None:
            length = len(array) if self._length is None else self._length
            self._prompt = array[:length].copy()
            self._longest = len(array)
        prompt = self._prompt
        if len(array) > self._longest + _STEP or not np.array_equal(array[: len(prompt)], prompt):
            raise EngineConfigurationError(
                "a processor was used for a second generation: make one for each",
                engine=self._engine,
                setting="logits_processors",
            )
        self._longest = max(self._longest, len(array))
        return [int(token_id) for token_id in array[len(prompt) :].tolist()]
