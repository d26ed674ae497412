"""OpenAI's Responses API: its requests as requests of chat completions, and answers as responses. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from bot.bus import ClientMessage, ClientOutcome, client_topic
from channels.api.errors import InvalidRequest
from channels.api.requests import ChatRequest, build_request, read_parameters, read_tools
from channels.api.wire import sse

PREFIX = "resp_"


def response_id(session: str, inbound: str) -> str:
    """Return the id of a response: it names the session, and the message that it answers."""
    return f"{PREFIX}{session.rpartition(':')[2]}_{inbound}"


def place_of(response: Any, client: str) -> tuple[str, str]:
    """Return the last part of the session's key and the message's id of a response.

    Raises:
        InvalidRequest: It is no id of a response of this client.
    """
    topic, _, inbound = str(response).removeprefix(PREFIX).rpartition("_")
    own = client_topic(client, "")
    number = topic.removeprefix(own)
    plain = number.isascii() and number.isdecimal() and len(number) < 10
    if not str(response).startswith(PREFIX) or topic != own + number or not plain or not inbound:
        raise unknown_response()
    return topic, inbound


def unknown_response() -> InvalidRequest:
    """Return the error of a previous response that is not there."""
    text = "there is no such previous response"
    return InvalidRequest(text, "previous_response_id", status=404, code="not_found")


def read_response(
    body: Any, past: tuple[ClientMessage, ...] | None, *, repeated: bool
) -> ChatRequest:
    """Return a request of the Responses API.

    Raises:
        InvalidRequest: It cannot be answered.
    """
    if not isinstance(body, dict):
        raise InvalidRequest("the request is no JSON object")
    text = body.get("text")
    parameters = read_parameters(body, text.get("format") if isinstance(text, dict) else None)
    messages = [*_past_messages(past or ()), *_messages(body.get("input"))]
    instructions = body.get("instructions")
    if isinstance(instructions, str) and instructions:
        messages.insert(0, {"role": "system", "content": instructions})
    tools = read_tools(body.get("tools"), nested=False)
    request = build_request(body, messages, tools, parameters, repeated=repeated)
    return replace(request, stream=body.get("stream") is True)


def _past_messages(past: tuple[ClientMessage, ...]) -> list[dict[str, Any]]:
    roles = {"person": "user", "bot": "assistant"}
    return [{"role": roles[one.author], "content": one.text} for one in past]


def _messages(given: Any) -> list[dict[str, Any]]:
    """Return the items of an input as messages of chat completions."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list):
        raise InvalidRequest("input must be a text or a list of items", "input")
    messages: list[dict[str, Any]] = []
    for item in given:
        if not isinstance(item, dict):
            raise InvalidRequest("an item of the input is no object", "input")
        kind = item.get("type", "message")
        if kind == "message":
            messages.append({"role": item.get("role"), "content": item.get("content")})
        elif kind == "function_call_output":
            output = {"role": "tool", "tool_call_id": item.get("call_id")}
            messages.append({**output, "content": item.get("output")})
        elif kind == "function_call" and (not messages or messages[-1]["role"] != "assistant"):
            # Together with a text before it, it is one message.
            messages.append({"role": "assistant", "content": ""})
    return messages


