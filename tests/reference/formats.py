"""A second opinion on `format`, for texts that a constraint produced.

Each checker follows the RFC that JSON Schema names for the format, written from the grammar there
and independent of the product. Formats without a checker here count as valid.
"""

from __future__ import annotations

import datetime
import ipaddress
import re
from collections.abc import Callable

_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIME = re.compile(r"(\d{2}):(\d{2}):(\d{2})(?:\.\d+)?(?:[zZ]|([+-])(\d{2}):(\d{2}))", re.ASCII)
_DURATION_TIME = r"T(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)"
_DURATION_DATE = r"(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)"
_DURATION = re.compile(
    rf"P(?:{_DURATION_DATE}(?:{_DURATION_TIME})?|{_DURATION_TIME}|\d+W)", re.ASCII
)
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?", re.ASCII)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}", re.ASCII)
_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)*")
_RELATIVE = re.compile(r"(?:0|[1-9][0-9]*)(?:[+-](?:0|[1-9][0-9]*))?(?:#|(?:/(?:[^~/]|~[01])*)*)")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*", re.ASCII)
_QUOTED = re.compile(r'"(?:[ !#-\[\]-~]|\\[ -~])*"', re.ASCII)
_URI = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*", re.ASCII
)


def is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    if year == 0:
        year = 400  # datetime has no year 0, which RFC 3339 allows; 400 has the same calendar
    try:
        datetime.date(year, month, day)
    except ValueError:
        return False
    return True


def is_time(text: str) -> bool:
    match = _TIME.fullmatch(text)
    if match is None:
        return False
    hour, minute, second = (int(match[i]) for i in (1, 2, 3))
    offset_hour, offset_minute = int(match[5] or 0), int(match[6] or 0)
    if hour > 23 or minute > 59 or offset_hour > 23 or offset_minute > 59:
        return False
    if second < 60:
        return True
    # A leap second falls on 23:59:60 UTC.
    sign = -1 if match[4] == "+" else 1
    utc = (hour * 60 + minute + sign * (offset_hour * 60 + offset_minute)) % 1440
    return second == 60 and utc == 1439


def is_date_time(text: str) -> bool:
    return len(text) > 10 and text[10] in "tT" and is_date(text[:10]) and is_time(text[11:])


def is_hostname(text: str) -> bool:
    return 0 < len(text) <= 253 and all(_LABEL.fullmatch(label) for label in text.split("."))


def is_ipv4(text: str) -> bool:
    parts = text.split(".")
    return len(parts) == 4 and all(
        part.isascii() and part.isdigit() and int(part) < 256 and str(int(part)) == part
        for part in parts
    )


def is_ipv6(text: str) -> bool:
    if "%" in text or not text.isascii():
        return False
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def is_email(text: str) -> bool:
    local, at, domain = text.rpartition("@")
    if not at or not (_LOCAL.fullmatch(local) or _QUOTED.fullmatch(local)):
        return False
    if domain.startswith("[") and domain.endswith("]"):
        literal = domain[1:-1]
        return is_ipv4(literal) or is_ipv6(literal.removeprefix("IPv6:"))
    return is_hostname(domain)


CHECKERS: dict[str, Callable[[str], bool]] = {
    "date": is_date,
    "time": is_time,
    "date-time": is_date_time,
    "duration": lambda text: _DURATION.fullmatch(text) is not None,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "email": is_email,
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
    "json-pointer": lambda text: _POINTER.fullmatch(text) is not None,
    "relative-json-pointer": lambda text: _RELATIVE.fullmatch(text) is not None,
    "uri": lambda text: _URI.fullmatch(text) is not None,
}
"""Format name to a predicate on strings."""
