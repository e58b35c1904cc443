"""An engine for extraction without a model: random legal bytes.

Each worker that opens one leaves a file with its process id in $RANDOM_ENGINE_PIDS.  The word STOP
in a prompt cuts its text off, FAIL raises, KILL ends the process.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import constrain

VOCABULARY = [bytes([b]) for b in range(256)]


class RandomEngine:
    def __init__(self, spec: Any) -> None:
        vocabulary = constrain.Vocabulary(VOCABULARY, [256])
        self._compiled = constrain.compile(spec, vocabulary)
        self._bitmask = constrain.allocate_bitmask(1, vocabulary.size)

    def generate_batch(
        self, batch: Sequence[Any], sampling: Any, on_tokens: Callable[[int], None]
    ) -> list[Any]:
        outputs = [self._one(messages[-1]["content"], sampling) for messages in batch]
        on_tokens(sum(len(output.token_ids) for output in outputs))
        return outputs

    def _one(self, prompt: str, sampling: Any) -> Any:
        if "FAIL" in prompt:
            raise RuntimeError("the prompt is too long")
        if "KILL" in prompt:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(float(os.environ.get("RANDOM_ENGINE_SECONDS", "0")))
        choose = random.Random(f"{prompt} {sampling.seed}")
        matcher = self._compiled.matcher()
        for left in range(sampling.max_tokens, 0, -1):
            matcher.fill_bitmask(self._bitmask, remaining=left)
            bits = np.unpackbits(self._bitmask.view(np.uint8), bitorder="little")
            matcher.advance(choose.choice(np.flatnonzero(bits).tolist()))
            if matcher.is_finished:
                break
        tokens = matcher.tokens
        text = bytes(token for token in tokens if token < 256).decode("utf-8", "replace")
        reason = "stop" if matcher.is_accepting else "length"
        if "STOP" in prompt:
            text, reason = text[:-1], "length"
        return SimpleNamespace(
            text=text, token_ids=tokens, finish_reason=reason, is_complete=reason == "stop"
        )


def open_engine(model: str | None, spec: Any) -> RandomEngine:
    folder = os.environ.get("RANDOM_ENGINE_PIDS")
    if folder:
        (Path(folder) / str(os.getpid())).touch()
    return RandomEngine(spec)
