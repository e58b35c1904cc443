"""Engines that misbehave, for the tests of the benchmarks; `tests.benchmarks.engines` has the face."""

from __future__ import annotations

import os
import time
from typing import Any

from tests.benchmarks.engines import CompileError, Constrain


class Strange(Constrain):
    """Does to a schema what its title says; otherwise as constrain does."""

    def compile(self, schema: Any) -> Any:
        title = schema.get("title")
        if title == "hangs":
            time.sleep(60)
        elif title == "dies":
            os._exit(3)
        elif title == "raises":
            raise RuntimeError("out of order")
        elif title == "refuses":
            raise CompileError("not that one")
        return super().compile(schema)


class Liberal:
    """Allows everything that is no end, and every end."""

    version, settings = "1", "none"

    def __init__(self, vocabulary: Any, options: Any = None) -> None:
        pass

    def compile(self, schema: Any) -> Any:
        return self

    def start(self, compiled: Any) -> Any:
        return self

    def mask(self) -> None:
        pass

    def allows(self, token_id: int) -> bool:
        return True

    def advance(self, token_id: int) -> bool:
        return True

    def nothing(self) -> None:
        pass


class Endless(Liberal):
    """Allows everything but an end, which is the largest id of single bytes."""

    def allows(self, token_id: int) -> bool:
        return token_id != 256


class Absent(Liberal):
    """Is not installed."""

    def __init__(self, vocabulary: Any, options: Any = None) -> None:
        raise ImportError("no module is called absent")
