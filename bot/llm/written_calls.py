"""Calls of tools that are written as text: how a model is asked for them, and how they are read.

Rule 1: what stands between a model's own marks is a call where nothing follows it, or where it has its lines
    for itself; tags that other texts have as well must name a tool that was offered.
Rule 2: without marks, an answer is a call if it has nothing else, and names tools that were offered.
Rule 3: what is quoted, within code, or word for word in what the model was given, is none, but is shown.
Rule 4: a value is JSON, or what models take for it: Python's words and quotes, keys without quotes,
    and calls as ``name(key=value)``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bot.core.patterns import LazyPattern
from bot.llm.base import ChatMessage, ModelRequest, ToolCall, ToolSpec
from bot.llm.openai_format import flatten_content, tools_json

_MARKS = {
    "[TOOL_CALLS]": "[/TOOL_CALLS]",
    "[TOOL_REQUEST]": "[END_TOOL_REQUEST]",
    "functools[": "",
    "<|tool_call|>": "<|/tool_call|>",
    "<|tool_call>": "<tool_call|>",
    "<|tool_call_start|>": "<|tool_call_end|>",
    "<|tool_call_begin|>": "<|tool_call_end|>",
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",
    "<|tools_prefix|>": "<|tools_suffix|>",
    "<|action_start|>": "<|action_end|>",
    "<|START_ACTION|>": "<|END_ACTION|>",
    "<|python_start|>": "<|python_end|>",
    "<|python_tag|>": "<|eom_id|>",
    "<|start|>assistant<|channel|>commentary to=": "<|call|>",
    "<|start|>assistant to=": "<|call|>",
    "<|channel|>commentary to=": "<|call|>",
    "commentary to=functions.": "<|call|>",
    "to=functions.": "<|call|>",
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>": "<｜tool▁call▁end｜>",
}
"""What Mistral, LM Studio, Phi, Granite, Gemma, LFM, Kimi, Apertus, InternLM, Command, Llama, gpt-oss and DeepSeek
write before and after calls; "" is the end of the text."""

_SPACE = r"(?:[A-Za-z]{2,12}[:_]|[|｜‖]{1,2}DSML[|｜‖]{1,2})?"
_TAG = (
    _SPACE
    + r"(?:tool_?calls?|TOOL_?CALLS?|tool_use|function_?calls?|function(?==|\sname=)|invoke|tools(?=>)"
    r"|tool_res(?:ponse|ults?)|function_results?)"
)
"""The tags of all others, with the names that servers put before them: ``antml:``, ``minimax:``, ``start_``."""

CODE = r"(?P<fence>`{3,}|^~{3,})[\s\S]*?(?:(?P=fence)|\Z)|(?P<ticks>``?)[^\n]*?(?P=ticks)"
_OPENING = LazyPattern(
    rf"{CODE}|^\s{{0,3}}>.*|(?<=\n\n)(?:\x20{{4}}|\t).*"
    rf"|(?P<mark>{'|'.join(map(re.escape, _MARKS))})|<(?P<tag>{_TAG})(?:[=\s][^<>]{{0,200}})?>",
    re.MULTILINE,
)
"""Code and quotations, or what opens a call."""

_BLANK = LazyPattern(r"(?:[\s;,]|</[\w:|｜-]{1,40}>|<\|\w{1,40}\|>|\[/?[A-Z_]{3,20}\])*+")
"""What may stand between calls, and behind them."""

MARK = LazyPattern(
    rf"<[|｜‖]{{1,2}}[A-Za-z/]|<{_TAG}|\[TOOL_|functools\[|(?:commentary )?to=functions\."
)
"""What a call may begin with, if no more text has come."""

HALF_MARK = LazyPattern(
    r"(?:<[^\s<>]{0,32}(?:>|\sn?a?m?e?)?|\[[A-Z_]{0,5}|\bfunc(?:t|to|too|tool|tools)?"
    r"|(?:\A|\n|assistant)(?:comm[a-z]{0,6}(?: (?:to?)?)?|to?)(?:=[a-z]{0,9})?)\Z"
)
_NAMED_TAG = LazyPattern(
    rf"<{_SPACE}(?:tool_?call|tool_use|tool|function_?call|function|invoke)(?:=|\s{{1,9}}(?:name|function|tool)=)"
    r"[\"']?([\w.:/-]{1,100})[\"']?[^<>]{0,100}>"
)
_PARAMETER = LazyPattern(
    rf"<{_SPACE}(?:param(?:eter)?|arg(?:ument)?)(?:=|\s{{1,9}}name=)[\"']?([\w.:-]{{1,100}})[\"']?[^<>]{{0,40}}>"
    r"|<arg_key>\s{0,9}([\w.:-]{1,100})\s{0,9}</arg_key>\s{0,9}(?:<arg_value>)?"
)
_PARAMETER_END = LazyPattern(rf"</{_SPACE}(?:param(?:eter)?|arg(?:ument|_value)?)>")
_FENCED = LazyPattern(r"\s*```(?:json|tool_\w{1,10})?\s([\s\S]*)```\s*")
_PRINTED = LazyPattern(r"\s*print\(([\s\S]*)\)\s*")
_WORD = LazyPattern(r"[\w.:/-]{1,100}")
_CALL_WORDS = LazyPattern(
    r"[\s;,\[\]]*+(?:call:|functions\.|default_api[.:])?(?P<name>[\w.-]{0,100})[\s\]]*+"
)
_CALL_LIKE = LazyPattern(
    r"\s*(?:```\w{0,20}\s+)?(?:(?:[\w.:/-]{1,100}\s{0,9}){0,2}[{\[<]|[\w.:/-]{1,100}\()"
)
_ONLY_NAME = LazyPattern(r"\s*+(?:<[^<>]{0,200}>)?\s*+([\w.:/-]{1,100})\s*+")
_WRITTEN_NAME = LazyPattern(
    r"[\"']name[\"']\s{0,9}:\s{0,9}[\"']([\w.:-]{1,100})[\"'](?:\s{0,9},\s{0,9}[\"']\w{4,10}[\"']\s{0,9}:)?"
)

_VALUE = LazyPattern(r"[{\[]|(?<![\w.])[A-Za-z_][\w.]{0,99}\(")
_BEGIN = LazyPattern(r"\s*(?=[{\[])")
_TOKEN = LazyPattern(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*')"""
    r"""|(?:<\|"\|>(?P<marked>[\s\S]*?)<\|"\|>|<escape>(?P<escaped>[\s\S]*?)<escape>)"""
    r"""|(?P<word>[^\s,:={}\[\]()"'<>]+(?:\x20+[^\s,:={}\[\]()"'<>]+)*)(?:\s*(?P<after>[=:(]))?"""
    r"""|(?P<sign>[{}\[\],:]|\)))"""
)
_NUMBER = LazyPattern(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LITERALS = {"true": "true", "false": "false", "none": "null", "null": "null"}
_CLOSING = {"{": "}", "[": "]"}
_SIGNS = LazyPattern(r"(?:\\[nrt]|\W)+")
_QUOTE = LazyPattern(r"\\[\s\S]|\"")
_DEEPEST = 32
_DECODER = json.JSONDecoder(strict=False)

_NAMES = ("name", "tool_name", "tool", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input", "tool_input", "kwargs")
_OTHERS = frozenset({"id", "type", "index", "tool_call_id", *_NAMES, *_ARGUMENTS})
_ASK = """

# Tools
You can call tools. To call one, write this and nothing after it, with JSON between the tags:
<tool_call>
{"name": "...", "arguments": {...}}
</tool_call>
The result follows as the next message, between <tool_response> tags. These are the tools:
"""


def as_text(request: ModelRequest) -> ModelRequest:
    """Return a request without tools: they are described, and calls and results are texts."""
    if not request.tools:
        return request
    listed = "\n".join(json.dumps(one["function"]) for one in tools_json(request.tools))
    asked = f"{_ASK}{listed}"
    if request.tool_choice == "none":
        asked += "\nCall none now."
    elif request.tool_choice != "auto":
        asked += f"\nCall {request.tool_choice} now."
    messages: list[ChatMessage] = []
    for message in request.messages:
        one = _as_text(message)
        before = messages[-1] if messages else {}
        both = [before.get("content"), one["content"]]
        if before.get("role") == one["role"] and all(isinstance(text, str) for text in both):
            messages[-1] = {**before, "content": "\n\n".join(map(str, both))}
        else:
            messages.append(one)
    messages[0] = {**messages[0], "content": f"{messages[0]['content']}{asked}"}
    return replace(request, messages=messages, tools=(), tool_choice="auto", tail_length=0)


def _as_text(message: ChatMessage) -> ChatMessage:
    content = message.get("content") or ""
    if message["role"] == "tool":
        told = f"<tool_response>\n{content}\n</tool_response>"
        return {"role": "user", "content": told}
    for call in message.get("tool_calls") or ():
        function = call["function"]
        written = f'{{"name": "{function["name"]}", "arguments": {function["arguments"]}}}'
        content = f"{content}\n<tool_call>\n{written}\n</tool_call>".lstrip()
    return {"role": message["role"], "content": content}


def may_be_calls(text: str, names: Collection[str]) -> bool:
    """Return whether a text that goes on may turn out to have nothing but calls, as its beginning says."""
    text = text[:400].lstrip()
    if text.startswith("```"):
        info, _, text = text.partition("\n")
        text = text.lstrip()
        if len(info) > 24 or (not text and " " in info):
            return False
    for prefix in ("[", "print(", "call:", "functions.", "default_api.", "default_api:"):
        text = text.removeprefix(prefix).lstrip()
        if prefix.startswith(text):
            return True
    if text[0] == "{" or "```".startswith(text) or MARK.match(text) or HALF_MARK.fullmatch(text):
        return True
    word = _WORD.match(text)
    if word is None or word.end() == len(text):
        return word is not None and any(name.startswith(word[0]) for name in names)
    return word[0].rstrip(":") in names and text[word.end()] in "({]\n"


def read_calls(
    text: str, tools: Sequence[ToolSpec], *, bare: bool, given: Sequence[ChatMessage] = ()
) -> tuple[str, list[ToolCall]]:
    """Return an answer without the calls that are written in it, and the calls.

    Args:
        text: The answer.
        tools: The tools that were offered.
        bare: Whether what has no marks may be one.
        given: The messages that were answered.
    """
    offered = {tool.name: tool for tool in tools}
    quotes = _Quotes(given)
    if bare and (calls := _bare_calls(text, offered)) and not quotes.has(text):
        return "", calls
    groups: list[tuple[int, int, list[ToolCall]]] = []
    for start, end, calls in _marked(text, offered, quotes):
        before = groups[-1] if groups else None
        if before and _BLANK.fullmatch(text, before[1], start):
            groups[-1] = (before[0], end, before[2] + calls)
        elif calls:
            groups.append((start, end, calls))
    kept, found, place = [], [], 0
    for start, end, calls in groups:
        own_lines = not (text[:start].rpartition("\n")[2] + text[end:].partition("\n")[0]).strip()
        if own_lines or _BLANK.fullmatch(text, end):
            kept.append(text[place:start])
            found += calls
            place = end
    if not found:
        return text, []
    rest = text[place:]
    return "".join([*kept, "" if _BLANK.fullmatch(rest) else rest]).strip(), found


def _marked(
    text: str, offered: Mapping[str, ToolSpec], quotes: _Quotes
) -> Iterator[tuple[int, int, list[ToolCall]]]:
    """Yield begin, end and calls of what stands between marks; a result has no calls."""
    place = 0
    while (found := _OPENING.search(text, place)) is not None:
        place, mark, tag = found.end(), found["mark"], found["tag"]
        if mark is None and tag is None:
            continue
        # The bracket after ``functools`` is the list's.
        start = place - (mark == "functools[")
        closing = _MARKS[mark] if mark else f"</{tag}>".replace("</start_", "<end_")
        # What a text in JSON quotes ends nothing.
        end = text.find(closing, _end_of_value(text, start))
        after = len(text) if end < 0 else end + len(closing)
        body = text[start : after if end < 0 else end]
        # Some models go on with what they think that the tool answers.
        if tag and "_res" in tag:
            place = after
            yield found.start(), after, []
        elif _is_call(found[0], text[found.end() : start + len(body)], offered):
            place = after
            if end < 0 and _goes_on(body):
                continue
            # A tag may hold the name.
            written = body if mark else text[found.start() : start + len(body)]
            calls = list(_calls(written, offered)) or _broken(body)
            named = not tag or "call" in tag.lower() or any(one.name in offered for one in calls)
            if calls and named and not quotes.has(text[found.start() : after]):
                yield found.start(), after, calls


class _Quotes:
    """Whether a text stands in messages, however it is spaced and escaped there."""

    def __init__(self, given: Sequence[ChatMessage]) -> None:
        self._given = given
        self._letters: str | None = None

    def has(self, text: str) -> bool:
        """Return whether a user or a tool has written it."""
        if self._letters is None:
            told = flatten_content([one for one in self._given if one["role"] in {"user", "tool"}])
            self._letters = "\n".join(_SIGNS.sub("", one.get("content") or "") for one in told)
        return _SIGNS.sub("", text) in self._letters


def read_value(text: str, place: int = 0) -> tuple[Any, int]:
    """Return a value as a model writes it, and the place of its end.

    Raises:
        ValueError: There is none.
        RecursionError: It is nested too deeply.
    """
    try:
        return _DECODER.raw_decode(text, place)
    except ValueError:
        return _loose_value(text, place)


def _end_of_value(text: str, place: int) -> int:
    """Return the place behind the value that begins at a place; the place itself if none does."""
    found = _BEGIN.match(text, place)
    try:
        return place if found is None else read_value(text, found.end())[1]
    except (ValueError, RecursionError):
        return place


def unfenced(text: str) -> str:
    """Return a text without the fence around it."""
    found = _FENCED.fullmatch(text) if "```" in text else None
    return found[1] if found else text


def _bare_calls(text: str, offered: Mapping[str, ToolSpec]) -> list[ToolCall]:
    """Return the calls of which a text consists; none if it has anything else."""
    text = unfenced(text).strip().removesuffix("[END_TOOL_REQUEST]")
    if (printed := _PRINTED.fullmatch(text)) is not None:
        text = printed[1]
    if not may_be_calls(text, offered):
        return []
    calls, last, name = [], 0, ""
    for before, value, last in _values(text):  # noqa: B007 (the last one's end is asked for below)
        words = _CALL_WORDS.fullmatch(before)
        if words is None or (words["name"] and words["name"] not in offered):
            return []
        name = words["name"] or name
        if isinstance(value, list) and len(value) == 1 and str(value[0]) in offered:
            name = str(value[0])
            continue
        made = list(_made(value, name, offered))
        # A list of tools by their names calls none.
        if not made or any(one.name not in offered or not one.arguments for one in made):
            return []
        calls += made
        name = ""
    return [] if text[last:].strip(" \n\t;,") or name else calls


def _calls(written: str, offered: Mapping[str, ToolSpec]) -> Iterator[ToolCall]:
    """Yield the calls between marks: each of a tag with a name, or all that stand there."""
    heads = list(_NAMED_TAG.finditer(written))
    if not heads:
        yield from _body_calls(written, "", offered)
    ends = [*(one.start() for one in heads[1:]), len(written)]
    for head, end in zip(heads, ends, strict=False):
        body = written[head.end() : end]
        name = offered_name(head[1], offered)
        made = list(_body_calls(body, name, offered))
        _, brace, rest = body.partition("{")
        yield from made or [ToolCall("", name, f"{brace}{rest.rstrip()}" or "{}")]


def _body_calls(body: str, name: str, offered: Mapping[str, ToolSpec]) -> Iterator[ToolCall]:
    parameters = list(_PARAMETER.finditer(body))
    if parameters:
        before = body[: parameters[0].start()]
        name = name or _named(before, offered) or next(iter(_WORD.findall(before)), "")
        found = _read_parameters(body, parameters, offered.get(name))
        yield ToolCall("", name, json.dumps(found, ensure_ascii=False))
        return
    made = 0
    for before, value, _ in _values(body.replace("[ARGS]", " ").replace("[CALL_ID]", " ")):
        for call in _made(value, name or _named(before, offered), offered):
            made += 1
            yield call
    if not made and not name and (only := _ONLY_NAME.fullmatch(body)):
        yield ToolCall("", offered_name(only[1], offered), "{}")


def _is_call(opening: str, body: str, offered: Collection[str]) -> bool:
    """Return whether what follows a mark is a call, rather than what is said of the mark."""
    if "_res" in opening[:40] or not body.strip():
        return _NAMED_TAG.match(opening) is not None
    return bool(_CALL_LIKE.match(body)) or offered_name(body[:100], offered) in offered


def _goes_on(body: str) -> bool:
    """Return whether words follow the values in a text that nothing ends."""
    last = max((end for *_, end in _values(body)), default=len(body))
    written = _BLANK.fullmatch(body, last) or _VALUE.search(body, last) or _PARAMETER.search(body)
    return written is None


def _broken(written: str) -> list[ToolCall]:
    """Return a call of which nothing but the name can be read: the model is told that it is malformed."""
    named = _WRITTEN_NAME.search(written)
    return [ToolCall("", named[1], written[named.end() :].strip())] if named else []


def _values(text: str) -> Iterator[tuple[str, Any, int]]:
    """Yield each value in a text, after what stands before it, and with the place of its end."""
    place = 0
    while (found := _VALUE.search(text, place)) is not None:
        try:
            value, end = read_value(text, found.start())
        except (ValueError, RecursionError):
            return
        yield text[place : found.start()], value, end
        place = end


def _made(value: Any, name: str, offered: Mapping[str, ToolSpec]) -> Iterator[ToolCall]:
    """Yield the calls that a value makes: with names in it, or as the arguments of a name before it."""
    if isinstance(value, list):
        for one in value:
            yield from _made(one, name, offered)
        return
    if not isinstance(value, dict):
        return
    if isinstance(inner := value.get("tool_calls"), list):
        yield from _made(inner, name, offered)
        return
    told = value["function"] if isinstance(value.get("function"), dict) else value
    own = next((told[key] for key in _NAMES if isinstance(told.get(key), str)), "")
    held = [told[key] for key in _ARGUMENTS if key in told]
    given: Any = held[0] if held else ""
    if not own or not _OTHERS.issuperset(told) or (name and not held):
        own, given = name, value
    if own:
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        yield ToolCall("", offered_name(own, offered), text)


def offered_name(name: str, offered: Collection[str]) -> str:
    """Return the offered tool that a name means, in a namespace, with a number or a channel; else the name."""
    parts = re.split("[.:/]", name.partition("<|")[0].strip())
    return next((one for one in (name, *reversed(parts)) if one in offered), name)


def _named(before: str, offered: Collection[str]) -> str:
    """Return the last word of a text that is an offered tool; empty if none is."""
    words = (offered_name(word, offered) for word in reversed(_WORD.findall(before)))
    return next((word for word in words if word in offered), "")


def _read_parameters(
    body: str, heads: Sequence[re.Match[str]], tool: ToolSpec | None
) -> dict[str, Any]:
    """Return arguments that stand between tags of their names; those that are no texts are values."""
    known = tool.parameters.get("properties", {}) if tool is not None else {}
    found: dict[str, Any] = {}
    ends = [*(one.start() for one in heads[1:]), len(body)]
    for head, end in zip(heads, ends, strict=True):
        key = head[1] or head[2]
        closed = _PARAMETER_END.search(body, head.end(), end)
        text = body[head.end() : closed.start() if closed else end].strip()
        found[key] = text
        if known.get(key, {}).get("type") != "string":
            try:
                value, last = read_value(text)
            except (ValueError, RecursionError):
                continue
            found[key] = text if text[last:].strip() else value
    return found


def _loose_value(text: str, place: int) -> tuple[Any, int]:
    """Return a value that is JSON but for its spelling."""
    made: list[str] = []
    opened: list[str] = []
    while (token := _TOKEN.match(text, place)) is not None and len(opened) < _DEEPEST:
        place, sign = token.end(), token["sign"]
        if not sign:
            made.append(_spelled(token))
            opened += ")" * (token["after"] == "(")
        elif sign in _CLOSING:
            opened.append(_CLOSING[sign])
            made.append(sign)
        elif sign in ",:":
            made.append(sign)
        elif opened and sign == opened.pop():
            if made[-1] == ",":
                made.pop()
            made.append("}}" if sign == ")" else sign)
        else:
            break
        if not opened:
            return json.loads("".join(made), strict=False), place
    raise ValueError("no value")


def _spelled(token: re.Match[str]) -> str:
    """Return a word, a text, a key or the beginning of a call as JSON."""
    word, after = token["word"], token["after"]
    if token["quoted"]:
        return _quoted(token["quoted"])
    if not word:
        return json.dumps(token["marked"] or token["escaped"] or "")
    if after == "(":
        return f'{{"name":{json.dumps(word)},"arguments":{{'
    if after:
        return f"{json.dumps(word)}:"
    known = _LITERALS.get(word.lower()) or (word if _NUMBER.fullmatch(word) else "")
    return known or json.dumps(word)


def _quoted(text: str) -> str:
    """Return a string of Python or JSON as JSON."""
    if text[0] == '"':
        return text
    inner = _QUOTE.sub(lambda one: {"\\'": "'", '"': '\\"'}.get(one[0], one[0]), text[1:-1])
    return f'"{inner}"'
