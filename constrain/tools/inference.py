"""The tool-call format of a model, inferred from its chat template.

A template that writes assistant messages with tool calls shows the format that its model was
trained on.  `infer_format` renders probe conversations, finds the recognisable parts in them, takes
what stands between for the description's texts, and then proves the description: it must read back
every other probe exactly.  Where anything is left open it raises `FormatInferenceError` that says
what, and how to describe the format by hand.  It never guesses.

Cost: about twenty renderings, some milliseconds each.
"""

from __future__ import annotations

import re
from typing import Any

from constrain.tools.errors import FormatInferenceError, ToolFormatError
from constrain.tools.formats import Section, ToolFormat
from constrain.tools.inferred_arguments import Arguments, find_arguments
from constrain.tools.inferred_parts import Parts
from constrain.tools.locate import Marks, common_prefix, common_suffix, find_calls
from constrain.tools.parser import parse_message
from constrain.tools.probes import (
    NIL,
    ONE,
    TEXT,
    THOUGHT,
    TOOLS,
    TWO,
    Probe,
    Prober,
    Renderer,
    call_id,
)

__all__ = ["infer_format"]

_BASIC = {"karoba": "vexalon", "kelumo": "vixoral"}
_OTHER = {"karoba": "woxumel", "kelumo": "wuxirat"}
_RICH: dict[str, Any] = {
    "karoba": 'Wörter "x" </tag> 日本',
    "kinoti": 45,
    "kobeta": True,
    "kuzala": {"lamiro": "b-c", "lemoxa": 7},
    "kyfino": ["a@b.c", "d"],
}
_TAG_START = re.compile(r"<|\[|\]<\]|\s*$")
_TAG_END = re.compile(r"[>\]]")
_FIRST_TAG = re.compile(r"<[^<>\s]{1,60}>|\[[^\[\]\s]{1,40}[\[\]]")
_THINK = re.compile(r"<([\w:|]*think[\w:|]*)>\s*(?:</\1>)?\s*$", re.I)
_BARE = re.compile(r"\s*[\[{(\"\w\s:,]*")  # no text of its own that would tell a call from prose
_PAIRS = (("</", "<"), ("[/", "["), ("close", "open"), ("END", "START"), ("end", "begin"))


def infer_format(render: Renderer, *, name: str = "inferred") -> ToolFormat:
    """The format in which a chat template writes tool calls.

    Args:
        render: ``render(messages, tools) -> text``; if it also takes ``add_generation_prompt``, what
            the prompt ends with is used.  `chat_templates` makes one from a tokenizer or template.
        name: the name of the description.

    Raises FormatInferenceError: the template writes no calls, refuses the probes, or writes them in
    a way that no description was found to read back exactly.
    """
    return _Inference(Prober(render), name).run()


