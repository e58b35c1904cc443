"""Judges of texts: the real parsers of the languages that shipped grammars describe.

A judge takes a text and returns whether the real parser reads it. Where a parser has limits on
sizes that no grammar can count, the judge raises `TooLarge`.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
import sqlite3
import warnings
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

Judge = Callable[[str], bool]


class TooLarge(Exception):
    """The real parser gives up for the size of a text, not for its form."""


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def is_json(text: str) -> bool:
    """RFC 8259, as the standard library reads it without its extensions."""
    try:
        json.loads(text, parse_constant=_constant)
    except ValueError as error:
        if "integer string conversion" in str(error):
            raise TooLarge(str(error)) from error
        return False
    except RecursionError as error:
        raise TooLarge("nesting") from error
    return True


def is_jsonl(text: str) -> bool:
    """Every line is JSON; the last line feed is optional."""
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    return all(is_json(line.removesuffix("\r")) for line in lines)


def _python(text: str, mode: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text, mode=mode)
    except (MemoryError, RecursionError) as error:
        raise TooLarge("nesting") from error
    except SyntaxError as error:
        message = str(error)
        if re.search(r"too many (nested|levels)|too deeply|too complex|Exceeds the limit", message):
            raise TooLarge(message) from error
        return False
    except ValueError:
        return False
    return True


def is_python(text: str) -> bool:
    """A module for `ast.parse`."""
    return _python(text, "exec")


def is_expression(text: str) -> bool:
    """An expression for `ast.parse`."""
    return _python(text, "eval")


def is_arithmetic(text: str) -> bool:
    """A Python expression of numbers, names, signs and calls alone."""
    if not is_expression(text):
        return False
    allowed = (ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant, ast.Name, ast.Call)
    tree = ast.parse(text, mode="eval")
    return all(isinstance(n, (ast.Expression, ast.expr_context, *allowed)) for n in ast.walk(tree))


_DURATION = re.compile(
    r"P(?!$)(\d+Y)?(\d+M)?(\d+W)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?", re.ASCII
)


def is_iso8601(text: str) -> bool:
    """A date, time, date with time (read by `datetime`), or a duration."""
    if not text.isascii() or " " in text:
        return False
    if text.startswith("P"):
        return bool(_DURATION.fullmatch(text)) and ("W" not in text or text[1:-1].isdigit())
    for kind in (date, time, datetime):
        try:
            kind.fromisoformat(text)
        except ValueError:
            continue
        return True
    return False


def is_semver(text: str) -> bool:
    """The package `semver`."""
    import semver

    try:
        return semver.Version.is_valid(text)
    except ValueError as error:
        raise TooLarge(str(error)) from error


def is_email(text: str) -> bool:
    """The standard library's parser of addresses, and the package `email_validator`."""
    from email.headerregistry import Address

    import email_validator

    try:
        Address(addr_spec=text)
    except (ValueError, IndexError):
        return False
    try:
        email_validator.validate_email(text, check_deliverability=False, test_environment=True)
    except email_validator.EmailNotValidError as error:
        message = str(error)
        if re.search(r"too long|special-use|reserved|characters too many", message):
            raise TooLarge(message) from error
        return False
    return True


def is_url(text: str) -> bool:
    """The standard library's `urlsplit`, and pydantic's, which follows the WHATWG."""
    from pydantic_core import Url

    try:
        parts = urlsplit(text)
        _ = parts.port, parts.hostname
        Url(text)
    except ValueError:
        return False
    # Both read and repair more than a URL may hold.
    return bool(
        re.fullmatch(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+", text)
    ) and (bool(parts.hostname))


def is_regex(text: str) -> bool:
    """`re.compile`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text)
    except re.error:
        return False
    except (OverflowError, RecursionError) as error:
        raise TooLarge(str(error)) from error
    return True


def is_dot(text: str) -> bool:
    """The package `pydot`, and that edges fit the kind of the graph."""
    import pydot

    try:
        found = pydot.graph_from_dot_data(text)
    except RecursionError as error:
        raise TooLarge("nesting") from error
    except Exception:
        return False
    return bool(found) and len(found) == 1


def csv_judge(header: Sequence[str], delimiter: str = ",", **columns: Judge) -> Judge:
    """The standard library's reader, the header, the widths of rows and the kinds of columns."""

    def judge(text: str) -> bool:
        try:
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
        except csv.Error as error:
            if "field larger" in str(error):
                raise TooLarge(str(error)) from error
            return False
        if not rows or rows[0] != list(header):
            return False
        return all(
            len(row) == len(header)
            and all(check(row[header.index(name)]) for name, check in columns.items())
            for row in rows[1:]
        )

    return judge


def xml_judge(names: Sequence[str], root: str | None = None) -> Judge:
    """Expat, and the names of the elements."""

    def judge(text: str) -> bool:
        try:
            tree = ElementTree.fromstring(text)
        except ElementTree.ParseError:
            return False
        return all(node.tag in names for node in tree.iter()) and (root is None or tree.tag == root)

    return judge


_SQLITE_SYNTAX = re.compile(
    r"syntax error|incomplete input|unrecognized token|clause should come|unknown join|"
    r"JOIN clause is required|may not have an ON|unsupported|not supported"
)


def sql_judge(tables: dict[str, list[str]] | None = None) -> Judge:
    """sqlglot and SQLite, which both parse the text; with tables, SQLite runs it as well.

    Errors about what a name or a number of columns means are no errors of syntax.
    """
    meaning = re.compile(
        r"no such column|ambiguous column|misuse of|same number of result columns|sub-select returns|"
        r"row value misused|ORDER BY term|GROUP BY term|ORDER BY position|GROUP BY position|"
        r"aggregate functions are not|no tables specified|circular reference|has \d+ values for|"
        r"cannot join using column|duplicate WITH|datatype mismatch|cannot use window|"
        r"a JOIN clause|no such table|integer overflow|string or blob too big|out of range|"
        r"\d columns assigned|IN\(\.\.\.\)|values for \d+ columns"
    )

    def judge(text: str) -> bool:
        import sqlglot

        connection = sqlite3.connect(":memory:")
        for name, columns in (tables or {}).items():
            shown = ", ".join('"' + column.replace('"', '""') + '"' for column in columns)
            connection.execute(f'CREATE TABLE "{name}" ({shown})')
        try:
            connection.execute(text)
        except sqlite3.Warning:
            return False
        except sqlite3.Error as error:
            message = str(error)
            if re.search(r"stack overflow|too large|too many|depth", message):
                raise TooLarge(message) from error
            if _SQLITE_SYNTAX.search(message) or not meaning.search(message):
                return False
            if tables and re.search("no such", message) and len(tables) == 1:
                return False
        finally:
            connection.close()
        for dialect in (None, "sqlite"):
            try:
                found = sqlglot.parse(text, read=dialect)
            except RecursionError as error:
                raise TooLarge("nesting") from error
            except sqlglot.errors.SqlglotError:
                return False
            if len([tree for tree in found if tree is not None]) != 1:
                return False
        return True

    return judge
