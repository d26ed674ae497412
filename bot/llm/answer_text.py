"""Part a model's text, as it is streamed, into reasoning, which is dropped, and the answer.

Rule 1: reasoning stands at the beginning, between tags or in a channel; what a later tag opens is the answer's.
Rule 2: some servers open the tag themselves: the first closing tag of an answer that opened none ends
    the reasoning, unless it is quoted or within code.
Rule 3: a draft shows neither reasoning nor what may become a call.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from bot.core.patterns import LazyPattern
from bot.llm.bounds import MOST_TEXT
from bot.llm.written_calls import CODE, HALF_MARK, MARK, may_be_calls

_NEXT_CHANNEL = r"<\|end\|>|(?=<\|(?:start|channel)\|>)"
_THOUGHTS = {
    **{f"<{name}>": f"</{name}>" for name in ("think", "thinking", "thought", "reasoning")},
    "<seed:think>": "</seed:think>",
    "[think]": r"\[/THINK\]",
    "◁think▷": "◁/think▷",
    "<|begin_of_thought|>": r"<\|end_of_thought\|>",
    "<|start_thinking|>": r"<\|END_THINKING\|>",
    "<|channel>thought": r"<channel\|>",
    "<|channel|>analysis": _NEXT_CHANNEL,
    "<|start|>assistant<|channel|>analysis": _NEXT_CHANNEL,
    **{
        f"{start}<|channel|>{shown}<|message|>": ""
        for start in ("", "<|start|>assistant")
        for shown in ("final", "commentary")
    },
    "<|start|>assistant<|message|>": "",
}
"""What opens reasoning at the beginning of a text, and the pattern of what ends it."""

_ENDS = {opening: LazyPattern(f"(?i:{end})") for opening, end in _THOUGHTS.items()}
_CLOSED = LazyPattern(
    r"(?i:</(?:think|thinking|thought|reasoning|seed:think)>)|assistantfinal"
    r"|assistant(?=commentary to=)"
)
_UNTOLD = "analysis"
"""How gpt-oss begins where a server drops the marks of its channels."""

_LONGEST = 48
"""Characters of the longest tag, with some to spare."""

_QUOTES = frozenset("`'\"")
_SPECIAL = LazyPattern(
    CODE + r"|<\|channel\|>analysis<\|message\|>[\s\S]*?(?:<\|end\|>|\Z)"
    r"|<\|(?:end|return|im_end|eot_id)\|>(?:assistant\b)?|<\|start\|>(?:assistant\b)?(?!assistant to=| to=)"
    r"|<\|channel\|>\w{1,20}<\|message\|>|<end_of_turn>",
    re.MULTILINE,
)


class AnswerText:
    """The answer in a text that grows: one that may be a call, without marks, of the tools with these names.

    Nothing is shown before a tag has closed if the model, which opens none, is ``held``.

    Attributes:
        text: The answer so far, calls that are written in it included.
        draft: What may be shown of it.
        unended: Reasoning that no tag has ended.
        thought: Whether the reasoning came otherwise, so that the text holds none that it does not open.
        closed: Whether a tag was closed that was not opened.
    """

    def __init__(self, names: Collection[str] = (), *, held: bool = False) -> None:
        self.text = ""
        self.draft = ""
        self.unended = ""
        self.thought = self.closed = False
        self._held = held
        self._names = names
        self._head: str | None = ""
        self._parted = False
        self._end: LazyPattern | None = None
        self._tag: int | None = 0
        self._mark = 0
        self._cut: int | None = None
        self._bare = bool(names)

    def add(self, text: str) -> None:
        """Append text."""
        if self._head is None:
            self._answer(text)
        else:
            self._head += text
            self._open()
        self._show()

    def finish(self) -> str:
        """Return the whole answer, once no more text comes."""
        for _ in range(2):
            if self._head is not None and self._end is None:
                self._answer("")
            self._close(last=True)
        if self._head is not None:
            self.unended, self._head = self.unended + self._head, ""
        text = self.text.lstrip() if self.thought else self.text
        if "<" not in text:
            return text
        return _SPECIAL.sub(lambda one: one[0] if one["fence"] or one["ticks"] else "", text)

    def _open(self) -> None:
        """Drop reasoning from a beginning, until it turns out to be the answer's."""
        while self._head is not None:
            if self._end is not None:
                if (found := self._end.search(self._head)) is None:
                    self.unended += self._head[:-_LONGEST][: MOST_TEXT - len(self.unended)]
                    self._head = self._head[-_LONGEST:]
                    return
                self.unended = ""
                self._head, self._end, self._parted = self._head[found.end() :], None, True
            begun = self._head.lstrip()[:_LONGEST].lower()
            opening = next((one for one in _THOUGHTS if begun.startswith(one)), None)
            if opening is not None:
                self._head, self._end = self._head.lstrip()[len(opening) :], _ENDS[opening]
            elif any(one.startswith(begun) for one in _THOUGHTS):
                return
            else:
                self._answer("")

    def _answer(self, text: str) -> None:
        head, self._head = self._head or "", None
        text = (head.lstrip() if self._parted else head) + text
        self.text += text[: MOST_TEXT - len(self.text)]
        self._close()

    def _close(self, *, last: bool = False) -> None:
        """Drop an answer before the first tag that closes reasoning which the text did not open."""
        if self._tag is None:
            return
        found = _CLOSED.search(self.text, self._tag)
        if found is None or (found.end() == len(self.text) and not last):
            self._tag = found.start() if found else max(0, len(self.text) - _LONGEST)
            return
        self._tag = None
        before, after = self.text[: found.start()], self.text[found.end() :]
        near = before[-1:] + after[:1]
        opened = before.lower()
        if (
            (self.thought and before.strip())
            or not _QUOTES.isdisjoint(near)
            or near == "  "
            or before.count("```") % 2
            or (found[0][0] == "<" and found[0].lower().replace("/", "") in opened)
            or (found[0].startswith("assistant") and not opened.startswith(_UNTOLD))
        ):
            return
        self.closed = True
        self.text, self._head, self._parted, self._mark, self._cut = "", after, True, 0, None
        self._bare = bool(self._names)
        self._open()

    def _show(self) -> None:
        if self._cut is None:
            found = MARK.search(self.text, self._mark)
            self._cut = found.start() if found else None
        begun = self.text[:400].lstrip()[:9]
        untold = _UNTOLD.startswith(begun[:8]) and (len(begun) < 9 or begun[8].isupper())
        # Whoever writes on behind a fence writes no call.
        fence = self.text.rfind("```", max(3, self._mark - 3))
        ended = fence >= 0 and begun.startswith("```") and self.text[fence + 3 :].strip() != ""
        self._bare = self._bare and not ended and may_be_calls(self.text, self._names)
        self._mark = max(0, len(self.text) - _LONGEST)
        end = self._cut
        if end is None:
            half = HALF_MARK.search(self.text, self._mark)
            end = half.start() if half else len(self.text)
        hidden = self._bare or untold or (self._held and not self.closed)
        shown = "" if hidden else self.text[:end]
        self.draft = shown.lstrip() if self.thought else shown