class _Inference:
    def __init__(self, prober: Prober, name: str) -> None:
        self._prober = prober
        self._name = name
        self._prompt = prober.prompt()
        self._asked = ""  # what stands between the user's question and the model's message
        self._parallel = True
        self._prose_after = False
        self._behind_prose = ""  # what follows such prose

    def run(self) -> ToolFormat:
        prober = self._prober
        single = prober.probe(((ONE, _BASIC),))
        if single is None:
            raise FormatInferenceError(f"the template refuses a tool call ({prober.failure})")
        if ONE not in single.rendered:
            raise FormatInferenceError("the template does not write the name of a called tool")
        words = prober.probe(text=TEXT)
        if words is None or TEXT not in words.rendered:
            raise FormatInferenceError("the template does not write an assistant's plain text")
        start = words.rendered.index(TEXT)
        self._asked = words.rendered[:start] if self._prompt is None else self._prompt
        arguments = find_arguments(prober, single)
        header = min(self._prompted(single.rendered), single.rendered.index(ONE))
        marks = self._marks(single, arguments, header, 1)
        double = prober.probe(((ONE, _BASIC), (TWO, _OTHER)))
        pair = None
        if double is not None and TWO in double.rendered:
            pair = self._marks(double, arguments, header, 2)
        self._parallel = pair is not None
        parts = Parts.of(single, marks[0], double, pair, header)
        form = self._describe(parts, words, arguments, header)
        self._prove(form)
        return form

    # -- the parts -----------------------------------------------------------------------------

    def _prompted(self, rendered: str) -> int:
        """How many characters of a rendering the prompt has already written."""
        length = common_prefix(self._asked, rendered)
        if length < len(self._asked):
            # the common part may have eaten the first letters of a tag
            shared = rendered[:length]
            opened = max(shared.rfind("<"), shared.rfind("["))
            if opened > max(shared.rfind(">"), shared.rfind("]")):
                length = opened
        return length

    def _marks(self, probe: Probe, arguments: Arguments, header: int, count: int) -> list[Marks]:
        calls: list[tuple[str, str, tuple[int, int] | None]] = []
        at = header
        for number, (tool, values) in enumerate(probe.calls):
            span = arguments.span(probe.rendered, at, tool, values)
            calls.append((tool, call_id(number), span))
            at = span[1] if span else at
        found = find_calls(probe.rendered, header, calls)
        if found is None or len(found) != count:
            raise FormatInferenceError("the arguments of a call are not where the others are")
        if any(one.kinds() != found[0].kinds() for one in found):
            raise FormatInferenceError("two calls of a message are written differently")
        return found

    # -- the description -----------------------------------------------------------------------

    def _describe(
        self, parts: Parts, words: Probe, arguments: Arguments, header: int
    ) -> ToolFormat:
        start = words.rendered.index(TEXT)
        said_before, said_after = words.rendered[:start], words.rendered[start + len(TEXT) :]
        marked = said_before[self._prompted(words.rendered) :]
        end, message_end = _split_end(parts.end, said_after)
        stop = _FIRST_TAG.search(message_end)
        text_end = said_after[: len(said_after) - len(message_end)].strip()
        whole = parts.begin + parts.shown_head
        gap = self._gap(parts)
        core, after_text, prompted = _core(gap or "", whole), "", ""
        if gap is not None and not whole.strip():
            prompted, core = gap.strip(), ""
            if not self._asked.rstrip().endswith(prompted):
                raise FormatInferenceError(
                    f"calls after text begin with {prompted!r}, others do not"
                )
        elif gap is not None:
            if not core:
                raise FormatInferenceError(
                    f"calls begin with {whole[:60]!r}, but after text with {gap[-60:]!r}"
                )
            after_text = gap[: len(gap) - len(core)]
        else:
            core = whole
        if text_end and core.startswith(text_end):
            core = core[len(text_end) :]
        elif text_end:
            after_text = after_text.removeprefix(text_end)
        section = self._reasoning(parts, header, core, text_end)
        marked = _without_empty(marked, section)
        text = Section(marked.strip(), text_end) if marked.strip() else None
        begin = self._begin(parts, whole, core, section, text)
        if prompted:
            parts.repeat(prompted)
            begin = parts.begin
            text = text and Section(prompted + text.begin, text.end)
        prose = not _BARE.fullmatch(begin + parts.head)
        if section is not None and said_before[header:].strip() == section.end.strip():
            section = Section(section.begin, section.end, bare_end=True)
        stops = (stop.group(),) if stop else ()
        if end.strip() and self._behind_prose.startswith(end.strip()):
            # behind prose that follows the calls: it ends the message and not the calls
            stops, end = (end.strip(), *stops), ""
        try:
            return ToolFormat(
                call=parts.template(),
                arguments=arguments.style,
                name=self._name,
                begin=begin,
                separator=parts.separator,
                end=end,
                after_text=after_text if prose else "",
                text=text,
                reasoning=section,
                prompted=prompted,
                stop=stops,
                parallel=self._parallel,
                prose=prose,
                prose_after=self._prose_after,
                first_index=parts.first_index,
            )
        except ToolFormatError as error:
            raise FormatInferenceError(str(error)) from error

    def _gap(self, parts: Parts) -> str | None:
        """What stands between text and a call; None where no text comes before calls."""
        probe = self._prober.probe(((ONE, _BASIC),), text=TEXT)
        if probe is None or TEXT not in probe.rendered:
            return None
        at = probe.rendered.index(TEXT) + len(TEXT)
        place = probe.rendered.find(parts.first_word, at)
        self._prose_after = 0 <= probe.rendered.find(parts.first_word) < at and place < 0
        if self._prose_after:
            self._behind_prose = probe.rendered[at:].lstrip()
        return None if place < 0 else probe.rendered[at:place]

    def _begin(
        self, parts: Parts, whole: str, core: str, section: Section | None, text: Section | None
    ) -> str:
        """What comes before the first call, without empty sections of text and thought."""
        lead = whole[: len(whole) - len(core)]
        begin = parts.begin[len(lead) :] if len(lead) <= len(parts.begin) else None
        known = [one for part in (section, text) if part for one in (part.begin, part.end)]
        rest = lead
        for one in sorted((one.strip() for one in known), key=len, reverse=True):
            rest = rest.replace(one, "") if one else rest
        if begin is None or rest.strip():
            raise FormatInferenceError(
                f"calls begin with {whole[:80]!r}, and the first part of that, {rest or lead!r}, "
                "is no empty section of text or thought"
            )
        return _without_empty(begin, section)

    def _reasoning(self, parts: Parts, header: int, core: str, text_end: str) -> Section | None:
        """The thinking section, if the template has one."""
        for key in ("reasoning_content", "reasoning", "thinking"):
            probe = self._prober.probe(((ONE, _BASIC),), thought=THOUGHT, key=key)
            if probe is None or THOUGHT not in probe.rendered:
                continue
            at = probe.rendered.index(THOUGHT)
            before, after = probe.rendered[:at], probe.rendered[at + len(THOUGHT) :]
            if parts.first_word not in after:
                continue
            after = after[: after.index(parts.first_word)]
            for place in [one.end() for one in _TAG_END.finditer(after)]:
                begin = _counterpart(before, after[:place].strip())
                if begin:
                    return Section(begin, after[:place].strip())
            ended = after[: len(after) - common_suffix(after, core.lstrip())].strip()
            ended = ended.removesuffix(text_end).strip()
            if ended and _FIRST_TAG.search(ended):
                opened = before[header:].strip()
                tags = list(_FIRST_TAG.finditer(before.rstrip()))
                if not opened and tags and tags[-1].end() == len(before.rstrip()):
                    opened = tags[-1].group()
                return Section(opened, ended)
        found = _THINK.search(self._asked)
        return Section(f"<{found.group(1)}>", f"</{found.group(1)}>") if found else None

    # -- the proof -----------------------------------------------------------------------------

    def _prove(self, form: ToolFormat) -> None:
        """Every probe must be read back exactly, with all kinds of values."""
        trials: list[tuple[tuple[tuple[str, dict[str, Any]], ...], str]] = [
            (((ONE, _BASIC),), ""),
            (((TWO, {"kelumo": "vixoral"}),), ""),
            (((NIL, {}),), ""),
            (((TWO, _RICH),), ""),
            (((ONE, {"karoba": "nul\nline", "kobeta": False}),), ""),
            (((ONE, _BASIC),), TEXT),
            (((TWO, _RICH), (NIL, {}), (ONE, _OTHER)), ""),
        ]
        for calls, text in trials:
            if len(calls) > 1 and not self._parallel:
                continue
            probe = self._prober.probe(calls, text=text)
            if probe is None:
                raise FormatInferenceError(f"the template refuses a call ({self._prober.failure})")
            rendered = probe.rendered[self._prompted(probe.rendered) :]
            message = parse_message(form, TOOLS, rendered, validate=False)
            found = tuple((one.name, one.arguments) for one in message.calls)
            if found != calls or message.failures:
                why = message.failures[0].reason if message.failures else f"found {found}"
                raise FormatInferenceError(
                    f"the description does not read {', '.join(name for name, _ in calls)} back "
                    f"from {rendered[:300]!r}: {why}"
                )
            shown = probe.rendered.find(text) if text else -1
            kept = text in message.text + message.reasoning
            if 0 <= shown < probe.rendered.find(calls[0][0]) and not kept:
                raise FormatInferenceError("text before a call is lost")


