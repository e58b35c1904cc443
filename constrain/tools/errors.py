"""The errors of tools, tool formats and tool calls.

::

    ConstrainError(ValueError)
    ├── ToolError               a tool definition cannot be used     (tool)
    ├── ToolChoiceError         `tool_choice` names nobody           (choice)
    ├── ToolArgumentsError      arguments do not fit their tool      (tool, reason)
    └── ToolFormatError         a format description is malformed    (field)
        └── FormatInferenceError  a chat template cannot be read     (unclear)
"""

from __future__ import annotations

from constrain.errors import ConstrainError

__all__ = [
    "FormatInferenceError",
    "ToolArgumentsError",
    "ToolChoiceError",
    "ToolError",
    "ToolFormatError",
]


class ToolError(ConstrainError):
    """A tool definition cannot be used; `tool` is its name, or how it was found in the list."""

    def __init__(self, message: str, *, tool: str) -> None:
        self.message = message
        self.tool = tool
        super().__init__(f"{tool}: {message}")


class ToolChoiceError(ConstrainError):
    """A tool choice is malformed or names a tool that is not there; `choice` is what was given."""

    def __init__(self, message: str, *, choice: object) -> None:
        self.choice = choice
        super().__init__(message)


class ToolArgumentsError(ConstrainError):
    """Arguments that the tool's schema does not allow; `reason` says what was expected where."""

    def __init__(self, reason: str, *, tool: str) -> None:
        self.reason = reason
        self.tool = tool
        super().__init__(f"arguments of tool {tool!r}: {reason}")


class ToolFormatError(ConstrainError):
    """A format description is malformed or does not suit the tools; `field` is the part."""

    def __init__(self, message: str, *, field: str = "") -> None:
        self.field = field
        super().__init__(f"{field}: {message}" if field else message)


class FormatInferenceError(ToolFormatError):
    """The tool format of a chat template is not certain; `unclear` says which part and why."""

    def __init__(self, unclear: str) -> None:
        self.unclear = unclear
        super().__init__(
            f"the tool-call format of this chat template is not certain: {unclear}. "
            "Pass format= a name of constrain.tools.named_formats.FORMATS, or describe the format "
            "with constrain.tools.formats.ToolFormat(call=..., arguments=..., begin=..., "
            "separator=..., end=...)"
        )
