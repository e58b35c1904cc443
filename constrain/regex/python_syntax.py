"""Python's regular expressions, matching the whole text as `re.fullmatch` does.

The pattern is read by the parser of the running Python's module `re`, so that its syntax is exactly
Python's; the tree is translated.  Lazy quantifiers equal greedy ones, since the whole text is
matched.  Lookbehind is supported where it asks for one code point.  Backreferences, conditionals,
longer lookbehind, and atomic groups and possessive quantifiers (whose meaning depends on the order
in which a matcher tries things) are refused by name.

Cost: the parser takes most of it, some 50 to 200 microseconds for usual patterns.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

from constrain.errors import LimitExceededError, RegexError, UnsupportedError
from constrain.regex.charsets import (
    ANY,
    CharSet,
    complement,
    fold_case,
    from_python_class,
    union,
)
from constrain.regex.program import MAX_NESTING, MAX_REPEAT, ProgramBuilder

# The standard library's parser moved in Python 3.11; type checkers know neither place well.
_HOME = "re._" if sys.version_info >= (3, 11) else "sre_"
sre_constants: Any = import_module(f"{_HOME}constants")
sre_parse: Any = import_module(f"{_HOME}{'parser' if sys.version_info >= (3, 11) else 'parse'}")

__all__ = ["REFUSED", "behind_chars", "compile_python", "item_chars", "sre_constants", "sre_parse"]

_NEWLINE: CharSet = (10, 10)
_NOT_NEWLINE = complement(_NEWLINE)
_LOCAL_FLAGS = re.IGNORECASE | re.MULTILINE | re.DOTALL | re.ASCII | re.UNICODE | re.VERBOSE
REFUSED = {
    "GROUPREF": "backreference",
    "GROUPREF_EXISTS": "conditional group",
    "ATOMIC_GROUP": "atomic group",
    "POSSESSIVE_REPEAT": "possessive quantifier",
}
"""Operators of the parser that no automaton is made of, and their names."""
_CATEGORY_LETTERS = {"DIGIT": "d", "WORD": "w", "SPACE": "s"}
_CHARS = ("LITERAL", "NOT_LITERAL", "ANY", "IN")


def item_chars(op: str, argument: Any, flags: int) -> CharSet:
    """The code points of one item of the parser's tree: LITERAL, NOT_LITERAL, ANY or IN."""
    ascii_only = bool(flags & re.ASCII)

    def folded(chars: CharSet) -> CharSet:
        return fold_case(chars, ascii_only) if flags & re.IGNORECASE else chars

    if op == "LITERAL":
        return folded((argument, argument))
    if op == "NOT_LITERAL":
        return complement(folded((argument, argument)))
    if op == "ANY":
        return ANY if flags & re.DOTALL else _NOT_NEWLINE
    sets: list[CharSet] = []
    negative = False
    for item, value in argument:
        name = str(item)
        if name == "NEGATE":
            negative = True
        elif name == "LITERAL":
            sets.append((value, value))
        elif name == "RANGE":
            sets.append(tuple(value))
        else:  # CATEGORY: the parser knows no other
            words = str(value).removeprefix("CATEGORY_").split("_")
            chars = from_python_class(_CATEGORY_LETTERS[words[-1]], ascii_only)
            sets.append(complement(chars) if words[0] == "NOT" else chars)
    chars = folded(union(*sets)) if sets else ()
    return complement(chars) if negative else chars


def behind_chars(tree: Any, flags: int) -> tuple[CharSet | None, bool]:
    """What a lookbehind asks for: one of some code points, or also the start of the text.

    The set is None where it asks for something else.
    """
    branches = [tree]
    if len(tree) == 1 and str(tree[0][0]) == "BRANCH":
        branches = tree[0][1][1]
    sets: list[CharSet] = [()]
    at_start = False
    for branch in branches:
        if len(branch) != 1:
            return None, False
        op, argument = branch[0]
        name = str(op)
        if name == "AT" and str(argument).startswith("AT_BEGINNING"):
            if str(argument) == "AT_BEGINNING" and flags & re.MULTILINE:
                sets.append(_NEWLINE)
            at_start = True
        elif name in _CHARS:
            sets.append(item_chars(name, argument, flags))
        else:
            return None, False
    return union(*sets), at_start


