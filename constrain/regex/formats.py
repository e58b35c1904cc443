"""The formats of JSON Schema as regular languages.

Every format is the pattern of its RFC's grammar, in the syntax of `compile_ecma`.  `NARROWED` names
the formats whose language is not regular, or not in reach: of those, a part is accepted and no
invalid text ever is.  A name that is not in `FORMATS` is not known.

=============================== =================================================================
date, time, date-time, duration RFC 3339: 29 February in leap years only, second 60 only where it is
                                23:59:60 UTC, durations as in its appendix A
email, idn-email                RFC 5321 and 6531 (Mailbox); lengths as far as the domain is concerned
hostname, idn-hostname          RFC 1123, RFC 5890 to 5893
ipv4, ipv6                      RFC 2673 section 3.2, RFC 4291 section 2.2
uri, uri-reference, iri, ...    RFC 3986, RFC 3987
uri-template                    RFC 6570, with its errata
uuid                            RFC 4122
json-pointer, relative-...      RFC 6901 and the draft that JSON Schema names
regex                           ECMA-262, groups nested three deep
=============================== =================================================================

Cost: a pattern is built when a format is first asked for and then kept; at most a millisecond, but
for idn-hostname and idn-email, which look at every code point once (about half a second).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import lru_cache

from constrain.regex.ecma import compile_ecma, ecma_node
from constrain.regex.program import ProgramBuilder

__all__ = ["FORMATS", "NARROWED", "compile_format"]


# Dates and times.

_LEAP_YEAR = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = (
    "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    "|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    f"|{_LEAP_YEAR}-02-29)"
)


_FRACTION = r"(?:\.[0-9]+)?"
_ORDINARY_TIME = (
    f"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]{_FRACTION}"
    "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)


def _time(before: str = "") -> array[int]:
    """Full times behind `before`.

    A leap second is at 23:59:60 UTC, so its offset is a function of its minute.  The offset's hours
    depend on the local hours alone and its minutes on the local minutes alone, but for offsets of
    whole hours east of Greenwich, so that two conditions side by side (one is a lookahead) say what
    2,880 pairs would.
    """
    build = ProgramBuilder()
    hours = range(24)
    two = ecma_node("[0-9]{2}", build)
    two_and_colon = ecma_node("[0-9]{2}:", build)
    middle = ecma_node(f":60{_FRACTION}", build)
    minute_and_middle = ecma_node(f"[0-9]{{2}}:60{_FRACTION}", build)

    def text(written: str) -> list[int]:
        return [build.char(ord(c)) for c in written]

    def by_hour(sign: str, offset: Callable[[int], int]) -> int:
        return build.alt(
            [
                build.seq([*text(f"{h:02}:"), minute_and_middle, *text(f"{sign}{offset(h):02}:")])
                for h in hours
            ]
        )

    def by_minute(sign: str, offset: Callable[[int], int], minutes: range) -> int:
        return build.alt(
            [
                build.seq(
                    [
                        two_and_colon,
                        *text(f"{m:02}"),
                        middle,
                        *text(sign),
                        two,
                        *text(f":{offset(m):02}"),
                    ]
                )
                for m in minutes
            ]
        )

    # East: local time = 23:59 + offset.  West: local time = 23:59 - offset.
    east = build.look(by_hour("+", lambda h: h), negative=False)
    west = build.look(by_hour("-", lambda h: 23 - h), negative=False)
    times = [
        ecma_node(_ORDINARY_TIME, build),
        build.seq([*text("23:59"), middle, ecma_node("[Zz]", build)]),
        build.seq([east, by_minute("+", lambda m: m + 1, range(59))]),
        build.seq([west, by_minute("-", lambda m: 59 - m, range(60))]),
        *(
            build.seq([*text(f"{(h + 23) % 24:02}:59"), middle, *text(f"+{h:02}:00")])
            for h in hours
        ),
    ]
    return build.finish(build.seq([ecma_node(before, build), build.alt(times)]))


_DURATION_TIME = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DURATION_DATE = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
_DURATION = f"^P(?:{_DURATION_DATE}(?:{_DURATION_TIME})?|{_DURATION_TIME}|[0-9]+W)$"


# Addresses.

_HEX = "[0-9A-Fa-f]"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"


def _ipv6_pattern() -> str:
    group = f"{_HEX}{{1,4}}"
    forms = [f"(?:{group}:){{7}}{group}", f"(?:{group}:){{6}}{_IPV4}"]
    for left in range(8):
        # `::` stands for one group or more; an IPv4 address at the end for two groups.
        before = "" if left == 0 else f"{group}(?::{group}){{{left - 1}}}"
        after = []
        if left < 7:
            after.append(f"{group}(?::{group}){{0,{6 - left}}}")
        if left < 6:
            after.append(f"(?:{group}:){{0,{5 - left}}}{_IPV4}")
        rest = f"(?:{'|'.join(after)})?" if after else ""
        forms.append(f"{before}::{rest}")
    return "(?:" + "|".join(forms) + ")"


_IPV6 = _ipv6_pattern()

# A label has at most 63 characters, no hyphen at its ends, and no two hyphens in its third and
# fourth place: those are reserved for encoded names (`xn--`), whose validity is not regular.
_LETTER = "[A-Za-z0-9]"
_INNER = "[A-Za-z0-9-]"
_LABEL = (
    f"{_LETTER}(?:{_LETTER}|{_INNER}{_LETTER}"
    f"|{_INNER}(?:{_LETTER}{{2}}|-{_LETTER}|(?:{_LETTER}{_INNER}|-{_LETTER}){_INNER}{{0,58}}{_LETTER}))?"
)
_DOMAIN = rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*"
_HOSTNAME = f"^{_DOMAIN}$"

_ATOM_TEXT = r"A-Za-z0-9!#$%&'*+/=?^_`{|}~\-"
_LITERAL = rf"\[(?:{_IPV4}|[Ii][Pp][Vv]6:{_IPV6})\]"


def _mailbox(other: str, domain: str) -> str:
    """A mailbox whose local part may contain `other` code points besides the ASCII ones."""
    atom = f"[{_ATOM_TEXT}{other}]+"
    quoted = rf'"(?:[ !#-\[\]-~{other}]|\\[ -~])*"'
    return rf"^(?:{atom}(?:\.{atom})*|{quoted})@(?:{_LITERAL}|{domain})$"


# Identifiers of resources.


def _resource(other: str, private: str) -> tuple[str, str]:
    """Patterns of an identifier and of a reference, with `other` code points as in RFC 3987."""
    unreserved = rf"A-Za-z0-9._~{other}\-"
    delimiters = "!$&'()*+,;="
    escaped = f"%{_HEX}{{2}}"
    name = f"(?:[{unreserved}{delimiters}]|{escaped})*"
    user = f"(?:[{unreserved}{delimiters}:]|{escaped})*"
    char = f"(?:[{unreserved}{delimiters}:@]|{escaped})"
    char_no_colon = f"(?:[{unreserved}{delimiters}@]|{escaped})"
    query = f"(?:[{unreserved}{delimiters}:@/?{private}]|{escaped})*"
    fragment = f"(?:[{unreserved}{delimiters}:@/?]|{escaped})*"
    future = rf"[Vv]{_HEX}+\.[A-Za-z0-9._~!$&'()*+,;=:\-]+"
    host = rf"(?:\[(?:{_IPV6}|{future})\]|{name})"
    authority = f"(?:{user}@)?{host}(?::[0-9]*)?"
    segments = f"(?:/{char}*)*"
    hierarchy = f"//{authority}{segments}|/(?:{char}+{segments})?"
    tail = rf"(?:\?{query})?(?:#{fragment})?"
    absolute = f"[A-Za-z][A-Za-z0-9+.-]*:(?:{hierarchy}|{char}+{segments})?{tail}"
    relative = f"(?:{hierarchy}|{char_no_colon}+{segments})?{tail}"
    return f"^{absolute}$", f"^(?:{absolute}|{relative})$"


_UCS = (
    r"\u{A0}-\u{D7FF}\u{F900}-\u{FDCF}\u{FDF0}-\u{FFEF}"
    + "".join(rf"\u{{{plane:X}0000}}-\u{{{plane:X}FFFD}}" for plane in range(1, 14))
    + r"\u{E1000}-\u{EFFFD}"
)
_PRIVATE = r"\u{E000}-\u{F8FF}\u{F0000}-\u{FFFFD}\u{100000}-\u{10FFFD}"
_URI, _URI_REFERENCE = _resource("", "")
_IRI, _IRI_REFERENCE = _resource(_UCS, _PRIVATE)


def _uri_template() -> str:
    escaped = f"%{_HEX}{{2}}"
    literal = rf"(?:[!#$&'(-;=?-\[\]_a-z~{_UCS}{_PRIVATE}]|{escaped})"
    char = f"(?:[A-Za-z0-9_]|{escaped})"
    variable = rf"{char}(?:\.?{char})*(?::[1-9][0-9]{{0,3}}|\*)?"
    return rf"^(?:{literal}|\{{[+#./;?&=,!@|]?{variable}(?:,{variable})*\}})*$"


_UUID = f"^{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}$"
_POINTER = "(?:/(?:[^~/]|~[01])*)*"


# Regular expressions, as ECMA-262 reads them with the flag u.

_REGEX_NESTING = 3


def _regex() -> str:
    hexadecimal = _HEX
    categories = "C[cfnos]?|L[lmotuC]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?"
    escape = (
        r"\\(?:[\^$\\.*+?()\[\]{}|/dDwWsSfnrtv]|0(?![0-9])|c[A-Za-z]"
        rf"|x{hexadecimal}{{2}}|u(?:{hexadecimal}{{4}}"
        rf"|\{{0*(?:10{hexadecimal}{{4}}|{hexadecimal}{{1,5}})\}})"
        rf"|[pP]\{{(?:{categories})\}})"
    )

    def ordered(chars: str) -> str:
        return "|".join(f"{a}-[{a}-{chars[-1]}]" for a in chars)

    ranges = "|".join(
        ordered(chars)
        for chars in ("0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
    )
    item = rf"(?:[^\\\]\-]|{escape}|\\[b\-]|{ranges})"
    char_class = rf"\[\^?-?{item}*-?\]"
    counts = "|".join(f"{n},[{n}-9]" for n in range(10))
    number = "(?:0|[1-9][0-9]{0,3})"
    quantifier = rf"(?:[*+?]|\{{{number},?\}}|\{{(?:{counts}|0,{number}|1,[1-9][0-9]{{0,3}})\}})\??"
    assertion = r"[\^$]|\\[bB]"
    atom = rf"[^\\\^$.*+?()\[\]{{}}|]|\.|{escape}|{char_class}"
    inner = rf"(?:{assertion}|(?:{atom})(?:{quantifier})?|\|)*"
    for _ in range(_REGEX_NESTING):
        look = rf"\(\?<?[=!]{inner}\)"
        group = rf"\((?:\?:)?{inner}\)"
        inner = rf"(?:{assertion}|{look}|(?:{atom}|{group})(?:{quantifier})?|\|)*"
    return f"^{inner}$"


def _idn_hostname() -> str:
    from constrain.regex.idna import domain_pattern

    return f"^{domain_pattern(_LABEL)}$"


def _idn_email() -> str:
    from constrain.regex.idna import domain_pattern

    return _mailbox(r"\u{80}-\u{10FFFF}", domain_pattern(_LABEL))


FORMATS: dict[str, str | Callable[[], str | array[int]]] = {
    "date": f"^{_DATE}$",
    "date-time": lambda: _time(f"{_DATE}[Tt]"),
    "duration": _DURATION,
    "email": _mailbox("", _DOMAIN),
    "hostname": _HOSTNAME,
    "idn-email": _idn_email,
    "idn-hostname": _idn_hostname,
    "ipv4": f"^{_IPV4}$",
    "ipv6": f"^{_IPV6}$",
    "iri": _IRI,
    "iri-reference": _IRI_REFERENCE,
    "json-pointer": f"^{_POINTER}$",
    "regex": _regex,
    "relative-json-pointer": f"^(?:0|[1-9][0-9]*)(?:#|{_POINTER})$",
    "time": _time,
    "uri": _URI,
    "uri-reference": _URI_REFERENCE,
    "uri-template": _uri_template,
    "uuid": _UUID,
}
"""The pattern of each format, or a function that gives it or the program."""

NARROWED: dict[str, str] = {
    "email": "no encoded (xn--) domains, address literals for IPv4 and IPv6 only",
    "hostname": "no encoded (xn--) names",
    "idn-email": "domains as for idn-hostname, address literals for IPv4 and IPv6 only",
    "idn-hostname": (
        "no encoded (xn--) names, short labels (14 characters below U+0800, else 9), no combining"
        " marks but viramas, zero width non-joiners after a virama only"
    ),
    "regex": (
        "groups nested at most three deep, no named groups and backreferences, ranges and bounds in"
        " plain order"
    ),
    "relative-json-pointer": "no index manipulation",
}
"""Formats of which only a part is accepted, and what is left out."""


# Before draft 7, a host name is what RFC 1123 says: nothing is reserved.
_OLD_LABEL = f"{_LETTER}(?:{_INNER}{{0,61}}{_LETTER})?"
_OLD_HOSTNAME = rf"^(?=.{{1,253}}$){_OLD_LABEL}(?:\.{_OLD_LABEL})*$"


@lru_cache(maxsize=64)
def compile_format(name: str, draft: str = "2020-12") -> array[int] | None:
    """The program of the texts that are valid under this format; None if it is not known.

    `draft` matters to "hostname", which in drafts "4" and "6" admits encoded names as plain ones.
    The result is an int32 array that is shared and must not be changed.
    """
    if name == "hostname" and draft in ("4", "6"):
        return compile_ecma(_OLD_HOSTNAME)
    source = FORMATS.get(name)
    if source is None:
        return None
    made = source if isinstance(source, str) else source()
    return compile_ecma(made) if isinstance(made, str) else made
