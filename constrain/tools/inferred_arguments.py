"""The arguments of a rendered probe: in which style they are written, and where they are."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from constrain.tools.errors import FormatInferenceError
from constrain.tools.formats import ArgumentStyle, JsonArguments, PythonArguments, TaggedArguments
from constrain.tools.locate import KEY, common_prefix, common_suffix, find_json
from constrain.tools.probes import NIL, Probe, Prober

__all__ = ["Arguments", "find_arguments"]

_FIRST, _SECOND = "karoba", "kelumo"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The style, and what is needed to find arguments in it."""

    style: ArgumentStyle
    opening: str = ""  # tagged: between the name and the first argument
    tail: str = ""  # tagged: behind a value
    brackets: str = field(default="")  # marked: { and }, python: nothing

    def span(
        self, text: str, start: int, name: str, values: dict[str, Any]
    ) -> tuple[int, int] | None:
        """Where the arguments of a call of `name` are."""
        at = text.find(name, start)
        if at < 0:
            return None
        if isinstance(self.style, JsonArguments) and self.style.is_plain:
            return find_json(text, start, values)
        last = list(values.items())[-1]
        key_at = text.find(last[0], at)
        value_at = text.find(str(last[1]), key_at) if key_at >= 0 else -1
        if value_at < 0:
            return None
        value_end = value_at + len(str(last[1]))
        first_at = text.find(next(iter(values)), at)
        if isinstance(self.style, TaggedArguments):
            opened = text.rfind(name, start, first_at) + len(name) + len(self.opening)
            return opened, value_end + len(self.tail.replace(KEY, last[0]))
        if isinstance(self.style, JsonArguments):
            return text.rfind("{", at, first_at), text.index("}", value_end) + 1
        return first_at, text.index(")", value_end)


def find_arguments(prober: Prober, single: Probe) -> Arguments:
    """The style of arguments in a probe with two string arguments.

    Raises FormatInferenceError where it is none of the known ones.
    """
    name, values = single.calls[0]
    text = single.rendered
    if place := find_json(text, 0, values):
        return Arguments(JsonArguments(whitespace=_whitespace(text[slice(*place)], values)))
    first, second = values[_FIRST], values[_SECOND]
    name_end = _last_name(text, name)
    found = [text.find(word, name_end) for word in (_FIRST, first, _SECOND, second)]
    if min(found) < 0 or found != sorted(found):
        raise FormatInferenceError(
            "keys and values of the arguments do not follow the name in order"
        )
    k1, v1, k2, v2 = found
    mid = text[k1 + len(_FIRST) : v1]
    opening = text[name_end:k1]
    between = text[v1 + len(first) : k2]
    behind = text[v2 + len(second) :]
    if re.fullmatch(r"\(\s*", opening) and re.fullmatch(r"\s*=\s*['\"]", mid):
        return Arguments(_python_style(prober, name))
    if opening.rstrip().endswith("{") and mid.startswith(":") and mid[1:].strip():
        quote = mid[1:].strip()
        if quote != '"' and between.startswith(quote) and behind.startswith(quote):
            return Arguments(JsonArguments(quote=quote, sorted_keys=_sorts(prober, name)))
    return _tagged(prober, name, opening, mid, between, behind)


def _whitespace(written: str, values: dict[str, Any]) -> str:
    for whitespace, separators in (("spaced", (", ", ": ")), ("compact", (",", ":"))):
        if written == json.dumps(values, ensure_ascii=False, separators=separators):
            return whitespace
    return "bounded"


def _last_name(text: str, name: str) -> int:
    at = text.find(_FIRST)
    place = text.rfind(name, 0, at if at >= 0 else len(text))
    if place < 0:
        raise FormatInferenceError("the name of a called tool does not come before its arguments")
    return place + len(name)


def _python_style(prober: Prober, name: str) -> PythonArguments:
    """Whether a backslash in a string is written as one or as two."""
    probe = prober.probe(((name, {_FIRST: "vexa\\qon"}),))
    if probe is None:
        return PythonArguments()
    return PythonArguments("escaped" if "vexa\\\\qon" in probe.rendered else "raw")


