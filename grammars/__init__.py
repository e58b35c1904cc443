"""Grammars that come with constrain: formats and languages, ready to be compiled.

::

    constrain.grammars.names()                                   # what there is
    spec = constrain.grammars.load("iso8601")
    spec = constrain.grammars.load("csv", header=["name", "age"])
    spec = constrain.grammars.load("sql", tables={"city": ["name", "population"]})
    compiled = constrain.compile(spec, vocabulary)

Each grammar is a file beside this module, in Lark's syntax or in GBNF; its header says what it
reads, which parameters it has and what it leaves out. `text` gives the whole grammar, to be changed
or used elsewhere. Grammars in Lark's syntax need the package `lark`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from constrain.errors import ConstrainError
from constrain.grammars import _python, _templates
from constrain.specs import Gbnf, Lark

__all__ = ["GrammarInfo", "info", "load", "names", "text"]

_FOLDER = Path(__file__).parent
_Maker = Callable[..., str]

# Makers take the text of the file and the parameters; None: the file as it is.
_GRAMMARS: dict[str, tuple[str, _Maker | None]] = {
    "arithmetic": ("arithmetic.gbnf", _templates.arithmetic),
    "csv": ("csv.gbnf", _templates.csv),
    "dot": ("dot.lark", None),
    "email": ("email.gbnf", None),
    "iso8601": ("iso8601.gbnf", None),
    "json": ("json.gbnf", None),
    "jsonl": ("jsonl.gbnf", None),
    "python": ("python.lark", _python.program),
    "python-expression": ("python.lark", _python.expression),
    "regex": ("regex.gbnf", None),
    "semver": ("semver.gbnf", None),
    "sql": ("sql.lark", _templates.sql),
    "url": ("url.gbnf", None),
    "xml": ("xml.gbnf", _templates.xml),
}


@dataclass(frozen=True, slots=True)
class GrammarInfo:
    """What a grammar is.

    Attributes:
        name: as `load` takes it.
        format: the syntax of its text, "lark" or "gbnf".
        title: one line.
        about: the whole header: what it reads, its parameters, what it leaves out.
        parameters: name of a parameter to what it is; None where it may be left out.
        required: parameters that must be given.
    """

    name: str
    format: Literal["lark", "gbnf"]
    title: str
    about: str
    parameters: Mapping[str, str]
    required: tuple[str, ...]


def names() -> list[str]:
    """The names of all grammars, sorted."""
    return sorted(_GRAMMARS)


def info(name: str) -> GrammarInfo:
    """The description of a grammar.  Raises ConstrainError for an unknown name."""
    return _info(_known(name))


def text(name: str, **parameters: Any) -> str:
    """The text of a grammar, in the syntax that `info` names.

    Raises ConstrainError for an unknown name, and for parameters that are unknown, missing or
    malformed.
    """
    file, maker = _GRAMMARS[_known(name)]
    about = _info(name)
    for parameter in parameters:
        if parameter not in about.parameters:
            known = ", ".join(about.parameters) or "none"
            raise ConstrainError(
                f"the grammar {name!r} has no parameter {parameter!r} (it has: {known})"
            )
    for parameter in about.required:
        if parameter not in parameters:
            raise ConstrainError(
                f"the grammar {name!r} needs the parameter {parameter!r}: "
                f"{about.parameters[parameter]}"
            )
    source = _read(file)
    return source if maker is None else maker(source, **parameters)


def load(name: str, **parameters: Any) -> Lark | Gbnf:
    """The spec of a grammar, to be given to `constrain.compile`.

    Equal arguments give equal specs, and each call a new one: keep it, or what is compiled from it.

    Raises ConstrainError as `text` does.
    """
    found = text(name, **parameters)
    return Lark(found) if info(name).format == "lark" else Gbnf(found)


def _known(name: str) -> str:
    if name not in _GRAMMARS:
        raise ConstrainError(f"there is no grammar {name!r}: there are {', '.join(names())}")
    return name


@cache
def _read(file: str) -> str:
    return (_FOLDER / file).read_text(encoding="utf-8")


@cache
def _info(name: str) -> GrammarInfo:
    file, maker = _GRAMMARS[name]
    about = header(_read(file))
    if maker is not None and maker.__doc__:
        # Two grammars may share a file: the maker's own words tell them apart.
        about = "\n".join(line.strip() for line in maker.__doc__.strip().split("\n"))
    found = re.findall(r"^Parameter (\w+)(=.*(?:\n(?!Parameter |Reads |Leaves ).*)*)", about, re.M)
    parameters = {key: key + " ".join(rest.split()) for key, rest in found}
    required = _templates.REQUIRED.get(name, ())
    return GrammarInfo(
        name,
        "lark" if file.endswith(".lark") else "gbnf",
        about.split("\n")[0],
        about,
        MappingProxyType(parameters),
        required,
    )


def header(source: str) -> str:
    """The comment at the start of a grammar, without its marks."""
    lines = []
    for line in source.split("\n"):
        if not line.startswith(("#", "//")):
            break
        lines.append(line.lstrip("#/").removeprefix(" "))
    return "\n".join(lines).strip()
