"""OpenAI's chat completions, as OpenAI and the many servers that follow it speak them.

Rule 1: the format is https://platform.openai.com/docs/api-reference/chat; unknown fields are ignored.
Rule 2: a complete answer has a finish reason or ends with ``[DONE]``; anything else was cut off.
Rule 3: reasoning comes as ``reasoning_content`` (DeepSeek, vLLM), ``reasoning`` and
``reasoning_details`` (OpenRouter), or as parts of the content (Mistral); these and all unknown fields
go back with the calls that they led to.
Rule 4: cached tokens stand in ``prompt_tokens_details``, or ``prompt_cache_hit_tokens`` (DeepSeek).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from bot.core.reasons import Reason
from bot.llm.base import ModelRequest
from bot.llm.http.answer import CallForm, EventFraming, ModelAnswer, ReportedUsage, ServerError
from bot.llm.openai_format import (
    cache_marked,
    least_of,
    newest_marked,
    response_format,
    tool_choice,
    tools_json,
)

_FOREIGN = frozenset({"thinking", "thinking_blocks"})
"""Fields of messages in which other protocols carry reasoning."""

_READ = frozenset(
    "role name content tool_calls function_call tool_call_id refusal annotations audio images index".split()
)
"""Fields of an answer's message that are read, or that no server wants back."""

_ENDINGS = {
    **dict.fromkeys(("safety", "recitation", "prohibited_content"), "content_filter"),
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "max_tokens": "length",
    "model_length": "length",
}
"""Finish reasons that some servers send in place of OpenAI's."""

_FAILED_ENDINGS = frozenset({"error", "insufficient_system_resource"})
"""Finish reasons of answers that broke off: OpenRouter's, DeepSeek's."""

_PLAIN_CALL = 3
"""Fields of a call: id, type, function."""

_STATUS_OF_WORDS = {"overloaded": 503, "rate": 429, "timeout": 504, "unavailable": 503}


class ChatCompletions:
    """The protocol; see ``Wire``."""

    path = "/chat/completions"
    events: EventFraming = "sse"

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the headers of a request."""
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def body(self, request: ModelRequest, form: CallForm) -> dict[str, Any]:
        """Return a request's JSON."""
        body: dict[str, Any] = {
            "model": form.server.model,
            "messages": _messages(request, form),
            **request.parameters,
        }
        if request.tools:
            body["tools"] = tools_json(request.tools)
            body["tool_choice"] = tool_choice(request.tool_choice, form.tool_choice)
        if request.json_schema is not None:
            body["response_format"] = response_format(request.json_schema)
        if (most := least_of(request.max_tokens, form.max_tokens)) is not None:
            # OpenAI's newer models refuse the old name, other servers do not know the new one.
            new = form.server.official and "api.openai.com" in form.server.address
            renamed = new or "max_tokens" in form.refused
            body["max_completion_tokens" if renamed else "max_tokens"] = most
        if form.temperature is not None:
            body["temperature"] = form.temperature
        if form.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if "openrouter" in form.server.address:
            body["usage"] = {"include": True}
        return {name: value for name, value in body.items() if name not in form.refused}

    def read_whole(self, answer: ModelAnswer, body: Any) -> None:
        """Read an answer that is one JSON object."""
        _raise_error(body)
        _read_usage(answer, body)
        if not body["choices"]:
            raise ValueError("no choices")
        # Some servers part text and calls into two choices.
        for choice in body["choices"]:
            _read_message(answer, choice["message"], whole=True)
            _read_ending(answer, choice)
        answer.ended = True

    def read_event(self, answer: ModelAnswer, event: Any) -> bool:
        """Read one event of a stream; return whether the text grew."""
        _raise_error(event)
        _read_usage(answer, event)
        choices = event.get("choices")
        if not choices:
            return False
        choice = choices[0]
        # Some servers end a stream with a whole message in place of a change, or send nothing else.
        delta, whole = choice.get("delta"), False
        if delta is None and not (answer.reply.answer.text or answer.reply.calls()):
            delta, whole = choice.get("message"), True
        grew = _read_message(answer, delta, whole=whole) if delta is not None else False
        _read_ending(answer, choice)
        return grew


