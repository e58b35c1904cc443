"""Errors of the engine plugins.

::

    ConstrainError
    ├── EngineConfigurationError   the engine would drop or break the constraint  (engine, setting)
    └── RequestError               one request cannot be served                   (request_id)
"""

from __future__ import annotations

from constrain.errors import ConstrainError

__all__ = ["EngineConfigurationError", "RequestError"]


class EngineConfigurationError(ConstrainError):
    """A configuration of the engine under which a constraint would be dropped or broken."""

    def __init__(self, message: str, *, engine: str, setting: str) -> None:
        self.engine = engine
        self.setting = setting
        super().__init__(f"{engine}: {message}")


class RequestError(ConstrainError):
    """A request whose constraint cannot be used; the cause is the `ConstrainError` that says why."""

    def __init__(self, message: str, *, request_id: object = None) -> None:
        self.request_id = request_id
        super().__init__(message if request_id is None else f"request {request_id}: {message}")
