"""The shipped grammars, each with texts of its kind and with the real parser of its language.

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
from dataclasses import dataclass, field
from datetime import date, datetime, time
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

__all__ = ["SHIPPED", "Shipped", "TooLarge"]

Judge = Callable[[str], bool]


class TooLarge(Exception):
    """The real parser gives up for the size of a text, not for its form."""


@dataclass(frozen=True)
class Shipped:
    """A grammar with parameters, its judge, texts that it reads and texts that it refuses."""

    name: str
    judge: Judge
    texts: Sequence[str]
    refused: Sequence[str]
    parameters: dict[str, Any] = field(default_factory=dict)
    label: str = ""

    @property
    def id(self) -> str:
        """A name for reports."""
        return f"{self.name}-{self.label}" if self.label else self.name


# -- judges ------------------------------------------------------------------------------------


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


# -- texts -------------------------------------------------------------------------------------

_TABLES = {"city": ["name", "country", "population"]}
_SHOP = {"customer": ["id", "name"], "order": ["id", "customer id", "total"]}

SHIPPED: list[Shipped] = [
    Shipped(
        "arithmetic",
        is_arithmetic,
        ["1", "1 + 2*(3 - .5)/-4e-3", "2**-1 // 7 % 3", "((1))", "-+-1", "0.0 - 0"],
        ["", "1 +", "01", "1..2", "(1", "1 + + ", "x", "1 2", "1  + 2", "5 ** * 2"],
    ),
    Shipped(
        "arithmetic",
        is_arithmetic,
        ["x + y_2", "sqrt(x)", "max(x, 1, y_2*2) - sqrt(2)"],
        ["z", "sqrt", "sqrt()", "x y_2", "x(1)", "max(1,)"],
        {"names": ["x", "y_2"], "functions": ["sqrt", "max"]},
        "named",
    ),
    Shipped(
        "csv",
        csv_judge(["name", "age"]),
        [
            "name,age",
            "name,age\n",
            "name,age\nAda,36\r\n,\n",
            'name,age\n"a ""b"", \n",9',
            "name,age\né,x",
        ],
        ["", "age,name\n", "name,age\na\n", "name,age\na,b,c", 'name,age\na"b,1', "name,age\n\n"],
        {"header": ["name", "age"]},
    ),
    Shipped(
        "csv",
        csv_judge(
            ["id", "a;b", "price", "paid"],
            ";",
            id=lambda v: bool(re.fullmatch(r"-?(0|[1-9]\d*)", v, re.ASCII)),
            price=lambda v: bool(re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", v, re.ASCII)),
            paid=lambda v: v in ("yes", "no; not yet", ""),
        ),
        ['id;"a;b";price;paid\n1;x,y;2.50;yes\n-2;"";0;"no; not yet"\n3;;1;""'],
        [
            "id;a;b;price;paid\n",
            'id;"a;b";price;paid\n01;;1;yes',
            'id;"a;b";price;paid\n1;;1;maybe',
        ],
        {
            "header": {
                "id": "integer",
                "a;b": "text",
                "price": "number",
                "paid": ["yes", "no; not yet", ""],
            },
            "delimiter": ";",
        },
        "kinds",
    ),
    Shipped(
        "csv",
        csv_judge(["line"]),
        ['line\na\n""\nb', "line"],
        ["line\n\n", "line\na,b"],
        {"header": ["line"]},
        "single",
    ),
    Shipped(
        "dot",
        is_dot,
        [
            "graph {}",
            'digraph G { a -> b -> c [label="x\\"y", color=red]; subgraph s { rank=same; d } s -> e }',
            'strict graph "my graph" { node [shape=box]; a:n -- b:port:sw; { c; d } -- 1.5 ; x = y }',
            "digraph{a->{b c}}",
            "graph { // comment\n a -- b /* ** */ }",
        ],
        [
            "",
            "graph { a -> b }",
            "digraph { a -- b }",
            "graph { a -- }",
            "graph { node }",
            "graph {",
            "graph { x=ab=c }",
            "graph { a [b=cd=e] }",
            "digraph { x=ab->c }",
        ],
    ),
    Shipped(
        "email",
        is_email,
        ["ada@example.com", "a.b+c_d@mail-1.example.co.uk", "x!#$%&'*+/=?^_`{|}~-y@a.io"],
        [
            "",
            "ada",
            "@example.com",
            "a@b",
            "a..b@example.com",
            "a@-b.com",
            "a@b-.com",
            "a b@c.de",
            ".a@b.de",
            "a@b.c1",
        ],
    ),
    Shipped(
        "iso8601",
        is_iso8601,
        [
            "2024-02-29",
            "20240229",
            "2000-02-29T23:59:59.999999Z",
            "2024-W01-1",
            "2024W527",
            "12:30",
            "1230",
            "2024-01-31T00:00:00+05:30",
            "20240131T000000-0800",
            "P1Y2M3DT4H5M6.5S",
            "P2W",
            "PT1M",
            "P1M",
            "23:59:59,5-03",
        ],
        [
            "",
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-04-31",
            "24:00",
            "2024-1-1",
            "P",
            "PT",
            "P1S",
            "2024-01-01T",
            "2024-01-01T25:00",
            "12:60",
            "2024-W53-8",
            "20240101T10:00",
        ],
    ),
    Shipped(
        "json",
        is_json,
        [
            '{"a": [1, -2.5e+3, {"b\\"c": null}], "d" : true}',
            " [ ] ",
            '"\\u00e9\\ud83d\\ude00"',
            "0",
            '{"": {"": []}}',
            "[[[[1]]]]",
            '"é日本😀"',
            "-0.0E-0",
        ],
        [
            "",
            "[1,2,]",
            "01",
            "{'a': 1}",
            '"\n"',
            '"\\x"',
            "[1 2]",
            "nul",
            "+1",
            "1.",
            ".5",
            "{,}",
            '"\\ud800"',
            "NaN",
        ],
    ),
    Shipped(
        "jsonl",
        is_jsonl,
        ['{"a": 1}\n{"a": 2}\n', "1", "[]\r\n[ ]", '"\\n"\n'],
        ["", "\n", "1\n\n2", "{\n}", "1 2"],
    ),
    Shipped(
        "python",
        is_python,
        [
            "",
            "x = 1\n",
            "# only a comment",
            "import os, sys as s\nfrom . import a\nfrom ...b.c import (d as e, f,)\n",
            "def f(a, b=1, /, c=2, *args, d, e=3, **kw) -> int:\n    '''Doc.'''\n\n    return a\n",
            "class A(B, metaclass=M):\n    x: int = 3\n    # note\n\n    @p.setter\n    async def f(self):\n        yield\n",
            "if x:\n    pass\nelif y: z\nelse:\n    while 1:\n        break\n    else:\n        q()\n",
            "try:\n    a\nexcept (B, C) as e:\n    raise D from e\nexcept:\n    pass\nelse: x\nfinally:\n    y",
            "for i, *j in range(3), 4:\n    a[i], b.c = j = yield\n    d += 1; del a[0], (b)\n",
            "with open(f) as g, h: x = [\n  1, # one\n\n  2]\n",
            "match p:\n    case [1, *_] | {'a': A(b=-1), **r} if z:\n        q\n    case _: pass\n",
            "async def f():\n    async with a as b: await c\n    async for x in y: pass\n    return [z async for z in b]\n",
            "x = 1 + \\\n    2\nassert x, f'{x!r:>{w}} {{}}'\n",
            "global a, b; nonlocal c\nprint(*a, sep='', **k)\nlambda: (yield)\n",
        ],
        [
            "x = = 1",
            "if x:\n",
            "if x:\npass",
            "  x",
            "def f(a=1, b): pass",
            "f() = 1",
            "x = 1 \\\n",
            "class: pass",
            "return = 1",
            "for x in : pass",
            "try:\n    a\n",
            "else: b",
            "import a.b.",
            "from a import",
            "x +=",
            "1 = x",
            "if x:\n        y\n    z\n",
            "a b",
            "pass x",
            "def f(*): pass",
            "match x:\n    pass\n",
            "'abc",
            "'''abc'",
            "(1, 2",
            "x = (1]\n",
            "del f()",
            "with a as b(): c",
        ],
        {"depth": 2},
    ),
    Shipped(
        "python-expression",
        is_expression,
        [
            "a",
            "1 if x else -2 ** ~y",
            "[x for x in y if z if w for (a, *b), c in d]",
            "{**a, 1: 2}",
            "{*a, b := 3}",
            "lambda a, /, b=1, *, c, **d: (yield)",
            "f(*a, b, c=1, *d, **e)",
            "a[1:2, ::3, ...]",
            "'a' \"b\" u'c' r'\\d' f'{x}'",
            "b'\\x00' rb'\\d'",
            "0xFF + 0o17 + 0b1_0 + 1_000.5e-3j + .5 + 1.",
            "not a in b is not c not in d < e != f",
            "(\n1, # one\n\n)",
            "a.b.c(x)(y)[z].d",
            "await x",
            "f'{a.b[0]:>{w}}{c!r}{{}}'",
            "'''a\n''' \"\"\"b\"\"\"",
            "()",
            "x if y else lambda: z",
            "1..real",
            "f(x for x in y)",
            "a,",
            "naïve + 日本",
            "{a: b for a, b in c}",
        ],
        [
            "",
            "a b",
            "1 +",
            "notx y",
            "(a",
            "[1,,2]",
            "f(a=1, b)",
            "lambda: ",
            "lambda a=1, b: c",
            "x := 1",
            "{1: 2, 3}",
            "0123",
            "1__0",
            "0x",
            "1.real",
            "1. real",
            "'\\x1'",
            "b'é'",
            "'a' b'c'",
            "f(**a, *b)",
            "*a",
            "a if b",
            "for",
            "x = 1",
            "a..b",
            "f(x for x in y, 1)",
            "aif b else c",
            "aor b",
            "[xfor x in y]",
            "'''a' + '''b'''",
            "'abc",
            "'''a''",
            '""""',
            "a not b",
            "1a",
            "not",
            "x[]",
            "yield x",
            "{**a for a in b}",
            "1 + not x",
        ],
    ),
    Shipped(
        "regex",
        is_regex,
        [
            "",
            r"^\d{3}-\d{4}$",
            r"(?i)[a-z_][a-z0-9_-]*?",
            r"(?:a|b|)+c{2,}d{,3}e{1,12}",
            r"\bfoo(?=bar)(?!x)",
            r"[^\]\-\d]+",
            r"[-a]|[a-]|\.\*",
            r"\x41\u00e9é",
            "(?s:.*)",
            "()",
        ],
        [
            "(",
            ")",
            "a**",
            "*",
            "[z-a]",
            "[]",
            "a{3,2}",
            "(?P<a>)",
            "\\",
            r"\q",
            "[a",
            "(?a",
            "^*",
            r"\b+",
            "a{1",
            "(?<=a)b",
            r"\1",
        ],
    ),
    Shipped(
        "semver",
        is_semver,
        ["1.2.3", "0.0.0-0", "1.0.0-alpha.1", "1.0.0-0a.-.x-y+001.b", "10.20.30+5"],
        ["", "1.2", "01.2.3", "1.2.3-01", "1.2.3-", "1.2.3+", "v1.2.3", "1.2.3-a..b", "1.2.3+a+b"],
    ),
    Shipped(
        "sql",
        sql_judge(),
        [
            "SELECT 1",
            "select Name, count(*) as n from People p where Age >= 18 and City in ('Rome', 'Oslo') "
            "group by Name having count(*) > 1 order by n desc nulls last limit 10 offset 5;",
            "SELECT DISTINCT a.x, b.* FROM a LEFT OUTER JOIN b ON a.id = b.a_id CROSS JOIN c, d "
            "WHERE NOT (a.x IS NOT NULL OR b.y BETWEEN 1 AND 2 + 3) AND c.name NOT LIKE 'x''%'",
            "WITH t (a, b) AS (SELECT 1, 2), u AS (SELECT * FROM t) SELECT a FROM u UNION ALL SELECT b FROM t "
            "EXCEPT SELECT 3 ORDER BY 1",
            'SELECT "order", -x * (y - - 2) / 4 % 5 || \'a\' FROM "my table" WHERE EXISTS (SELECT 1 FROM z)',
            "SELECT CASE x WHEN 1 THEN 'one' ELSE CASE WHEN y THEN NULL END END, CAST(a AS REAL) FROM t",
            "SELECT coalesce(sum(DISTINCT x), 0), round(avg(y), 2), rank() OVER (PARTITION BY z ORDER BY w) "
            "FROM (SELECT * FROM t) AS s JOIN u USING (k, l) GROUP BY z, w",
            "SELECT max(date) FROM log WHERE lower(name) = 'x' AND id NOT IN (SELECT id FROM old)",
        ],
        [
            "",
            "SELECT",
            "SELECT FROM t",
            "SELECT * FROM",
            "SELECT a FROM t WHERE",
            "SELECT a--b",
            "SELECT a b c",
            "SELECT * FROM select",
            "SELECTa FROM t",
            "SELECT 'a",
            "SELECT * FROM t LIMIT x",
            "UPDATE t SET a = 1",
            "SELECT 1; SELECT 2",
            "SELECT a FROM t GROUP BY",
            "SELECT 1a",
            "SELECT * FROM t JOIN",
            "DROP TABLE t",
            "SELECT count() FROM t",
            "WITH AAS (SELECT 1) SELECT 1",
            "SELECT CASE WHEN a THEN bEND FROM t",
            "SELECT a FROM t ORDER BY a LIMIT 1 WHERE b",
        ],
    ),
    Shipped(
        "sql",
        sql_judge(_TABLES),
        [
            "SELECT name FROM city WHERE population > 1000000 ORDER BY population DESC LIMIT 3",
            'select CITY.Name, "country", count(*) AS n from "city" group by country, name',
            "SELECT country FROM city WHERE population = (SELECT max(population) FROM city);",
        ],
        [
            "SELECT mayor FROM city",
            "SELECT * FROM town",
            "SELECT town.name FROM city",
            "SELECT c.name FROM city c",
            "SELECT name FROM city WHERE names = 1",
        ],
        {"tables": _TABLES},
        "table",
    ),
    Shipped(
        "sql",
        sql_judge(_SHOP),
        [
            'SELECT customer.name, sum(total) FROM customer JOIN "order" ON customer.id = "customer id" '
            "GROUP BY customer.name",
            "SELECT id FROM customer WHERE id + 10 < 25 AND name LIKE 'A%' ORDER BY 1",
        ],
        ["SELECT total FROM order", "SELECT 1", "SELECT customer.total FROM customer"],
        {"tables": _SHOP},
        "tables",
    ),
    Shipped(
        "url",
        is_url,
        [
            "https://example.com",
            "http://user:pa%20ss@www.example.co.uk:8080/a/b;c=1/%C3%A9?q=1&r%5B%5D=2",
            "ftp://localhost/file.txt#top",
            "http://127.0.0.1:65535/",
            "wss://[2001:db8::1]/x?y#z",
            "https://[::]",
            "http://[::ffff:1.2.3.4]:80",
            "https://a-b.c--d.example/?a=b/c?d",
        ],
        [
            "",
            "example.com",
            "http://",
            "http://a",
            "https://exa mple.com",
            "http://a.b:99999",
            "http://[1::2::3]",
            "http://256.1.1.1",
            "https://example.com/%zz",
            "mailto:a@b.de",
            "http://[1:2]",
            "http://-a.com",
            "https://example.com/a b",
            "HTTP//x.com",
        ],
    ),
    Shipped(
        "xml",
        xml_judge(["p", "b", "ul", "li"]),
        [
            "<p/>",
            "<p>a <b>c</b> d<b/></p>",
            "<ul><li>1 &lt; 2 &amp; é</li><li/></ul>",
            "<b>&#65;&#x42; 'x' \"y\"\n</b>",
        ],
        [
            "",
            "text",
            "<p>",
            "<p></b>",
            "<p><b></p></b>",
            "<i/>",
            "<p/><p/>",
            "<p>&</p>",
            "<p>&nbsp;</p>",
            "<p>a < b</p>",
            "<p a='1'/>",
            "<p>]]></p>",
        ],
        {"names": ["p", "b", "ul", "li"]},
    ),
    Shipped(
        "xml",
        xml_judge(["doc", "x"], "doc"),
        ["<doc/>", '<doc id="1"><x id="a&quot;b\'" kind=\'"\'>t</x><x kind=""/></doc>'],
        ["<x/>", '<doc kind="a" id="1"/>', '<doc id="1" id="2"/>', '<doc id="<"/>', "<doc id=1/>"],
        {"names": ["doc", "x"], "root": "doc", "attributes": ["id", "kind"]},
        "attributes",
    ),
]