def _sorts(prober: Prober, name: str) -> bool:
    probe = prober.probe(((name, {_SECOND: "vixoral", _FIRST: "vexalon"}),))
    return probe is not None and probe.rendered.find("vexalon") < probe.rendered.find("vixoral")


def _tagged(
    prober: Prober, name: str, opening: str, mid: str, between: str, behind: str
) -> Arguments:
    """Tagged arguments: ``opening (head value tail) separator (head value tail) closing``."""
    if not mid.strip():
        raise FormatInferenceError("nothing stands between the key and the value of an argument")
    between = between.replace(_FIRST, KEY)
    behind = behind.replace(_SECOND, KEY)
    empty = prober.probe(((NIL, {}),))
    if empty is None or NIL not in empty.rendered:
        raise FormatInferenceError("the template refuses a call without arguments")
    bare = empty.rendered[empty.rendered.rindex(NIL) + len(NIL) :]
    best: tuple[int, int] | None = None
    best_score = (False, 0)
    most_head, most_tail = common_suffix(opening, between), common_prefix(between, behind)
    for head in range(most_head, 0, -1):
        for tail in range(min(most_tail, len(between) - head), 0, -1):
            if opening[: len(opening) - head] + behind[tail:] != bare:
                continue
            if opening[len(opening) - head].isspace():
                continue
            # a head that begins with the end of a tag is no head, if there is another
            score = (opening[len(opening) - head] not in ">\"'=|", head + tail)
            if best is None or score > best_score:
                best, best_score = (head, tail), score
    if best is None:
        raise FormatInferenceError(
            f"arguments between {opening!r} and {behind[:80]!r} and a call without any, {bare[:80]!r}, "
            "have no common form"
        )
    head, tail = best
    opened = opening[: len(opening) - head]
    before_key, after_value = opening[len(opening) - head :], behind[:tail]
    separator = between[tail : len(between) - head]
    typed, values = _typed(prober, name, mid, after_value)
    parameter = before_key.replace("$", "$$") + "${key}" + typed + "${value}"
    parameter += after_value.replace("$", "$$").replace(KEY, "${key}")
    cdata = _has_cdata(prober, name)
    style = TaggedArguments(parameter, separator, values, cdata)
    return Arguments(style, opened, after_value)


def _typed(prober: Prober, name: str, mid: str, tail: str) -> tuple[str, str]:
    """What stands between key and value, with a hole where it names the type; how values look."""
    plain = mid.replace("$", "$$")
    probe = prober.probe(((name, {"kinoti": 4711}),))
    if probe is None or "4711" not in probe.rendered:
        raise FormatInferenceError("the template does not write a number as an argument")
    start = probe.rendered.rindex("kinoti", 0, probe.rendered.rindex("4711")) + len("kinoti")
    numeric = probe.rendered[start : probe.rendered.rindex("4711")]
    if numeric != mid:
        for word, other, hole in (
            ("string", "number", "type"),
            ("string", "integer", "type"),
            ("true", "false", "string"),
        ):
            place = mid.rfind(word)
            if place >= 0 and mid[:place] + other + mid[place + len(word) :] == numeric:
                left, right = mid[:place], mid[place + len(word) :]
                plain = left.replace("$", "$$") + "${" + hole + "}" + right.replace("$", "$$")
                break
        else:
            raise FormatInferenceError(
                f"a number is written behind {numeric!r} and a string behind {mid!r}"
            )
    return plain, _value_style(prober, name, tail)


def _value_style(prober: Prober, name: str, tail: str) -> str:
    probe = prober.probe(((name, {"kuzala": {"lamiro": "b-c", "lemoxa": 7}}),))
    if probe is None:
        raise FormatInferenceError("the template does not write an object as an argument")
    at = probe.rendered.rfind("lamiro")
    before, after = probe.rendered[at - 1 : at], probe.rendered[at + 6 : at + 7]
    if before == after == '"':
        return "json"
    if before == after == "'":
        return "python"
    return "nested"


def _has_cdata(prober: Prober, name: str) -> bool:
    probe = prober.probe(((name, {_FIRST: "vexa <b> & \n lon"}),))
    return probe is not None and "<![CDATA[vexa" in probe.rendered