@dataclass(slots=True)
class ResponseWriter:
    """Writes one response.

    Attributes:
        model: The model's name, as the client gave it.
        asked: The request's JSON.
        id: The response's id, once the answer is known.
        created: When the request came, in seconds.
    """

    model: str
    asked: Mapping[str, Any]
    id: str = ""
    created: int = field(default_factory=lambda: int(time.time()))
    _number: int = -1
    _text_begun: bool = False

    def whole(self, outcome: ClientOutcome) -> dict[str, Any]:
        """Return the whole response."""
        status = "incomplete" if outcome.cut_off else "completed"
        details = {"reason": "max_output_tokens"} if outcome.cut_off else None
        made = self._response(status, self._output(outcome))
        return {**made, "incomplete_details": details, "usage": _usage_json(outcome)}

    def failed(self, error: dict[str, Any]) -> bytes:
        """Return the last event of a stream that has no answer."""
        told = {"code": str(error.get("code")), "message": str(error.get("message"))}
        made = {**self._response("failed", []), "error": told}
        return self._event("response.failed", response=made)

    def begin(self) -> bytes:
        """Return the first events of a stream."""
        made = self._response("in_progress", [])
        first = self._event("response.created", response=made)
        return first + self._event("response.in_progress", response=made)

    def text(self, text: str) -> bytes:
        """Return the events of a piece of the text."""
        begun = b"" if self._text_begun else self._begin_text()
        place = {"item_id": self._message_id(), "output_index": 0, "content_index": 0}
        piece = self._event("response.output_text.delta", **place, delta=text, logprobs=[])
        return begun + piece

    def end(self, outcome: ClientOutcome, sent: str) -> bytes:
        """Return the last events of a stream."""
        outcome = replace(outcome, text=sent)
        pieces = b"".join(self._end_text(sent)) if self._text_begun else b""
        first = 1 if self._text_begun else 0
        for at, item in enumerate(self._output(outcome)[first:], first):
            pieces += b"".join(self._call_events(at, item))
        kind = "response.incomplete" if outcome.cut_off else "response.completed"
        return pieces + self._event(kind, response=self.whole(outcome))

    def _begin_text(self) -> bytes:
        self._text_begun = True
        item = {**self._message(""), "status": "in_progress", "content": []}
        added = self._event("response.output_item.added", output_index=0, item=item)
        place = {"item_id": self._message_id(), "output_index": 0, "content_index": 0}
        return added + self._event("response.content_part.added", **place, part=_part(""))

    def _end_text(self, text: str) -> Iterator[bytes]:
        place = {"item_id": self._message_id(), "output_index": 0, "content_index": 0}
        yield self._event("response.output_text.done", **place, text=text, logprobs=[])
        yield self._event("response.content_part.done", **place, part=_part(text))
        yield self._event("response.output_item.done", output_index=0, item=self._message(text))

    def _call_events(self, at: int, item: dict[str, Any]) -> Iterator[bytes]:
        begun = {**item, "arguments": "", "status": "in_progress"}
        place = {"item_id": item["id"], "output_index": at}
        arguments = item["arguments"]
        yield self._event("response.output_item.added", output_index=at, item=begun)
        yield self._event("response.function_call_arguments.delta", **place, delta=arguments)
        yield self._event(
            "response.function_call_arguments.done",
            **place,
            name=item["name"],
            arguments=arguments,
        )
        yield self._event("response.output_item.done", output_index=at, item=item)

    def _output(self, outcome: ClientOutcome) -> list[dict[str, Any]]:
        said = [self._message(outcome.text)] if outcome.text or not outcome.calls else []
        calls = [
            {
                "type": "function_call",
                "id": f"fc_{call}",
                "call_id": call,
                "name": name,
                "arguments": arguments,
                "status": "completed",
            }
            for call, name, arguments in outcome.calls
        ]
        return [*said, *calls]

    def _message(self, text: str) -> dict[str, Any]:
        return {
            "type": "message",
            "id": self._message_id(),
            "status": "completed",
            "role": "assistant",
            "content": [_part(text)],
        }

    def _message_id(self) -> str:
        return f"msg_{self.created}"

    def _response(self, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        kept = ("instructions", "metadata", "previous_response_id", "temperature", "top_p")
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.model,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": self.asked.get("tool_choice") or "auto",
            "tools": self.asked.get("tools") or [],
            **{name: self.asked.get(name) for name in kept},
        }

    def _event(self, kind: str, **data: Any) -> bytes:
        self._number += 1
        return sse({"type": kind, "sequence_number": self._number, **data}, kind)


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage_json(outcome: ClientOutcome) -> dict[str, Any]:
    return {
        "input_tokens": outcome.prompt_tokens,
        "input_tokens_details": {"cached_tokens": outcome.cached_tokens},
        "output_tokens": outcome.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": outcome.prompt_tokens + outcome.completion_tokens,
    }
