"""Calls of tools that are written as text: how a model is asked for them, and how they are read.

Rule 1: what stands between a model's own marks is a call, whatever tool it names; it is never shown.
Rule 2: JSON without marks is one if it is the whole answer and names a tool that was offered.
Rule 3: what is quoted, or within code, is no call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from bot.core.patterns import LazyPattern
from bot.llm.base import ChatMessage, ModelRequest, ToolCall, ToolSpec
from bot.llm.openai_format import tools_json

_MARKS = {
    "<tool_call>": "</tool_call>",
    "<tool_calls>": "</tool_calls>",
    "<tool_use>": "</tool_use>",
    "<function_calls>": "</function_calls>",
    "<function=": "</function>",
    "<invoke ": "</invoke>",
    "[TOOL_CALLS]": "[/TOOL_CALLS]",
    "<|tool_call|>": "<|/tool_call|>",
    "<|tool_call>": "<tool_call|>",
    "<|python_tag|>": "<|eom_id|>",
    "<|start|>assistant<|channel|>commentary": "<|call|>",
    "<|channel|>commentary": "<|call|>",
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>",
}
"""The marks of Hermes and Qwen, Claude, Llama, Mistral, Granite, Gemma, gpt-oss, Kimi, MiniMax and DeepSeek."""

_CALL = LazyPattern(
    r"```[\s\S]*?(?:```|\Z)|`[^`\n]*`|(" + "|".join(map(re.escape, _MARKS)) + ")",
)
_NAMESPACE = LazyPattern(r"(</?)(?:antml:|minimax:|｜DSML｜)")
_FENCED = LazyPattern(r"```\w{0,20}")
_FUNCTION = LazyPattern(r'<(?:function=|invoke\s+name=)"?([\w.:-]{1,100})"?[^>]{0,20}>')
_PARAMETER = LazyPattern(r'<(?:parameter=|parameter\s+name=)"?([\w.:-]{1,100})"?[^>]{0,20}>')
_WORD = LazyPattern(r"[\w.-]{1,100}")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
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


def read_calls(text: str, tools: Sequence[ToolSpec], *, bare: bool) -> tuple[str, list[ToolCall]]:
    """Return an answer without the calls that are written in it, and the calls.

    Args:
        text: The answer.
        tools: The tools that were offered.
        bare: Whether JSON without marks may be one.
    """
    offered = {tool.name: tool for tool in tools}
    if bare and (whole := _whole_json(text)):
        calls = list(_calls(whole, offered))
        if calls and all(one.name in offered for one in calls):
            return "", calls
    given, text = text, _NAMESPACE.sub(r"\1", text)
    kept, calls, place = [], [], 0
    while (found := _CALL.search(text, place)) is not None:
        if found[1] is None:
            kept.append(text[place : found.end()])
            place = found.end()
            continue
        end = text.find(_MARKS[found[1]], found.end())
        end = len(text) if end < 0 else end
        # The marks of one form may be those of another within it.
        begin = found.start() if found[1] in ("<function=", "<invoke ") else found.end()
        calls += _calls(text[begin:end], offered)
        kept.append(text[place : found.start()])
        place = end + len(_MARKS[found[1]])
    kept.append(text[place:])
    return ("".join(kept).strip() if calls else given), calls


def _whole_json(text: str) -> str:
    """Return the JSON of which a text consists, perhaps within a fence; empty if it has anything else."""
    text = text.strip()
    if (fenced := _FENCED.match(text)) is not None and text.endswith("```"):
        text = text[fenced.end() : -3].strip()
    named = any(f'"{key}"' in text for key in _ARGUMENTS)
    return text if named and text[:1] in {"{", "["} and text[-1] in "}]" else ""


def _calls(written: str, offered: dict[str, ToolSpec]) -> Iterator[ToolCall]:
    written = written.replace("[ARGS]", " ")
    if "<arg_key>" in written:
        name, _, rest = written.partition("<arg_key>")
        rest = rest.replace("<arg_key>", "<parameter=").replace("</arg_key>", ">")
        rest = rest.replace("<arg_value>", "").replace("</arg_value>", "</parameter>")
        written = f"<function={name.strip()}><parameter={rest}"
    heads = list(_FUNCTION.finditer(written))
    for head, after in zip(
        heads, [*(one.start() for one in heads[1:]), len(written)], strict=False
    ):
        body = written[head.end() : after]
        if found := _parameters(body, offered.get(head[1])):
            yield ToolCall("", head[1], json.dumps(found, ensure_ascii=False))
        else:
            begin, end = body.find("{"), body.rfind("}")
            yield ToolCall("", head[1], body[begin : end + 1] if 0 <= begin < end else "{}")
    place = len(written) if heads else 0
    while (
        begin := min((at for at in map(written.find, "{[", (place, place)) if at >= 0), default=-1)
    ) >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(written, begin)
        except (ValueError, RecursionError):
            return
        before, place = written[place:begin], end
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict) and (call := _call(one, before, offered)) is not None:
                yield call


def _call(one: dict[str, Any], before: str, offered: dict[str, ToolSpec]) -> ToolCall | None:
    """Return the call that JSON makes: with its name in it, or as the arguments of a name before it."""
    inner = one.get("function")
    told: dict[str, Any] = inner if isinstance(inner, dict) else one
    name = told.get("name")
    arguments: Any = next((told[key] for key in _ARGUMENTS if key in told), {})
    if not isinstance(name, str) or not set(told) <= {"name", "id", "type", *_ARGUMENTS}:
        words = [word.rpartition("functions.")[2] for word in _WORD.findall(before)]
        name, arguments = next((word for word in reversed(words) if word in offered), None), one
    if name is None:
        return None
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall("", name, text)


def _parameters(body: str, tool: ToolSpec | None) -> dict[str, Any]:
    """Return arguments that stand between tags of their names; those that are no texts are JSON."""
    known = tool.parameters.get("properties", {}) if tool is not None else {}
    heads = list(_PARAMETER.finditer(body))
    found: dict[str, Any] = {}
    for head, after in zip(heads, [*(one.start() for one in heads[1:]), len(body)], strict=False):
        text = body[head.end() : after].partition("</parameter>")[0].strip()
        found[head[1]] = text
        if known.get(head[1], {}).get("type") != "string":
            try:
                found[head[1]] = json.loads(text)
            except (ValueError, RecursionError):
                continue
    return found
