"""Records of JSONL, CSV and text files, read as a stream.

A record is identified by its file (the path as given, normalised), its number in that file (from 1)
and the hash of its content, so that a resumed run can tell which records are done and whether the
input has changed.  A record that cannot be used (a JSONL line that is not an object, a CSV row with
a missing field) is still a record: it carries the reason, and the run goes on.  A file that cannot
be read as its format at all raises `CliError`.

Memory: one record at a time, except for standard input, which is read whole because the input is
read twice (once to check and count it before a model is loaded).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from constrain.cli._errors import CliError, ExitCode, os_reason
from constrain.cli._json import JsonInputError, decode_utf8, parse_json

__all__ = ["FORMATS", "Record", "Source", "open_sources"]

FORMATS = ("jsonl", "csv", "tsv", "text")
_BY_EXTENSION = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "text",
    ".text": "text",
    ".md": "text",
}


@dataclass(frozen=True, slots=True)
class Record:
    """One input record: `value` is a dict (JSONL, CSV), a str (text) or None with a `problem`."""

    file: str
    number: int  # in its file, from 1
    place: str  # for messages: "tickets.jsonl, line 3"
    digest: str  # 16 hex digits of the SHA-256 of the content
    value: dict[str, Any] | str | None
    problem: str | None = None

    @property
    def id(self) -> str | int | None:
        """The record's own ``id`` field, where it has a usable one."""
        found = self.value.get("id") if isinstance(self.value, dict) else None
        if isinstance(found, bool) or not isinstance(found, (str, int)):
            return None
        return found


@dataclass(frozen=True)
class Source:
    """An input file and its format; `content` holds standard input, read whole."""

    file: str
    format: str
    content: bytes | None = None

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        if self.content is not None:
            yield io.BytesIO(self.content)
            return
        try:
            with open(self.file, "rb") as file:
                yield file
        except OSError as error:
            raise CliError(f"cannot read {self.file}: {os_reason(error)}") from error

    def records(self) -> Iterator[Record]:
        """The records of the file, in order.  Raises CliError if it is not of its format."""
        with self._opened() as file:
            if self.format == "jsonl":
                yield from self._jsonl(file)
            elif self.format == "text":
                yield self._text(file.read())
            else:
                yield from self._table(file, "\t" if self.format == "tsv" else ",")

    def _jsonl(self, file: BinaryIO) -> Iterator[Record]:
        number = 0
        offset = 0
        for line_number, line in enumerate(file, 1):
            start, offset = offset, offset + len(line)
            content = line.strip()
            if not content or content == b"\xef\xbb\xbf":
                continue
            number += 1
            value: Any = None
            problem: str | None = None
            try:
                value = parse_json(decode_utf8(line, start).strip("\r\n"), line_number)
                if not isinstance(value, dict):
                    problem = f"line {line_number}: a record must be a JSON object, not " + (
                        _json_type(value)
                    )
                    value = None
            except JsonInputError as error:
                problem = str(error)
                if not problem.startswith("line "):
                    problem = f"line {line_number}: {problem}"
            yield Record(
                self.file,
                number,
                f"{self.file}, line {line_number}",
                _digest(content),
                value,
                problem,
            )

    def _text(self, content: bytes) -> Record:
        value: str | None = None
        problem: str | None = None
        try:
            value = decode_utf8(content)
        except JsonInputError as error:
            problem = str(error)
        return Record(self.file, 1, self.file, _digest(content), value, problem)

    def _table(self, file: BinaryIO, delimiter: str) -> Iterator[Record]:
        csv.field_size_limit(2**31 - 1)
        reader = csv.reader(self._lines(file), delimiter=delimiter, strict=True)
        header: list[str] | None = None
        number = 0
        while True:
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise CliError(f"{self.file}, line {reader.line_num}: {error}") from error
            if not row:
                continue
            if header is None:
                header = self._header(row)
                continue
            number += 1
            problem: str | None = None
            value: dict[str, Any] | None = dict(zip(header, row))
            if len(row) != len(header):
                problem = (
                    f"line {reader.line_num}: the row has {_count(len(row), 'field')}, "
                    f"the header {len(header)}"
                )
                value = None
            digest = _digest(json.dumps([header, row]).encode())
            place = f"{self.file}, line {reader.line_num}"
            yield Record(self.file, number, place, digest, value, problem)

    def _lines(self, file: BinaryIO) -> Iterator[str]:
        offset = 0
        for number, line in enumerate(file, 1):
            try:
                text = decode_utf8(line, offset)
            except JsonInputError as error:
                raise CliError(f"{self.file}, line {number}: {error}") from error
            offset += len(line)
            yield text

    def _header(self, row: list[str]) -> list[str]:
        names = [name.strip() for name in row]
        for position, name in enumerate(names, 1):
            if not name:
                raise CliError(f"{self.file}, line 1: column {position} of the header has no name")
            if names.index(name) != position - 1:
                raise CliError(f"{self.file}, line 1: the header names {name!r} twice")
        return names


def open_sources(paths: list[str], input_format: str | None) -> list[Source]:
    """The inputs named on the command line; ``-`` is standard input (JSONL unless told)."""
    sources: list[Source] = []
    seen: set[str] = set()
    for path in paths:
        file = path if path == "-" else os.path.normpath(path)
        if file in seen:
            raise CliError(f"the input {path} is given twice", ExitCode.USAGE)
        seen.add(file)
        if path == "-":
            sources.append(Source("-", input_format or "jsonl", sys.stdin.buffer.read()))
            continue
        chosen = input_format or _BY_EXTENSION.get(Path(path).suffix.lower())
        if chosen is None:
            raise CliError(
                f"the format of {path} does not follow from its name; "
                f"give --input-format ({', '.join(FORMATS)})",
                ExitCode.USAGE,
            )
        sources.append(Source(file, chosen))
    return sources


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    return "an array" if isinstance(value, list) else "a number"
