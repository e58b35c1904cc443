"""Descriptions of a function and its parameters from its docstring.

Reads the three common styles: Google (``Args:`` and indented ``name (type): text``), NumPy
(``Parameters`` underlined, ``name : type`` and indented text) and reST (``:param type name: text``).
What is not understood is left out, never guessed: a docstring is a description, not a contract.
"""

from __future__ import annotations

import inspect
import re

__all__ = ["parse_docstring"]

_GOOGLE = re.compile(
    r"^(args|arguments|parameters|params|keyword args|keyword arguments)\s*:\s*$", re.I
)
_SECTION = re.compile(
    r"^(returns?|yields?|raises?|examples?|notes?|see also|references?|attributes|warns?|warnings?"
    r"|todo|other parameters|args|arguments|parameters|params|keyword args|keyword arguments)"
    r"\s*:\s*$",
    re.I,
)
_GOOGLE_ITEM = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\)|\[[^\]]*\])?\s*:\s*(.*)$")
_NUMPY_ITEM = re.compile(r"^\*{0,2}(\w+(?:\s*,\s*\w+)*)\s*(?::.*)?$")
_REST_ITEM = re.compile(
    r"^:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*?\s)?\*{0,2}(\w+)\s*:\s*(.*)$"
)
_REST_OTHER = re.compile(r"^:\w+[^:]*:")


def parse_docstring(text: str | None) -> tuple[str, dict[str, str]]:
    """The description (everything before the first section) and the parameters' descriptions."""
    if not text:
        return "", {}
    lines = inspect.cleandoc(text).splitlines()
    parameters: dict[str, str] = {}
    summary: list[str] = []
    at, in_summary = 0, True
    while at < len(lines):
        line = lines[at]
        underlined = at + 1 < len(lines) and re.fullmatch(r"-{3,}\s*", lines[at + 1]) is not None
        if underlined and line.strip():
            in_summary = False
            numpy = line.strip().lower() in ("parameters", "other parameters")
            at = _numpy(lines, at + 2, parameters if numpy else {})
        elif _GOOGLE.match(line):
            in_summary = False
            at = _google(lines, at + 1, parameters)
        elif _SECTION.match(line):
            in_summary = False
            at += 1
        elif _REST_OTHER.match(line):
            in_summary = False
            at = _rest(lines, at, parameters)
        else:
            if in_summary:
                summary.append(line)
            at += 1
    return "\n".join(summary).strip(), {key: value for key, value in parameters.items() if value}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(lines: list[str], at: int, found: dict[str, str]) -> int:
    """Items of a Google section: each at the section's own indentation, its text at a deeper one."""
    level, name = -1, ""
    while at < len(lines):
        line = lines[at]
        if line.strip():
            indent = _indent(line)
            if indent == 0:
                break
            if level < 0:
                level = indent
            item = _GOOGLE_ITEM.match(line.strip()) if indent <= level else None
            if item:
                name = item.group(1)
                found[name] = item.group(2).strip()
            elif name:
                found[name] = f"{found[name]} {line.strip()}".strip()
        at += 1
    return at


def _numpy(lines: list[str], at: int, found: dict[str, str]) -> int:
    names: list[str] = []
    while at < len(lines):
        line = lines[at]
        if at + 1 < len(lines) and line.strip() and re.fullmatch(r"-{3,}\s*", lines[at + 1]):
            break
        if line.strip():
            if _indent(line) == 0:
                item = _NUMPY_ITEM.match(line.strip())
                names = re.split(r"\s*,\s*", item.group(1)) if item else []
                for name in names:
                    found[name] = ""
            else:
                for name in names:
                    found[name] = f"{found[name]} {line.strip()}".strip()
        at += 1
    return at


def _rest(lines: list[str], at: int, found: dict[str, str]) -> int:
    item = _REST_ITEM.match(lines[at])
    text = item.group(2).strip() if item else ""
    at += 1
    while at < len(lines) and lines[at].strip() and _indent(lines[at]) > 0:
        text = f"{text} {lines[at].strip()}".strip()
        at += 1
    if item:
        found[item.group(1)] = text
    return at
