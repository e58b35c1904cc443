"""Regular expressions: from patterns to programs that the core executes.

`compile_ecma` is for the patterns of JSON Schema, which are found anywhere in the text;
`compile_python` is for Python's own syntax and the whole text; `compile_format` is for the named
formats of JSON Schema.  All give an int32 array, documented in `constrain.regex.program`.
"""

from __future__ import annotations

from constrain.regex.ecma import compile_ecma
from constrain.regex.formats import FORMATS, NARROWED, compile_format
from constrain.regex.python_syntax import compile_python

__all__ = ["FORMATS", "NARROWED", "compile_ecma", "compile_format", "compile_python"]
