"""Grammars: from Lark's and llama.cpp's formats to programs that the core executes.

`read_lark`, `read_gbnf` and `read_xgrammar` add the rules of a text to a `GrammarBuilder`, beside the other parts of a
constraint; `compile_grammar` makes what was built (`constrain.grammar.ir`) a network of automata
over bytes (`network`, `flatten`) and that a program (`program`).
"""

from __future__ import annotations

from constrain.grammar.builder import GrammarBuilder
from constrain.grammar.gbnf import read_gbnf
from constrain.grammar.ir import Grammar
from constrain.grammar.lark_syntax import read_lark
from constrain.grammar.program import compile_grammar
from constrain.grammar.regular import choice_expression, regex_expression
from constrain.grammar.strings import StringGrammarBuilder, string_program
from constrain.grammar.xgrammar_ebnf import read_xgrammar

__all__ = [
    "Grammar",
    "GrammarBuilder",
    "StringGrammarBuilder",
    "choice_expression",
    "compile_grammar",
    "read_gbnf",
    "read_lark",
    "read_xgrammar",
    "regex_expression",
    "string_program",
]
