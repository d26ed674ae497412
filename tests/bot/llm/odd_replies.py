"""Replies of real servers that differ from the documented format; see ``test_odd_replies.py``."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bot.core.errors import ModelError, ModelRejected, TransientModelError
from testkit.openai_server import Raw

DONE = "[DONE]"


@dataclass(frozen=True)
class Odd:
    """A reply, and what it means.

    Attributes:
        name: What is odd.
        source: Where it is described.
        events: Events of a stream, as JSON or as text; or one JSON object if ``whole``.
        content: The text of the reply.
        calls: Name and arguments of each call.
        error: The error that it is, if it is one.
        ending: The finish reason.
        usage: Tokens read, served from the cache, and written.
        whole: Whether it is no stream.
        separator: What stands between events.
    """

    name: str
    source: str
    events: tuple[object, ...]
    content: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    error: type[ModelError] | None = None
    ending: str = "stop"
    usage: tuple[int, int, int] | None = None
    whole: bool = False
    separator: str = "\n\n"

    def step(self) -> Raw:
        """Return the step of a scripted server."""
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
        """Return an event as it is sent."""
        return event if isinstance(event, str) else json.dumps(event)


def chunk(delta: object = None, ending: object = None, **fields: object) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": ending}], **fields}


def text(words: str, ending: object = None) -> dict[str, object]:
    return chunk({"content": words}, ending)


def call(index: object, name: str, arguments: object, call_id: object = None) -> dict[str, object]:
    function = {"name": name, "arguments": arguments}
    one = {"index": index, "id": call_id, "type": "function", "function": function}
    return {key: value for key, value in one.items() if value is not None}


STOP = chunk({}, "stop")

ODD = [
    Odd(
        "comments keep the connection alive",
        "openai/openai-go#227",
        (": OPENROUTER PROCESSING", ": OPENROUTER PROCESSING", text("Hi"), STOP, DONE),
        "Hi",
    ),
    Odd(
        "a gateway makes data of a comment",
        "mnfst/llm-gateway#2053",
        (" : OPENROUTER PROCESSING", text("Hi"), STOP, DONE),
        "Hi",
    ),
    Odd(
        "an error without choices, after status 200",
        "diegosouzapw/OmniRoute#8210",
        ({"choices": [], "error": {"code": 502, "message": "Worker limit reached (33/32)"}},),
        error=TransientModelError,
    ),
    Odd(
        "an error within a chunk, after some text",
        "damianvtran/local-operator#223",
        (
            text("Half"),
            {**chunk({"content": ""}, "error"), "error": {"code": 502, "message": "disconnected"}},
        ),
        error=TransientModelError,
    ),
    Odd(
        "an error as text, without an end of the stream",
        "bigduu/Bamboo-agent#98",
        (text("Half"), {"error": "internal failure"}),
        error=TransientModelError,
    ),
    Odd(
        "an error of the request, within a stream",
        "vllm-project/vllm",
        ({"error": {"code": 400, "message": "bad guided grammar", "type": "BadRequestError"}},),
        error=ModelRejected,
    ),
    Odd(
        "two calls, both of index 0",
        "ollama/ollama#15457",
        (
            chunk({"tool_calls": [call(0, "tape_search", '{"a": 1}', "x")]}),
            chunk({"tool_calls": [call(0, "memory_save", '{"b": 2}', "y")]}),
            chunk({}, "tool_calls"),
            DONE,
        ),
        calls=(("tape_search", '{"a": 1}'), ("memory_save", '{"b": 2}')),
        ending="tool_calls",
    ),
    Odd(
        "a call without an index",
        "ollama/ollama#7881",
        (chunk({"tool_calls": [call(None, "tape_search", "{}", "x")]}), STOP, DONE),
        calls=(("tape_search", "{}"),),
        ending="tool_calls",
    ),
    Odd(
        "calls, and the reason is stop",
        "sgl-project/sglang#7708",
        (chunk({"tool_calls": [call(0, "tape_search", "{}", "x")]}), STOP, DONE),
        calls=(("tape_search", "{}"),),
        ending="tool_calls",
    ),
    Odd(
        "a whole call, and no reason at all",
        "earendil-works/pi#6225",
        (chunk({"tool_calls": [call(0, "tape_search", '{"q": "tea"}', "x")]}),),
        calls=(("tape_search", '{"q": "tea"}'),),
        ending="tool_calls",
    ),
    Odd(
        "half a call, and no reason at all",
        "earendil-works/pi#6225",
        (chunk({"tool_calls": [call(0, "tape_search", '{"q": "te', "x")]}),),
        error=TransientModelError,
    ),
    Odd(
        "no reason, but the end mark",
        "openclaw/openclaw#98575",
        (text("All of it."), DONE),
        "All of it.",
    ),
    Odd(
        "reasons that are empty",
        "ollama/ollama#4357",
        (text("Hel", ""), text("lo", ""), chunk({"content": ""}, "stop"), DONE),
        "Hello",
    ),
    Odd(
        "reasoning beside null fields",
        "sgl-project/sglang#6310",
        (
            chunk({"role": None, "content": None, "reasoning_content": "Hm", "tool_calls": None}),
            text("Yes"),
            STOP,
        ),
        "Yes",
    ),
    Odd(
        "content is a list of thoughts and text",
        "symfony/ai#2422",
        (
            chunk(
                {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}]}
            ),
            chunk({"content": [{"type": "text", "text": "42"}]}, "stop"),
        ),
        "42",
    ),
    Odd(
        "content is a list, in a whole answer",
        "langchain4j/langchain4j#4474",
        (
            {
                "choices": [
                    {
                        "message": {
                            "content": [
                                {"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
                                {"type": "text", "text": "42"},
                            ]
                        },
                        "finish_reason": "stop",
                    }
                ]
            },
        ),
        "42",
        whole=True,
    ),
    Odd(
        "a character's two halves in two chunks",
        "elie222/rakazo#416",
        (
            '{"choices":[{"delta":{"content":"a \\ud83d"}}]}',
            '{"choices":[{"delta":{"content":"\\ude00 b"}}]}',
            STOP,
        ),
        "a 😀 b",
    ),
    Odd(
        "half a character alone",
        "elizaOS/eliza#30904",
        ('{"choices":[{"delta":{"content":"a \\ude00 b"}}]}', STOP),
        "a \ufffd b",
    ),
    Odd(
        "lines end with a return, and no space follows the colon",
        "html.spec.whatwg.org/multipage/server-sent-events.html",
        (text("Hi"), STOP, DONE),
        "Hi",
        separator="\r\n\r\n",
    ),
    Odd(
        "no empty lines between events",
        "html.spec.whatwg.org/multipage/server-sent-events.html",
        (text("Hi"), STOP, DONE),
        "Hi",
        separator="\n",
    ),
    Odd(
        "an event over several lines",
        "html.spec.whatwg.org/multipage/server-sent-events.html",
        (json.dumps(text("Hi"), indent=1).replace("\n", "\ndata: "), STOP, DONE),
        "Hi",
    ),
    Odd(
        "usage in a field of the provider",
        "console.groq.com/docs/api-reference",
        (
            text("Hi"),
            {**STOP, "x_groq": {"usage": {"prompt_tokens": 30, "completion_tokens": 2}}},
            DONE,
        ),
        "Hi",
        usage=(30, 0, 2),
    ),
    Odd(
        "cached tokens under another name",
        "api-docs.deepseek.com/guides/kv_cache",
        (
            text("Hi"),
            {
                **STOP,
                "usage": {
                    "prompt_tokens": 900,
                    "completion_tokens": 2,
                    "prompt_cache_hit_tokens": 640,
                    "prompt_cache_miss_tokens": 260,
                },
            },
            DONE,
        ),
        "Hi",
        usage=(900, 640, 2),
    ),
    Odd(
        "reasoning is counted in the total only",
        "docs.x.ai/docs/guides/reasoning",
        (
            text("Hi"),
            {
                **STOP,
                "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 112},
            },
            DONE,
        ),
        "Hi",
        usage=(10, 0, 102),
    ),
    Odd(
        "usage with each chunk",
        "vllm-project/vllm: continuous_usage_stats",
        (
            {**text("H"), "usage": {"prompt_tokens": 10, "completion_tokens": 1}},
            {**text("i"), "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
            STOP,
        ),
        "Hi",
        usage=(10, 0, 2),
    ),
    Odd(
        "the first chunk has no choices",
        "learn.microsoft.com/azure/ai-services/openai",
        ({"choices": [], "prompt_filter_results": []}, text("Hi"), STOP, DONE),
        "Hi",
    ),
    Odd(
        "the reason for the end has another name",
        "docs.mistral.ai/api",
        (text("Half"), chunk({"content": ""}, "model_length"), DONE),
        "Half",
        ending="length",
    ),
    Odd(
        "the system is overloaded, and the text ends",
        "api-docs.deepseek.com/api/create-chat-completion",
        (text("Half"), chunk({"content": ""}, "insufficient_system_resource"), DONE),
        error=TransientModelError,
    ),
    Odd(
        "empty lines before a whole answer",
        "api-docs.deepseek.com/quick_start/rate_limit",
        ('\n\n\n{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}',),
        "Hi",
        whole=True,
    ),
    Odd(
        "a refusal in a field of its own",
        "platform.openai.com/docs/guides/structured-outputs",
        (
            {
                "choices": [
                    {
                        "message": {"content": None, "refusal": "I cannot help with that."},
                        "finish_reason": "stop",
                    }
                ]
            },
        ),
        "I cannot help with that.",
        whole=True,
    ),
    Odd(
        "a whole answer is an error, with status 200",
        "openrouter.ai/docs/api-reference/errors",
        ({"error": {"code": 429, "message": "Provider returned error"}},),
        error=TransientModelError,
        whole=True,
    ),
    Odd(
        "a mark of the byte order before the first event",
        "encoding.spec.whatwg.org",
        ("\ufeff", text("Hi"), STOP, DONE),
        "Hi",
    ),
    Odd(
        "a refusal in a field of its own, in pieces",
        "platform.openai.com/docs/guides/structured-outputs",
        (chunk({"refusal": "I cannot "}), chunk({"refusal": "help."}), STOP, DONE),
        "I cannot help.",
    ),
    Odd(
        "a content filter took the answer",
        "learn.microsoft.com/azure/ai-services/openai/concepts/content-filter",
        (chunk({"content": None}), chunk({}, "content_filter"), DONE),
        error=ModelRejected,
    ),
    Odd(
        "the limit was reached while it thought",
        "vllm-project/vllm",
        (text("<think>Hm, hm"), chunk({}, "length"), DONE),
        error=ModelRejected,
    ),
]

THOUGHTS = {
    "opened and closed": "<think>\nHm, <b>.\n</think>\n\nThe answer.",
    "opened by the server": "Hm, <b>.\n</think>\n\nThe answer.",
    "another tag": "<thinking>Hm</thinking>The answer.",
    "capitals": "<Think>Hm</Think> The answer.",
    "twice": "<think>Hm</think>\n<think>Hm</think>\nThe answer.",
    "in brackets": "[THINK]Hm[/THINK]The answer.",
    "in diamonds": "◁think▷Hm◁/think▷The answer.",
    "channels": "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>The answer.<|return|>",
    "channels without ends": "<|channel|>analysis<|message|>Hm<|channel|>final<|message|>The answer.",
    "only the last channel": "<|channel|>final<|message|>The answer.",
    "channels without their marks": "analysisHm, the user asks.assistantfinalThe answer.",
    "a stray end": "</think>\nThe answer.",
}
"""Reasoning in the text of an answer, as servers without a parser for it send it."""

WRITTEN = {
    "Hermes": '<tool_call>\n{"name": "tape_search", "arguments": {"q": "tea"}}\n</tool_call>',
    "Hermes, not closed": '<tool_call>{"name": "tape_search", "arguments": {"q": "tea"}}',
    "with words before it": 'I look.\n<tool_call>{"name": "tape_search", "arguments": {"q": "tea"}}</tool_call>',
    "after a thought": '<think>Hm</think><tool_call>{"name": "tape_search", "arguments": {"q": "tea"}}</tool_call>',
    "Qwen 3 Coder": "<tool_call>\n<function=tape_search>\n<parameter=q>\ntea\n</parameter>\n</function>\n</tool_call>",
    "Llama": '<function=tape_search>{"q": "tea"}</function>',
    "Llama 3": '<|python_tag|>{"name": "tape_search", "parameters": {"q": "tea"}}',
    "Mistral": '[TOOL_CALLS][{"name": "tape_search", "arguments": {"q": "tea"}}]',
    "Mistral, newer": '[TOOL_CALLS]tape_search[ARGS]{"q": "tea"}',
    "GLM": "<tool_call>tape_search\n<arg_key>q</arg_key>\n<arg_value>tea</arg_value>\n</tool_call>",
    "Claude": '<function_calls>\n<invoke name="tape_search">\n<parameter name="q">tea</parameter>\n</invoke>\n</function_calls>',
    "DeepSeek": '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>tape_search\n```json\n{"q": "tea"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "Kimi": '<|tool_calls_section_begin|><|tool_call_begin|>functions.tape_search:0<|tool_call_argument_begin|>{"q": "tea"}<|tool_call_end|><|tool_calls_section_end|>',
    "gpt-oss": '<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary to=functions.tape_search <|constrain|>json<|message|>{"q": "tea"}<|call|>',
    "a fence": '```json\n{"name": "tape_search", "arguments": {"q": "tea"}}\n```',
    "nothing else": '{"name": "tape_search", "arguments": {"q": "tea"}}',
    "its function": '{"function": {"name": "tape_search", "arguments": "{\\"q\\": \\"tea\\"}"}}',
}
"""A call in the text of an answer, in the forms of many models."""

PLAIN = [
    "Models think between `<think>` and `</think>`; the rest is the answer.",
    "It is:\n```\n<think>\nHm\n</think>\n```\nSo.",
    "End it with `</think>`.",
    "Is 1 < 2, or [T] more?",
    'Write `<tool_call>{"name": "tape_search", "arguments": {}}</tool_call>` for that.',
    'So:\n```json\n{"name": "tape_search", "arguments": {}}\n```\nThat is all.',
    '{"name": "Ada", "age": 36}',
    '{"name": "unheard_of", "arguments": {}}',
]
"""Answers that only speak of such things."""