class _Translator:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.build = ProgramBuilder()

    def unsupported(self, feature: str) -> UnsupportedError:
        return UnsupportedError(
            f"{feature} in the pattern {self.pattern!r} is not supported", feature=feature
        )

    def sequence(self, tree: Sequence[Any], flags: int) -> list[int]:
        return [self.item(str(op), argument, flags) for op, argument in tree]

    def node(self, tree: Sequence[Any], flags: int) -> int:
        return self.build.seq(self.sequence(tree, flags))

    def item(self, op: str, argument: Any, flags: int) -> int:
        build = self.build
        if op in _CHARS:
            return build.set(item_chars(op, argument, flags))
        if op in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, tree = argument
            return self.repeat(least, most, tree, flags)
        if op == "SUBPATTERN":
            _, added, removed, tree = argument
            return self.node(tree, (flags | added) & ~removed)
        if op == "BRANCH":
            return build.alt([self.node(tree, flags) for tree in argument[1]])
        if op == "AT":
            return self.at(str(argument), flags)
        if op in ("ASSERT", "ASSERT_NOT"):
            direction, tree = argument
            negative = op == "ASSERT_NOT"
            if direction < 0:
                return self.behind(tree, flags, negative)
            return build.look(self.node(tree, flags), negative=negative)
        if op == "FAILURE":
            return build.alt([])
        raise self.unsupported(REFUSED.get(op, op.lower()))

    def repeat(self, least: int, most: Any, tree: Sequence[Any], flags: int) -> int:
        if least > MAX_REPEAT:
            raise LimitExceededError(
                f"regular expression {self.pattern!r}: a repeat is longer than any text",
                limit="repeat",
            )
        bound = None if most is sre_constants.MAXREPEAT else int(most)
        return self.build.repeat(self.node(tree, flags), least, bound)

    def at(self, name: str, flags: int) -> int:
        build = self.build
        multiline = bool(flags & re.MULTILINE)
        if name == "AT_BEGINNING_STRING" or (name == "AT_BEGINNING" and not multiline):
            return build.behind((), start=True)
        if name == "AT_BEGINNING":
            return build.behind(_NEWLINE, start=True)
        if name == "AT_END_STRING":
            return build.end()
        newline = build.set(_NEWLINE)
        if name == "AT_END":
            # Without the flag m, `$` also holds before a line feed that ends the text.
            before = newline if multiline else build.seq([newline, build.end()])
            return build.alt([build.end(), build.look(before, negative=False)])
        if name in ("AT_BOUNDARY", "AT_NON_BOUNDARY"):
            word = from_python_class("w", bool(flags & re.ASCII))
            return build.boundary(word, negative=name == "AT_NON_BOUNDARY")
        raise self.unsupported(name.lower())

    def behind(self, tree: Any, flags: int, negative: bool) -> int:
        """Lookbehind for one code point, or for the start of the text."""
        narrowest, widest = tree.getwidth()
        if narrowest != widest:
            raise RegexError("look-behind requires fixed-width pattern", pattern=self.pattern)
        chars, at_start = behind_chars(tree, flags)
        if chars is None:
            raise self.unsupported("lookbehind")
        if negative:
            return self.build.behind(complement(chars), start=not at_start)
        return self.build.behind(chars, start=at_start)

    def top(self, tree: Sequence[Any], flags: int) -> int:
        """The whole pattern: anchors at its ends say nothing when the whole text is matched."""
        items = list(tree)
        if items and str(items[0][0]) == "AT" and str(items[0][1]).startswith("AT_BEGINNING"):
            del items[0]
        if items and str(items[-1][0]) == "AT" and str(items[-1][1]).startswith("AT_END"):
            items.pop()
        return self.node(items, flags)


@lru_cache(maxsize=4096)
def _compile(pattern: str, flags: int) -> array[int]:
    depth = _nesting(pattern)
    if depth > MAX_NESTING:
        raise LimitExceededError(
            f"regular expression: nesting too deep (more than {MAX_NESTING} groups)",
            limit="nesting",
        )
    try:
        tree = sre_parse.parse(pattern, flags)
        translator = _Translator(pattern)
        root = translator.top(tree, tree.state.flags)
    except re.error as error:
        raise RegexError(error.msg, pattern=pattern, position=error.pos) from error
    except (OverflowError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        raise LimitExceededError(
            f"regular expression: {'nesting too deep' if deep else 'a repeat is too long'}",
            limit="nesting" if deep else "repeat",
        ) from error
    return translator.build.finish(root)


def _nesting(pattern: str) -> int:
    """An upper bound of the nesting of groups, cheap enough to be taken before parsing."""
    if pattern.count("(") <= MAX_NESTING:
        return 0
    depth = deepest = 0
    for c in pattern:
        if c == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif c == ")":
            depth -= 1
    return deepest


def compile_python(pattern: str, flags: int = 0) -> array[int]:
    """The program of the texts that ``re.fullmatch(pattern, text, flags)`` accepts, an int32 array.

    `flags` are those of the module `re`: I, M, S, X, A.  The result must not be changed: equal
    patterns may share it.  Raises RegexError (malformed, with the position), UnsupportedError
    (backreference, atomic group, long lookbehind, ...) and LimitExceededError (nesting).
    """
    if int(flags) & ~int(_LOCAL_FLAGS):
        raise UnsupportedError(
            "flags other than I, M, S, X and A are not supported", feature="flags"
        )
    return _compile(pattern, int(flags))
