"""Grammars with parameters: what is put into the places of their files that are marked ``@...@``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from constrain.errors import ConstrainError

__all__ = ["REQUIRED", "arithmetic", "csv", "pruned", "sql", "xml"]

REQUIRED = {"csv": ("header",), "xml": ("names",)}

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_XML_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def arithmetic(source: str, names: Iterable[str] = (), functions: Iterable[str] = ()) -> str:
    variables = _texts("names", names, _WORD)
    calls = _texts("functions", functions, _WORD)
    more = ""
    if variables:
        more += f"| {_either(variables)} "
    if calls:
        more += f'| ( {_either(calls)} ) "(" s sum ( s "," s sum )* s ")"'
    return source.replace("@NAMES@", more.rstrip())


def csv(
    source: str,
    header: Iterable[str] | Mapping[str, str | Iterable[str]],
    delimiter: str = ",",
) -> str:
    if delimiter not in (",", ";", "|", "\t"):
        raise ConstrainError(
            f"delimiter: expected a comma, semicolon, bar or tab, found {delimiter!r}"
        )
    columns: dict[str, Any]
    if isinstance(header, Mapping):
        columns = dict(header)
        _texts("header", columns)
    else:
        columns = dict.fromkeys(_texts("header", header), "text")
    if not columns:
        raise ConstrainError("header: a table needs at least one column")
    cells = [_cell(name, kind, delimiter) for name, kind in columns.items()]
    between = f" {_literal(delimiter)} "
    shown = delimiter.join(_csv_cell(name, delimiter) for name in columns)
    excluded = "\\t" if delimiter == "\t" else delimiter
    plain = f'[^"\\r\\n\\x00{excluded}]' + ("+" if len(columns) == 1 else "*")
    return pruned(
        source.replace("@HEADER@", _literal(shown))
        .replace("@ROW@", between.join(cells))
        .replace("@PLAIN@", plain)
    )


def _cell(name: str, kind: Any, delimiter: str) -> str:
    if kind in ("text", "integer", "number"):
        return str(kind)
    if isinstance(kind, str) or not isinstance(kind, Iterable):
        raise ConstrainError(
            f'header: the kind of {name!r} is "text", "integer", "number" or a list of texts, '
            f"found {kind!r}"
        )
    options = _texts(f"header: the texts of {name!r}", kind)
    if not options:
        raise ConstrainError(f"header: the list of the texts of {name!r} is empty")
    return f"( {_either([_csv_cell(option, delimiter) for option in options])} )"


def _csv_cell(value: str, delimiter: str) -> str:
    """A cell as it is written, quoted where that is needed; an empty one is quoted as well."""
    if "\0" in value:
        raise ConstrainError(f"header: NUL cannot be written: {value!r}")
    if value and not re.search(r'["\r\n]', value) and delimiter not in value:
        return value
    return '"' + value.replace('"', '""') + '"'


def xml(
    source: str, names: Iterable[str], root: str | None = None, attributes: Iterable[str] = ()
) -> str:
    elements = _texts("names", names, _XML_NAME)
    if not elements:
        raise ConstrainError("names: expected at least one element")
    if root is not None and root not in elements:
        raise ConstrainError(f"root: {root!r} is not among the names {elements!r}")
    found = _texts("attributes", attributes, _XML_NAME)
    written = "".join(f"( {_literal(f' {name}=')} attribute )? " for name in found)
    rules = []
    for index, name in enumerate(elements):
        start, end = _literal(f"<{name}"), _literal(f"</{name}>")
        rules.append(f'element-{index} ::= {start} {written}( "/>" | ">" content {end} )')
    everyone = [f"element-{index}" for index in range(len(elements))]
    outermost = "element" if root is None else everyone[elements.index(root)]
    if not found:
        source = re.sub(r"^attribute +::=.*\n", "", source, flags=re.MULTILINE)
    return (
        source.replace("@ROOT@", outermost)
        .replace("@ELEMENTS@", " | ".join(everyone))
        .replace("@RULES@", "\n".join(rules))
    )


def sql(source: str, tables: Mapping[str, Iterable[str]] | None = None) -> str:
    if tables is None:
        return source
    if not isinstance(tables, Mapping) or not tables:
        raise ConstrainError("tables: expected a mapping from tables to lists of columns")
    _texts("tables", tables)
    columns = {name: _texts(f"tables: {name!r}", found) for name, found in tables.items()}
    for name, found in columns.items():
        if not found:
            raise ConstrainError(f"tables: {name!r} has no columns")
    reserved = {
        word
        for line in re.findall(r"^NOT_.*$", source, re.M)
        for word in re.findall(r"[a-z_]{2,}", line)
    }

    def named(name: str) -> str:
        """Bare in any case if it is a word that is not reserved, and in quotation marks."""
        if "\0" in name or not name:
            raise ConstrainError(f"tables: no database can have the name {name!r}")
        quoted = _lark_literal('"' + name.replace('"', '""') + '"')
        bare = _WORD.fullmatch(name) and name.lower() not in reserved
        return f"(/(?ai:{name})\\b/ | {quoted})" if bare else quoted

    def either(found: Iterable[str]) -> str:
        return " | ".join(map(named, found))

    every = list(dict.fromkeys(column for found in columns.values() for column in found))
    qualified = " | ".join(
        f'{named(name)} "." ({either(found)})' for name, found in columns.items()
    )
    rules = [
        f"reference: column | {qualified}",
        f"table: {either(columns)}",
        f"column: {either(every)}",
        "fresh: WORD | QUOTED",
    ]
    before, rest = source.split("// -- names --\n")
    after = rest.split("// -- end of names --\n")[1]
    # Subqueries in FROM and other names for tables would hide the columns, so there are none.
    parts = [
        (r" \(AS alias \| GAP alias\)\?", ""),
        (r"\(WITH common.*?\)\? ", ""),
        (r"(?m)^common:.*\n", ""),
        (r'\(table \| "\(" query "\)"\)', "table"),
        (r"\n +\| SELECT \(DISTINCT \| ALL\)\? value .*", ""),
    ]
    if len(tables) == 1:
        parts.append((r" join\*", ""))
        parts.append((r"(?m)^join:.*\n(?: +\|.*\n)*", ""))
    for part, other in parts:
        before, count = re.subn(part, other, before)
        if count != 1:
            raise ConstrainError(f"sql.lark was changed: it has {part!r} {count} times")
    return pruned(before + "\n".join(rules) + "\n" + after)


def pruned(text: str) -> str:
    """A grammar without the definitions of one line that nothing else in it names."""
    while True:
        names = re.findall(r"[\w-]+", re.sub(r"(?m)^(?:#|//).*", "", text))
        once = {name for name, count in Counter(names).items() if count == 1} - {"root", "start"}
        kept = [
            line
            for line in text.split("\n")
            if not (found := _DEFINED.match(line)) or found[1] not in once
        ]
        if len(kept) == text.count("\n") + 1:
            return text
        text = "\n".join(kept)


_DEFINED = re.compile(r"([\w-]+)(?:: | +::= )")


def _lark_literal(text: str) -> str:
    return '"' + "".join(_ESCAPED.get(c, c) for c in text) + '"'


_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _literal(text: str) -> str:
    """A literal of GBNF."""
    shown = "".join(
        _ESCAPED[c] if c in _ESCAPED else f"\\x{ord(c):02x}" if ord(c) < 32 else c for c in text
    )
    return f'"{shown}"'


def _either(texts: Iterable[str]) -> str:
    return " | ".join(map(_literal, texts))


def _texts(what: str, values: Any, pattern: re.Pattern[str] | None = None) -> list[str]:
    """A list of different texts, each of which `pattern` matches.  Raises ConstrainError."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ConstrainError(f"{what}: expected a list of texts, found {values!r}")
    found = list(values)
    for value in found:
        if not isinstance(value, str):
            raise ConstrainError(f"{what}: expected texts, found {value!r}")
        if pattern is not None and not pattern.fullmatch(value):
            raise ConstrainError(f"{what}: {value!r} is not a name (letters, digits and _)")
    if len(set(found)) < len(found):
        raise ConstrainError(f"{what}: a text is given twice in {found!r}")
    return found
