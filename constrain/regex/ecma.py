"""The regular expressions of JSON Schema: ECMA-262, searching anywhere in the text.

`compile_ecma` reads a pattern as ECMA-262 does with the flag ``u``, but is as lenient as its Annex B
where patterns in the wild need it and nothing else can be meant: punctuation may be escaped, ``]``,
``{`` and ``}`` may stand alone, a class may contain ``\\d-x``.  Escaped letters without a meaning in
ECMA-262 (``\\A``, ``\\Z``, ``\\h``) are refused, since other dialects give them one.  From other
dialects it takes ``(?P<name>...)`` and flags at the very start, ``(?i)``; from newer editions,
``(?i:...)``.

Every group, quantifier and lookahead is expressed exactly; there is no matching order, so lazy
quantifiers equal greedy ones.  Lookbehind is supported where it asks for one code point.
Backreferences and longer lookbehind describe no regular language, or none that is worth the price:
they are refused by name.

Reading takes one pass with an explicit stack; typical patterns take some 20 microseconds.
"""

from __future__ import annotations

import re
from array import array
from functools import lru_cache

from constrain.errors import LimitExceededError, RegexError, UnsupportedError
from constrain.regex.charsets import (
    ANY,
    DIGITS,
    ECMA_LINE_TERMINATORS,
    ECMA_SPACE,
    WORD,
    CharSet,
    complement,
    fold_case,
    property_set,
    union,
)
from constrain.regex.program import MAX_NESTING, MAX_REPEAT, ProgramBuilder

__all__ = ["compile_ecma", "ecma_node"]

_DOT = complement(ECMA_LINE_TERMINATORS)
_CLASS_ESCAPES: dict[str, CharSet] = {
    "d": DIGITS,
    "D": complement(DIGITS),
    "w": WORD,
    "W": complement(WORD),
    "s": ECMA_SPACE,
    "S": complement(ECMA_SPACE),
}
_CONTROL_ESCAPES = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_SPECIAL = frozenset("\\^$.*+?()[]{}|")
_QUANTIFIER = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_FLAGS = re.compile(r"\(\?([a-zA-Z]+)\)")
_MODIFIERS = re.compile(r"\?([ims]*)(?:-([ims]*))?:")
_NAME = re.compile(r"\?P?<([^\W\d]|\$)[\w$]*>")
_HEX2 = re.compile(r"[0-9A-Fa-f]{2}")
_HEX4 = re.compile(r"[0-9A-Fa-f]{4}")
_LOW_SURROGATE = re.compile(r"\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})")
_BRACED = re.compile(r"\{([0-9A-Fa-f]+)\}")
_PROPERTY = re.compile(r"\{(\^?)([A-Za-z0-9_=]+)\}")


class _Group:
    """An open group: what it is, what came before it, and the flags to restore behind it."""

    __slots__ = ("branches", "flags", "items", "kind", "position")

    def __init__(
        self, kind: str, position: int, items: list[int], branches: list[list[int]], flags: str
    ) -> None:
        self.kind = kind
        self.position = position
        self.items = items
        self.branches = branches
        self.flags = flags


