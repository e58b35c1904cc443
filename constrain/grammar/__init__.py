"""Grammars: from Lark's and llama.cpp's formats to programs that the core executes.

`parse_lark` and `parse_gbnf` read a text into one representation (`constrain.grammar.ir`);
`compile_grammar` makes it a network of automata over bytes (`network`, `flatten`) and that a
program (`program`).
"""

from __future__ import annotations

from constrain.grammar.gbnf import parse_gbnf
from constrain.grammar.ir import Grammar
from constrain.grammar.lark_syntax import parse_lark
from constrain.grammar.program import compile_grammar

__all__ = ["Grammar", "compile_grammar", "parse_gbnf", "parse_lark"]