def _split_end(end: str, said_after: str) -> tuple[str, str]:
    """The end of the calls, and the end of the message that plain text has as well."""
    at = len(end) - common_suffix(end, said_after)
    while at < len(end):
        clean = at == 0 or end[at - 1] in ">])}[\n"
        if clean and _TAG_START.match(end, at):
            break
        at += 1
    kept, rest = end[:at], end[at:]
    stop = _FIRST_TAG.search(rest if rest.strip() else said_after)
    if stop and stop.group() in kept:
        place = kept.index(stop.group())
        kept, rest = kept[:place], kept[place:] + rest
    return kept, rest if said_after.endswith(rest) or not said_after else said_after


def _core(gap: str, whole: str) -> str:
    """The beginning of a call that both its renderings, after text and without, end with."""
    shared = common_suffix(gap, whole)
    core = whole[len(whole) - shared :]
    if len(core) in (len(whole), len(gap)):
        return core
    opened = re.search(r"\s*[<\[]", core)
    return core[opened.start() :] if opened else ""


def _counterpart(before: str, end: str) -> str:
    """The text before a thought that `end` closes, in one of the usual pairs."""
    opened = before.rstrip()
    for old, new in _PAIRS:
        candidate = end.replace(old, new)
        if candidate != end and opened.endswith(candidate):
            return candidate
    return ""


def _without_empty(text: str, section: Section | None) -> str:
    """`text` without an empty thinking section, or the end of one, at its start."""
    if section is None:
        return text
    rest = text.lstrip()
    for known in (section.begin.strip(), section.end.strip()):
        if known and rest.startswith(known):
            rest = rest[len(known) :].lstrip()
    return rest if rest != text.lstrip() else text
