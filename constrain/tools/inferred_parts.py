"""What stands before, in, between and after the calls of a rendered probe."""

from __future__ import annotations

import re

from constrain.tools.errors import FormatInferenceError
from constrain.tools.locate import INDEX, Marks, common_suffix, cut
from constrain.tools.probes import Probe

__all__ = ["Parts"]

_HOLES = {"name": "\ue010", "id": "\ue011", "arguments": "\ue012"}


class Parts:
    """``begin head ... tail (separator head ... tail)* end``; a running number is `INDEX`."""

    def __init__(self) -> None:
        self.begin = self.head = self.tail = self.separator = self.end = ""
        self.inner: list[str] = []
        self.kinds: list[str] = []
        self.first_index = 0
        self.first_word = ""

    @property
    def shown_head(self) -> str:
        """The head of the first call as it is written."""
        return self.head.replace(INDEX, str(self.first_index))

    @staticmethod
    def of(
        single: Probe, marks: Marks, double: Probe | None, pair: list[Marks] | None, header: int
    ) -> Parts:
        """The parts, from a message with one call and, where there can be two, one with two."""
        parts = Parts()
        text = single.rendered
        before, after = text[header : marks.start], text[marks.end :]
        parts.kinds = marks.kinds()
        parts.inner = marks.literals(text)
        parts.first_word = text[marks.spans[0].start : marks.spans[0].end]
        if double is None or pair is None:
            closing = _closing_of(after)
            parts.begin, parts.tail, parts.end = before, after[:closing], after[closing:]
            return parts
        between = double.rendered[pair[0].end : pair[1].start]
        numbers: list[int] = []
        before, between = _indexed(before, between, numbers)
        second = pair[1].literals(double.rendered)
        for at, (left, right) in enumerate(zip(parts.inner, second)):
            parts.inner[at], other = _indexed(left, right, numbers)
            if parts.inner[at] != other:
                raise FormatInferenceError(f"{left!r} in the first call is {right!r} in the second")
        if len(set(numbers)) > 1:
            raise FormatInferenceError("calls are numbered in two ways")
        parts.first_index = numbers[0] if numbers else 0
        head, tail = cut(before, between, after)
        parts.begin, parts.head = before[: len(before) - head], before[len(before) - head :]
        parts.tail, parts.end = after[:tail], after[tail:]
        parts.separator = between[tail : len(between) - head]
        if INDEX in parts.begin or INDEX in parts.separator:
            raise FormatInferenceError("a number stands between the calls")
        return parts

    def repeat(self, prompted: str) -> None:
        """Put a text before each call that the prompt writes for the first one."""
        if self.separator.strip().endswith(prompted):
            self.separator = self.separator.rstrip()[: -len(prompted)]
            self.head = prompted + self.head
            self.begin = ""
        else:
            self.begin = prompted

    def template(self) -> str:
        """The template of a call."""
        pieces = [self.head]
        for number, kind in enumerate(self.kinds):
            if number:
                pieces.append(self.inner[number - 1])
            pieces.append(_HOLES[kind])
        pieces.append(self.tail)
        whole = "".join(pieces).replace("$", "$$")
        for kind, mark in _HOLES.items():
            whole = whole.replace(mark, "${" + kind + "}")
        return whole.replace(INDEX, "${index}")


def _indexed(left: str, right: str, numbers: list[int]) -> tuple[str, str]:
    """Both with the running number as `INDEX`, where they end alike but for one."""
    same = common_suffix(left, right)
    a, b = left[: len(left) - same], right[: len(right) - same]
    if a and b and a[-1].isdigit() and b[-1].isdigit() and int(b[-1]) == int(a[-1]) + 1:
        numbers.append(int(a[-1]))
        tail = left[len(left) - same :]
        return a[:-1] + INDEX + tail, b[:-1] + INDEX + tail
    return left, right


def _closing_of(after: str) -> int:
    """Where the only call of a message ends: its JSON brackets belong to it."""
    found = re.match(r"[\s}\])]*", after)
    return len(found.group().rstrip()) if found else 0