def _messages(request: ModelRequest, form: CallForm) -> list[dict[str, Any]]:
    """Return the messages; a prompt's part that is to be cached is marked for Claude."""
    foreign = _FOREIGN | form.refused
    messages = [_without(message, foreign) for message in request.messages]
    if form.needs_reasoning:
        messages = [
            {"reasoning_content": "", **message} if message.get("tool_calls") else message
            for message in messages
        ]
    if "claude" in form.server.model and "openrouter" in form.server.address:
        for place in {0, len(messages) - 2} & set(range(len(messages))):
            messages[place] = cache_marked(messages[place])
        messages[-1] = newest_marked(messages[-1], request)
    return messages


def _without(message: dict[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    """Return a message without fields of its own and of its calls."""
    if not fields.isdisjoint(message):
        message = {name: value for name, value in message.items() if name not in fields}
    calls = message.get("tool_calls") or ()
    if not any(len(call) > _PLAIN_CALL and not fields.isdisjoint(call) for call in calls):
        return message
    left = [{name: one for name, one in call.items() if name not in fields} for call in calls]
    return {**message, "tool_calls": left}


def _read_message(answer: ModelAnswer, message: Mapping[str, Any], *, whole: bool) -> bool:
    """Add a message, or a change of one, to the answer; return whether what may be shown changed."""
    for name, value in message.items():
        if name not in _READ and value not in (None, "", []):
            answer.keep(name, value)
    grew = answer.add_content(message.get("content") or message.get("refusal"))
    old_form = message.get("function_call")
    calls = message.get("tool_calls") or ([{"function": old_form}] if old_form else [])
    for call in calls if isinstance(calls, list) else [calls]:
        answer.reply.add_call(call or {}, whole=whole)
    return grew


def _read_ending(answer: ModelAnswer, choice: Mapping[str, Any]) -> None:
    reason = str(choice.get("finish_reason") or "").lower()
    if not reason:
        return
    if reason in _FAILED_ENDINGS:
        raise ServerError(Reason("model_answer_broken"), 503)
    answer.reply.set_finish_reason(_ENDINGS.get(reason, reason))
    answer.ended = True


def _read_usage(answer: ModelAnswer, body: Mapping[str, Any]) -> None:
    usage = body.get("usage") or (body.get("x_groq") or {}).get("usage")
    if not isinstance(usage, dict) or not usage.get("prompt_tokens"):
        return
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    if cached is None:
        cached = usage.get("prompt_cache_hit_tokens", usage.get("cached_tokens"))
    cost = usage.get("cost")
    prompt, completion = int(usage["prompt_tokens"]), int(usage.get("completion_tokens") or 0)
    answer.usage = ReportedUsage(
        prompt=prompt,
        # xAI counts the tokens of reasoning only in the total.
        completion=max(completion, int(usage.get("total_tokens") or 0) - prompt),
        cached=None if cached is None else int(cached),
        cost=float(cost) if isinstance(cost, (int, float)) else None,
    )


def _raise_error(body: Mapping[str, Any]) -> None:
    """Raise the error that an answer with status 200 reports, as OpenRouter's and vLLM's do."""
    error = body.get("error")
    if not error and (choices := body.get("choices")):
        error = choices[0].get("error")
    if not error:
        return
    told = error if isinstance(error, dict) else {"message": str(error)}
    raise ServerError(json.dumps({"error": told}), _status_of(told))


def _status_of(error: Mapping[str, Any]) -> int | None:
    code = error.get("code")
    if isinstance(code, str) and code.isdecimal():
        code = int(code)
    if isinstance(code, int) and 400 <= code <= 599:
        return code
    words = f"{code} {error.get('type')} {error.get('message')}".lower()
    return next((status for word, status in _STATUS_OF_WORDS.items() if word in words), None)