class _Parser:
    def __init__(self, pattern: str, build: ProgramBuilder | None = None) -> None:
        self.pattern = pattern
        self.at = 0
        self.flags = ""
        self.build = build or ProgramBuilder()
        # A group that stands alone in a branch gives that branch its alternatives.
        self.alternatives: dict[int, list[list[int]]] = {}
        self.anchored: set[int] = set()  # nodes that match at the start of the text only
        self.caret = -1
        self.dollar = -1

    def error(self, message: str, position: int) -> RegexError:
        return RegexError(message, pattern=self.pattern, position=position)

    def unsupported(self, feature: str, position: int) -> UnsupportedError:
        return UnsupportedError(
            f"{feature} at position {position} of the pattern {self.pattern!r} is not supported",
            feature=feature,
        )

    # Sets and characters, with the flag i.

    def set(self, chars: CharSet) -> int:
        return self.build.set(fold_case(chars) if "i" in self.flags else chars)

    def char(self, code_point: int) -> int:
        if "i" in self.flags:
            return self.build.set(fold_case((code_point, code_point)))
        return self.build.char(code_point)

    # The whole pattern.

    def node(self) -> int:
        """The pattern as a node, matching where it stands."""
        return self.build.alt([self.build.seq(items) for items in self.parse()])

    def program(self) -> array[int]:
        """The pattern as a program that searches for it."""
        return self.finish(self.parse())

    def parse(self) -> list[list[int]]:
        """The nodes of each alternative."""
        pattern = self.pattern
        size = len(pattern)
        build_char = self.build.char
        start_flags = _FLAGS.match(pattern)
        if start_flags:
            for flag in start_flags[1]:
                if flag not in "imsu":
                    raise self.error(f"unknown flag {flag!r}", pattern.index(flag))
            self.flags = "".join(f for f in "ims" if f in start_flags[1])
            self.at = start_flags.end()
        stack: list[_Group] = []
        items: list[int] = []
        branches: list[list[int]] = []
        while self.at < size:
            position = self.at
            c = pattern[position]
            self.at += 1
            repeatable = True
            if c not in _SPECIAL:
                node = self.char(ord(c)) if self.flags else build_char(ord(c))
            elif c == "\\":
                node, repeatable = self.escape(position)
            elif c == "[":
                node = self.char_class(position)
            elif c == ".":
                node = self.build.set(ANY if "s" in self.flags else _DOT)
            elif c == "|":
                branches.append(items)
                items = []
                continue
            elif c == "(":
                if len(stack) == MAX_NESTING:
                    raise LimitExceededError(
                        f"regular expression: nesting too deep (more than {MAX_NESTING} groups)"
                        f" at position {position}",
                        limit="nesting",
                    )
                group = _Group("", position, items, branches, self.flags)
                self.open(group)
                stack.append(group)
                items, branches = [], []
                continue
            elif c == ")":
                if not stack:
                    raise self.error("unbalanced parenthesis", position)
                group = stack.pop()
                branches.append(items)
                node = self.close(group, branches)
                items, branches = group.items, group.branches
                self.flags = group.flags
                repeatable = not group.kind.startswith("behind")
            elif c == "^":
                node, repeatable = self.start(), False
            elif c == "$":
                node, repeatable = self.end(), False
            elif c in "*+?" or (c == "{" and _QUANTIFIER.match(pattern, position)):
                raise self.error("nothing to repeat", position)
            else:  # ] { }
                node = self.char(ord(c))
            if self.at < size and pattern[self.at] in "*+?{":
                node = self.quantifier(node, repeatable)
            items.append(node)
        if stack:
            raise self.error("missing ), unterminated group", stack[-1].position)
        branches.append(items)
        return branches

    def finish(self, branches: list[list[int]]) -> array[int]:
        """Searching: a branch that begins with ``^`` or ends with ``$`` needs no margin there."""
        build = self.build
        anchored: list[int] = []
        floating: list[int] = []
        todo = branches[::-1]
        while todo:
            items = todo.pop()
            if len(items) == 1 and items[0] in self.alternatives:
                todo.extend(self.alternatives[items[0]][::-1])
                continue
            parts = list(items)
            at_start = bool(parts) and parts[0] in self.anchored
            if at_start and parts[0] == self.caret:
                del parts[0]
            if parts and parts[-1] == self.dollar:
                parts.pop()
            else:
                parts.append(build.anything())
            (anchored if at_start else floating).append(build.seq(parts))
        if floating:
            anchored.append(build.seq([build.anything(), build.alt(floating)]))
        return build.finish(build.alt(anchored))

    # Assertions.

    def start(self) -> int:
        if "m" in self.flags:
            return self.build.behind(ECMA_LINE_TERMINATORS, start=True)
        self.caret = self.build.behind((), start=True)
        self.anchored.add(self.caret)
        return self.caret

    def end(self) -> int:
        if "m" in self.flags:
            newline = self.build.look(self.build.set(ECMA_LINE_TERMINATORS), negative=False)
            return self.build.alt([self.build.end(), newline])
        self.dollar = self.build.end()
        return self.dollar

    # Groups.

    def open(self, group: _Group) -> None:
        """Reads what follows the opening parenthesis; sets the group's kind."""
        pattern = self.pattern
        at = self.at
        if not pattern.startswith("?", at):
            group.kind = "group"
            return
        for prefix, kind in (
            ("?:", "group"),
            ("?=", "ahead"),
            ("?!", "not ahead"),
            ("?<=", "behind"),
            ("?<!", "behind not"),
        ):
            if pattern.startswith(prefix, at):
                group.kind = kind
                self.at = at + len(prefix)
                return
        group.kind = "group"
        name = _NAME.match(pattern, at)
        if name:
            self.at = name.end()
            return
        modifiers = _MODIFIERS.match(pattern, at)
        if modifiers:
            flags = (set(self.flags) | set(modifiers[1])) - set(modifiers[2] or "")
            self.flags = "".join(sorted(flags))
            self.at = modifiers.end()
            return
        for prefix, feature in (
            ("?P=", "backreference"),
            ("?>", "atomic group"),
            ("?(", "conditional group"),
            ("?R", "recursion"),
            ("?#", "comment"),
            ("?|", "branch reset group"),
        ):
            if pattern.startswith(prefix, at):
                raise self.unsupported(feature, group.position)
        if _FLAGS.match(pattern, group.position):
            raise self.error("flags not at the start of the pattern", group.position)
        if pattern.startswith(("?<", "?P<"), at):
            raise self.error("bad group name", at)
        raise self.error("unknown kind of group", group.position)

    def close(self, group: _Group, branches: list[list[int]]) -> int:
        build = self.build
        if group.kind.startswith("behind"):
            return self.behind(group, branches)
        node = build.alt([build.seq(items) for items in branches])
        if group.kind == "ahead":
            return build.look(node, negative=False)
        if group.kind == "not ahead":
            return build.look(node, negative=True)
        if all(items and items[0] in self.anchored for items in branches):
            self.anchored.add(node)
        if len(branches) > 1 or len(branches[0]) > 1:
            self.alternatives[node] = branches
        return node

    def behind(self, group: _Group, branches: list[list[int]]) -> int:
        chars: list[CharSet] = []
        at_start = False
        for items in branches:
            if len(items) == 1 and items[0] in self.build.set_of:
                chars.append(self.build.set_of[items[0]])
            elif len(items) == 1 and items[0] == self.caret:
                at_start = True
            else:
                raise self.unsupported("lookbehind", group.position)
        asked = union(*chars) if chars else ()
        if group.kind == "behind":
            return self.build.behind(asked, start=at_start)
        return self.build.behind(complement(asked), start=not at_start)

    def quantifier(self, node: int, repeatable: bool) -> int:
        pattern = self.pattern
        position = self.at
        c = pattern[position]
        if c == "{":
            bounds = _QUANTIFIER.match(pattern, position)
            if not bounds:
                return node
            self.at = bounds.end()
            least = int(bounds[1])
            most = least if not bounds[2] else int(bounds[3]) if bounds[3] else None
            if most is not None and most < least:
                raise self.error("min repeat greater than max repeat", position)
            if least > MAX_REPEAT:
                raise LimitExceededError(
                    f"regular expression: the repeat at position {position} is longer than any text",
                    limit="repeat",
                )
        else:
            self.at += 1
            least, most = (1, None) if c == "+" else (0, 1) if c == "?" else (0, None)
        if not repeatable:
            raise self.error("nothing to repeat", position)
        if pattern.startswith("?", self.at):
            self.at += 1
        if self.at < len(pattern):
            following = pattern[self.at]
            if following in "*+?" or (following == "{" and _QUANTIFIER.match(pattern, self.at)):
                if following == "+":
                    raise self.unsupported("possessive quantifier", self.at)
                raise self.error("nothing to repeat", self.at)
        repeated = self.build.repeat(node, least, most)
        if least > 0 and node in self.anchored:
            self.anchored.add(repeated)
        return repeated

    # Escapes.

    def escape(self, position: int) -> tuple[int, bool]:
        """An escape outside of classes: the node, and whether it may be repeated."""
        c = self.pattern[self.at : self.at + 1]
        if c in ("b", "B"):
            self.at += 1
            return self.build.boundary(WORD, negative=c == "B"), False
        if c in "123456789" and c:
            raise self.unsupported("backreference", position)
        if c == "k" and self.pattern.startswith("<", self.at + 1):
            raise self.unsupported("backreference", position)
        value = self.escaped(position)
        return (self.char(value) if isinstance(value, int) else self.set(value)), True

    def escaped(self, position: int) -> int | CharSet:
        """What an escape stands for, in a class and outside: a code point or a set."""
        pattern = self.pattern
        c = pattern[self.at : self.at + 1]
        if not c:
            raise self.error("trailing backslash", position)
        self.at += 1
        chars = _CLASS_ESCAPES.get(c)
        if chars is not None:
            return chars
        code_point = _CONTROL_ESCAPES.get(c)
        if code_point is not None:
            return code_point
        if c == "u":
            return self.unicode_escape(position)
        if c == "x":
            digits = _HEX2.match(pattern, self.at)
            if digits:
                self.at = digits.end()
                return int(digits[0], 16)
            raise self.error("\\x needs two hexadecimal digits", position)
        if c in ("p", "P"):
            return self.property_escape(c, position)
        if c == "c":
            letter = pattern[self.at : self.at + 1]
            if letter.isascii() and letter.isalpha():
                self.at += 1
                return ord(letter) % 32
            raise self.error("\\c needs a letter", position)
        if c == "0":
            if pattern[self.at : self.at + 1].isdigit():
                raise self.error("octal escape", position)
            return 0
        if c.isascii() and c.isalnum():
            raise self.error(f"unknown escape \\{c}", position)
        return ord(c)

    def unicode_escape(self, position: int) -> int:
        pattern = self.pattern
        digits = _HEX4.match(pattern, self.at)
        if digits:
            self.at = digits.end()
            value = int(digits[0], 16)
            if 0xD800 <= value < 0xDC00:
                low = _LOW_SURROGATE.match(pattern, self.at)
                if low:
                    self.at = low.end()
                    value = 0x10000 + ((value - 0xD800) << 10) + int(low[1], 16) - 0xDC00
            return value
        braced = _BRACED.match(pattern, self.at)
        if braced and int(braced[1], 16) <= 0x10FFFF:
            self.at = braced.end()
            return int(braced[1], 16)
        raise self.error("\\u needs four hexadecimal digits or a code point in braces", position)

    def property_escape(self, letter: str, position: int) -> CharSet:
        named = _PROPERTY.match(self.pattern, self.at)
        if not named:
            raise self.error(f"\\{letter} needs a property in braces", position)
        chars = property_set(named[2])
        if chars is None:
            raise self.unsupported(f"\\{letter}{{{named[2]}}}", position)
        self.at = named.end()
        negative = (letter == "P") != bool(named[1])
        return complement(chars) if negative else chars

    # Classes.

    def char_class(self, position: int) -> int:
        pattern = self.pattern
        size = len(pattern)
        negative = pattern.startswith("^", self.at)
        if negative:
            self.at += 1
        pairs: list[CharSet] = []
        while True:
            if self.at >= size:
                raise self.error("unterminated character class", position)
            if pattern[self.at] == "]":
                self.at += 1
                break
            begin = self.at
            first = self.class_item()
            if self.at + 1 < size and pattern[self.at] == "-" and pattern[self.at + 1] != "]":
                self.at += 1
                last = self.class_item()
                if isinstance(first, int) and isinstance(last, int):
                    if last < first:
                        raise self.error("bad character range", begin)
                    pairs.append((first, last))
                    continue
                # Annex B: a hyphen beside a set is a hyphen.
                pairs.append((45, 45))
                pairs.append((last, last) if isinstance(last, int) else last)
            pairs.append((first, first) if isinstance(first, int) else first)
        chars = union(*pairs) if pairs else ()
        if "i" in self.flags:
            chars = fold_case(chars)
        return self.build.set(complement(chars) if negative else chars)

    def class_item(self) -> int | CharSet:
        position = self.at
        c = self.pattern[position]
        self.at += 1
        if c != "\\":
            return ord(c)
        following = self.pattern[self.at : self.at + 1]
        if following == "b":
            self.at += 1
            return 8
        if following in "123456789" and following:
            raise self.error("octal escape", position)
        return self.escaped(position)


@lru_cache(maxsize=4096)
def _compile(pattern: str) -> array[int]:
    return _Parser(pattern).program()


def ecma_node(pattern: str, build: ProgramBuilder) -> int:
    """A node of `build` for a pattern that matches where it stands, rather than anywhere."""
    return _Parser(pattern, build).node()


def compile_ecma(pattern: str) -> array[int]:
    """The program of the texts in which `pattern` is found, as an int32 array.

    The result must not be changed: equal patterns may share it.  Raises RegexError (malformed, with
    the position), UnsupportedError (backreference, lookbehind of more than one code point, unknown
    property, ...) and LimitExceededError (nesting of groups).
    """
    return _compile(pattern)
