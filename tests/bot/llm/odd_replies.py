"""Replies of real servers that differ from the documented format; see ``test_odd_replies.py``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from bot.core.errors import ModelError, ModelRejected, TransientModelError
from testkit.openai_server import Raw

DONE = "[DONE]"


@dataclass(frozen=True)
class Odd:
    """A reply, and what it means."""

    name: str
    events: tuple[object, ...]
    content: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    error: type[ModelError] | None = None
    ending: str = "stop"
    whole: bool = False
    separator: str = "\n\n"

    def step(self) -> Raw:
        if self.whole:
            return Raw(self.text(self.events[0]).encode())
        lines = [
            one
            if isinstance(one, str) and one.startswith((":", "\ufeff"))
            else f"data: {self.text(one)}"
            for one in self.events
        ]
        return Raw(
            (self.separator.join(lines) + self.separator).replace("\ufeff\n\n", "\ufeff").encode()
        )

    @staticmethod
    def text(event: object) -> str:
        return event if isinstance(event, str) else json.dumps(event)


def chunk(delta: object = None, ending: object = None, **fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": ending}], **fields}


def text(words: str, ending: object = None) -> dict[str, object]:
    return chunk({"content": words}, ending)


def call(
    index: object, name: object, arguments: object, call_id: object = None
) -> dict[str, object]:
    function = {"name": name, "arguments": arguments}
    one = {"index": index, "id": call_id, "type": "function", "function": function}
    return {key: value for key, value in one.items() if value is not None}


def called(fragment: object) -> dict[str, object]:
    return chunk({"tool_calls": [fragment]})


STOP = chunk({}, "stop")
WHOLE = {
    "message": {"content": "Hi", "tool_calls": [call(None, "memory_save", "{}", "a")]},
    "finish_reason": "tool_calls",
}
TEA = (("tape_search", '{"q": "tea"}'),)
BOTH = (*TEA, ("memory_save", "{}"))
IN_TURNS = [
    ("tape_search", '{"q"', "a"),
    ("memory_save", "{", "b"),
    (None, ': "tea"}', "a"),
    (None, "}", "b"),
]

ODD = [
    Odd(
        "comments keep the connection alive (openai/openai-go#227)",
        (": OPENROUTER PROCESSING", ": OPENROUTER PROCESSING", text("Hi"), STOP, DONE),
        "Hi",
    ),
    Odd(
        "an error without choices, after status 200 (diegosouzapw/OmniRoute#8210)",
        ({"choices": [], "error": {"code": 502, "message": "Worker limit reached (33/32)"}},),
        error=TransientModelError,
    ),
    Odd(
        "an error within a chunk, after some text (damianvtran/local-operator#223)",
        (
            text("Half"),
            {**chunk({"content": ""}, "error"), "error": {"code": 502, "message": "disconnected"}},
        ),
        error=TransientModelError,
    ),
    Odd(
        "half a call, and no reason at all (earendil-works/pi#6225)",
        (chunk({"tool_calls": [call(0, "tape_search", '{"q": "te', "x")]}),),
        error=TransientModelError,
    ),
    Odd(
        "a whole answer is an error, with status 200",
        ({"error": {"code": 429, "message": "Provider returned error"}},),
        error=TransientModelError,
        whole=True,
    ),
    Odd(
        "an ending in capitals",
        (text("Half"), chunk({}, "MAX_TOKENS"), DONE),
        "Half",
        ending="length",
    ),
    *(
        Odd(f"content as {content}", (chunk({"content": content}), STOP, DONE), "Hi")
        for content in (
            [{"type": "reasoning", "text": "Hm"}, {"type": "text", "text": "Hi"}],
            [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}, "H", "i"],
            {"type": "text", "text": {"value": "Hi"}},
        )
    ),
    *(
        Odd(f"ends as {ending}", (chunk({}, ending), DONE), error=ModelRejected)
        for ending in ("content_filter", "SAFETY")
    ),
    *(
        Odd(
            f"fragments as {parts}",
            (*map(called, parts), STOP, DONE),
            "",
            calls,
            None,
            "tool_calls",
        )
        for parts, calls in (
            # continuedev/continue#5849, AstrBotDevs/AstrBot#6661, ollama/ollama#15457
            ([call(0, "tape_", "", "a"), call(0, "search", '{"q"'), call(0, "", ': "tea"}')], TEA),
            ([call(None, "tape_", None), call(None, "tape_search", '{"q": "tea"}')], TEA),
            (
                [call(0, "tape_search", one, "a") for one in ("``", '`json\n{"q": "tea"}', "```")],
                TEA,
            ),
            ([call(0, "functions.tape_search<|channel|>json", [{"q": "tea"}])], TEA),
            ([{"id": "a", "name": "tape_search", "arguments": "{'q': 'tea'}"}], TEA),
            (
                [call(0, "tape_search", '{"q": "tea"}', "x"), call(0, "memory_save", "{}", "y")],
                BOTH,
            ),
            ([call(None, name, one, key) for name, one, key in IN_TURNS], BOTH),
        )
    ),
    *(
        Odd(f"{choices} messages", events, "Hi" * choices, BOTH[1:], None, "tool_calls", whole)
        for choices, whole, events in (
            (1, False, ({"choices": [WHOLE]}, DONE)),
            (2, True, ({"choices": [{"message": {"content": "Hi"}}, WHOLE]},)),
        )
    ),
]

THOUGHTS = {
    "opened and closed": "<think>\nHm, <b>.\n</think>\n\nThe answer.",
    "opened by the server": "Hm, <b>.\n</think>\n\nThe answer.",
    "another tag": "<thinking>Hm</thinking>The answer.",
    "in diamonds": "◁think▷Hm◁/think▷The answer.",
    "channels": "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>The answer.<|return|>",
    "channels without their marks": "analysisHm, the user asks.assistantfinalThe answer.",
}
"""Reasoning in the text of an answer, as servers without a parser for it send it."""

CLAUDE = '<function_calls>\n<invoke name="tape_search">\n<parameter name="q" string="true">tea</parameter>\n</invoke>\n</function_calls>'
WRITTEN = {
    "Hermes": '<tool_call>\n{"name": "tape_search", "arguments": {"q": "tea"}}\n</tool_call>',
    "with words before it": 'I look.\n<tool_call>{"name": "tape_search", "arguments": {"q": "tea"}}</tool_call>',
    "Qwen 3 Coder": "<tool_call>\n<function=tape_search>\n<parameter=q>\ntea\n</parameter>\n</function>\n</tool_call>",
    "Llama": '<function=tape_search>{"q": "tea"}</function>',
    "Mistral": '[TOOL_CALLS][{"name": "tape_search", "arguments": {"q": "tea"}}]',
    "GLM": "<tool_call>tape_search\n<arg_key>q</arg_key>\n<arg_value>tea</arg_value>\n</tool_call>",
    "Claude": CLAUDE,
    "Claude's own": re.sub("</?", r"\g<0>antml" ":", CLAUDE),
    "MiniMax": '<minimax:tool_call>\n<invoke name="tape_search">\n<parameter name="q">tea</parameter>\n</invoke>\n</minimax:tool_call>',
    "DeepSeek 3.2": re.sub("</?", r"\g<0>｜DSML｜", CLAUDE),
    "DeepSeek": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>tape_search\n```json\n{"q": "tea"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "Kimi": '<|tool_calls_section_begin|><|tool_call_begin|>functions.tape_search:0<|tool_call_argument_begin|>{"q": "tea"}<|tool_call_end|><|tool_calls_section_end|>',
    "gpt-oss": '<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary to=functions.tape_search <|constrain|>json<|message|>{"q": "tea"}<|call|>',
    "DeepSeek 4": '<｜｜DSML｜｜tool_calls>\n<｜｜DSML｜｜invoke name="tape_search">\n<｜｜DSML｜｜parameter name="q">tea</｜｜DSML｜｜parameter>',
    "Llama 4": '[tape_search(q="tea")]',
    "Llama 4, marked": "<|python_start|>[tape_search(q='tea')]<|python_end|>",
    "Phi": 'functools[{"name": "tape_search", "arguments": {"q": "tea"}}]',
    "Gemma": 'call:tape_search{q:<|"|>tea<|"|>}',
    "Gemma in Python": '```tool_code\nprint(default_api.tape_search(q="tea"))\n```',
    "LM Studio": '[tape_search]\n{"q": "tea"}\n[END_TOOL_REQUEST]',
    "gpt-oss, its marks lost": 'analysisHm.assistantcommentary to=functions.tape_search json{"q": "tea"}',
    "a named tag": '<tool_call name="tape_search">\n```json\n{"q": "tea"}\n```\n</tool_call>',
    "Python's quotes": "<tool_call>{'name': 'tape_search', 'arguments': [{'q': 'tea'}]}</tool_call>",
    "a fence": '```json\n{"name": "tape_search", "arguments": {"q": "tea"}}\n```',
}
"""A call in the text of an answer, in the forms of many models."""

PLAIN = [
    "Models think between `<think>` and `</think>`:\n```\n<think>\nHm<|im_end|>\n</think>\n```\nSo.",
    'Write ``<tool_call>{"name": "tape_search", "arguments": {"q": "`"}}</tool_call>`` so:\n~~~\n<tool_call>{"name": "tape_search", "arguments": {}}</tool_call>\n~~~\nThat is all.',
    '[{"name": "tape_search"}, {"name": "Ada", "age": 36}]',
    f"```xml\n{WRITTEN['Hermes']}\n```",
    '```python\ntape_search(q="tea")\n```',
    "The <tool_call> tag opens one, and tape_search (a tool) is called with functools[0] in it.",
    '[tape_search] is a tool: [tape_search(q="tea")] calls it.',
    f"> {WRITTEN['Llama']}\n\nIt has {WRITTEN['Hermes']}, and {WRITTEN['Mistral']}, which I ignore.",
    '<tools>\n<tool name="hammer"/>\n</tools>',
    f"The page ends so:\n{WRITTEN['Hermes']}",
]
"""Answers that only speak of such things, or quote a page that has the first of ``WRITTEN``."""
