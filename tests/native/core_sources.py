"""Which sources of the core a C++ driver needs, so that new files need no list."""

from __future__ import annotations

from pathlib import Path

NATIVE = Path(__file__).resolve().parents[2] / "constrain" / "native"

_MACHINES = ("json_", "grammar_", "text_", "analysis")
_LANGUAGES = ("lexical_", "regex_", "string_sets", "number_", "decimal")
_SESSIONS = ("session", "vocabulary", "shard", "states", "mask", "budget", "apply", "batch")
_MASKS = ("json_superset", "lexical_tables")


def _all_but(*prefixes: str) -> list[str]:
    return [
        str(path)
        for path in sorted((NATIVE / "src").glob("*.cpp"))
        if path.stem in _MASKS or not path.stem.startswith(prefixes)
    ]


def without_machines() -> list[str]:
    """Masks and matchers, for a machine of the driver's own."""
    return _all_but(*_MACHINES, *_LANGUAGES)


def lexical() -> list[str]:
    """String languages and their tables."""
    return _all_but(*_MACHINES, *_SESSIONS)


def regexes() -> list[str]:
    """Automata of regular expressions."""
    names = [*sorted((NATIVE / "src").glob("regex_*.cpp")), NATIVE / "src" / "poll.cpp"]
    return [str(path) for path in names]
