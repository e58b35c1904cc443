"""The many texts of one JSON value: every spelling that must get the same verdict.

A verdict is one about the value, so key order, whitespace, escapes and the spelling of numbers must
not matter (`whitespace="any"`, `numbers="any"`).
"""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

_SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f"}
_SHORT |= {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BLANKS = ("", "", "", " ", "\n", "\t", "\r\n", "  ")


def shuffled(value: Any, rng: random.Random) -> Any:
    """`value` with the keys of every object in random order."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: shuffled(value[key], rng) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, rng) for item in value]
    return value


def respelled(number: int | float, rng: random.Random) -> str:
    """A text of the same number with a fraction or an exponent: `1` as `1.0`, `10e-1`, `0.01E+2`.

    Never the text of an integer, which matters to draft 4.
    """
    exact = Decimal(repr(number)) if isinstance(number, float) else Decimal(number)
    sign, digits, exponent = exact.as_tuple()
    text = "".join(map(str, digits)).lstrip("0") or "0"
    minus = "-" if sign or (text == "0" and rng.random() < 0.3) else ""
    if text != "0" and rng.random() < 0.3:
        text += "0" * (zeros := rng.randrange(1, 4))
        exponent -= zeros  # type: ignore[operator]
    if text == "0":
        return minus + rng.choice(["0.0", "0e5", "0.00E-2", "0e+0"])
    # The point goes in front of the last `places` digits.
    places = rng.choice([0, 1, len(text) // 2, len(text) + 1])
    if exponent == -places and places == 0:
        return f"{minus}{text}.0"
    padded = text.rjust(places + 1, "0")
    mantissa = f"{padded[:-places]}.{padded[-places:]}" if places else padded
    power = exponent + places  # type: ignore[operator]
    if power == 0:
        return minus + mantissa
    plus = rng.choice(["", "+"]) if power > 0 else ""
    return f"{minus}{mantissa}{rng.choice('eE')}{plus}{power}"


def _escape(character: str, rng: random.Random) -> str:
    """One character as an escape: the short one, if there is one, or by its number."""
    if character in _SHORT and rng.random() < 0.5:
        return _SHORT[character]
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(
        f"\\u{high:02x}{low:02X}" if rng.random() < 0.5 else f"\\u{high:02X}{low:02x}"
        for high, low in zip(units[::2], units[1::2])
    )


def escaped(text: str, rng: random.Random, share: float) -> str:
    """A JSON string of `text` with a share of its characters written as escapes."""
    parts = []
    for character in text:
        must = character in '"\\' or character < " "
        parts.append(_escape(character, rng) if must or rng.random() < share else character)
    return '"' + "".join(parts) + '"'


def written(value: Any, rng: random.Random, share: float, *, integers: bool, blanks: bool) -> str:
    """A text of `value`: a share of characters escaped, numbers respelled, blanks anywhere.

    `integers` says whether integers may be respelled too.
    """

    def gap() -> str:
        return rng.choice(_BLANKS) if blanks else ""

    def write(item: Any) -> str:
        if isinstance(item, str):
            return escaped(item, rng, share)
        if isinstance(item, dict):
            members = (f"{escaped(k, rng, share)}{gap()}:{write(v)}" for k, v in item.items())
            return "{" + gap() + ",".join(members) + "}"
        if isinstance(item, list):
            return "[" + gap() + ",".join(map(write, item)) + "]"
        if isinstance(item, float) or (integers and type(item) is int):
            return gap() + respelled(item, rng) + gap()
        return gap() + json.dumps(item) + gap()

    return gap() + write(value) + gap()


def spellings(value: Any, rng: random.Random, *, integers: bool = True) -> list[str]:
    """Texts of one value, with one verdict.

    As it comes; keys shuffled, indented, all non-ASCII escaped; keys shuffled, compact; every
    character escaped; ASCII and others escaped at random, numbers respelled, blanks anywhere.
    """
    return [
        json.dumps(value, ensure_ascii=False),
        json.dumps(shuffled(value, rng), indent="\t", ensure_ascii=True),
        json.dumps(shuffled(value, rng), separators=(",", ":"), ensure_ascii=False),
        written(value, rng, 1.0, integers=False, blanks=False),
        written(shuffled(value, rng), rng, 0.3, integers=integers, blanks=True),
    ]
