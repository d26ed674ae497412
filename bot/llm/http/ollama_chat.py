"""Ollama's own chat: https://github.com/ollama/ollama/blob/main/docs/api.md.

Its chat completions cannot say how large the context window is: longer prompts would be cut in
silence.

Rule 1: arguments of calls are objects in both directions; a call has no id, and none can be forced.
Rule 2: a stream is one JSON object on each line; the last one is ``done``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.llm.base import ModelRequest
from bot.llm.http.answer import CallForm, EventFraming, ModelAnswer, ReportedUsage, ServerError
from bot.llm.openai_format import arguments_of, least_of, part_text, tools_json

_OPTIONS = frozenset({"top_p", "top_k", "seed", "stop", "presence_penalty", "frequency_penalty"})


class OllamaChat:
    """The protocol; see ``Wire``."""

    path = "/api/chat"
    events: EventFraming = "lines"

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the headers of a request."""
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def body(self, request: ModelRequest, form: CallForm) -> dict[str, Any]:
        """Return a request's JSON."""
        options: dict[str, Any] = {
            name: value for name, value in request.parameters.items() if name in _OPTIONS
        }
        options["num_ctx"] = form.context_tokens
        options["num_predict"] = least_of(request.max_tokens, form.max_tokens)
        options["temperature"] = request.parameters.get("temperature", form.temperature)
        body: dict[str, Any] = {
            "model": form.server.model,
            "messages": [_message(message) for message in request.messages],
            "stream": form.stream,
            "options": {name: value for name, value in options.items() if value is not None},
        }
        if request.tools and request.tool_choice != "none":
            body["tools"] = tools_json(request.tools)
        if request.json_schema is not None:
            body["format"] = request.json_schema
        return {name: value for name, value in body.items() if name not in form.refused}

    def read_whole(self, answer: ModelAnswer, body: Any) -> None:
        """Read an answer that is one JSON object."""
        self.read_event(answer, body)

    def read_event(self, answer: ModelAnswer, event: Any) -> bool:
        """Read one object of a stream; return whether the text grew."""
        if error := event.get("error"):
            raise ServerError(str(error), None)
        message = event.get("message") or {}
        if thought := message.get("thinking"):
            answer.keep("thinking", str(thought))
        grew = answer.add_content(message.get("content"))
        for call in message.get("tool_calls") or ():
            answer.reply.add_call(call, whole=True)
        if event.get("done"):
            answer.ended = True
            answer.reply.set_finish_reason(
                "length" if event.get("done_reason") == "length" else "stop"
            )
            # A prompt that is served from the cache may be reported as no tokens.
            if event.get("prompt_eval_count"):
                answer.usage = ReportedUsage(
                    int(event["prompt_eval_count"]), int(event.get("eval_count") or 0)
                )
        return grew


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message["role"], "content": message.get("content") or ""}
    if isinstance(parts := message.get("content"), list):
        made["content"] = "".join(part_text(part) for part in parts)
        images = [part["image_url"]["url"] for part in parts if part.get("type") == "image_url"]
        if images:
            made["images"] = [image.partition(",")[2] for image in images]
    if isinstance(message.get("thinking"), str):
        made["thinking"] = message["thinking"]
    if calls := message.get("tool_calls"):
        made["tool_calls"] = [
            {
                **{name: value for name, value in one.items() if name not in {"id", "type"}},
                "function": {**one["function"], "arguments": arguments_of(one)},
            }
            for one in calls
        ]
    if name := message.get("name"):
        made["tool_name"] = name
    return made
