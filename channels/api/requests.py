"""Read requests of chat completions. Pure.

Rule 1: unknown fields are accepted and ignored; known ones of a wrong type are refused.
Rule 2: the trailing results of tools, or the last message of the user, are what is new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bot.bus import (
    LONGEST_MESSAGE,
    ClientHistory,
    ClientMessage,
    ClientRequest,
    PlainRequest,
    too_long_text,
)
from channels.api.content import ImageFile, images_of, is_clients_question, split_words, text_of
from channels.api.errors import InvalidRequest
from channels.text import clean_text, has_visible_text

MOST_MESSAGES = 4_000
MOST_TOOLS = 128
LONGEST_TOOLS = 128_000
"""Characters of the tools of a request, since each turn records them."""
MOST_TOKENS = 1_000_000
_LONGEST_NAME = 64
_LONGEST_QUOTED = 16_000

_NUMBERS = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
}
"""Parameters of a model call, and their bounds."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request, whatever the protocol that it came by.

    Attributes:
        model: The model that it names.
        history: The conversation.
        words: The new message's own words; empty with results.
        quoted: What the client put around the words; None without it.
        images: Images of the new message.
        client: What it asks of the model beside.
        plain: The request as it is, if it is the client's own question; None if not.
        stream: Whether the answer is streamed.
        include_usage: Whether a stream ends with the usage.
    """

    model: str
    history: ClientHistory
    words: str
    quoted: str | None
    images: tuple[ImageFile, ...]
    client: ClientRequest
    plain: PlainRequest | None = None
    stream: bool = False
    include_usage: bool = False


@dataclass(slots=True)
class _Messages:
    system: list[str] = field(default_factory=list)
    said: list[ClientMessage] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    last: Mapping[str, Any] = field(default_factory=dict)


def read_chat(body: Any, *, repeated: bool) -> ChatRequest:
    """Return a request of chat completions.

    Raises:
        InvalidRequest: It cannot be answered.
    """
    if not isinstance(body, dict):
        raise InvalidRequest("the request is no JSON object")
    if body.get("n") not in (None, 1):
        raise InvalidRequest("tapebot gives one answer (n = 1)", "n")
    options = body.get("stream_options")
    request = build_request(
        body,
        body.get("messages"),
        read_tools(body.get("tools"), nested=True),
        read_parameters(body, body.get("response_format")),
        repeated=repeated,
    )
    return replace(
        request,
        stream=body.get("stream") is True,
        include_usage=isinstance(options, dict) and options.get("include_usage") is True,
    )


def build_request(
    body: Mapping[str, Any],
    messages: Any,
    tools: Sequence[dict[str, Any]],
    parameters: dict[str, Any],
    *,
    repeated: bool,
) -> ChatRequest:
    """Return a request, given its messages in the format of chat completions.

    Raises:
        InvalidRequest: It cannot be answered.
    """
    read = _read_messages(messages)
    system = "\n\n".join(filter(None, read.system))
    new = [text for result in read.results for text in result]
    new = new or [text_of(read.last.get("content"), "messages")]
    if (number := sum(map(len, (system, *new)))) > LONGEST_MESSAGE:
        told = too_long_text(number, LONGEST_MESSAGE)
        raise InvalidRequest(told, "messages", status=413, code="string_above_max_length")
    choice = _tool_choice(body.get("tool_choice"), tools)
    offered = () if choice == "none" else tuple(tools)
    client = ClientRequest(
        system, offered, "auto" if choice == "none" else choice, parameters, tuple(read.results)
    )
    model = body.get("model")
    name = model if isinstance(model, str) else ""
    if read.results:
        calls = tuple(call for call, _ in read.results)
        history = ClientHistory(tuple(read.said), None, calls, repeated)
        return ChatRequest(name, history, "", None, (), client)
    *past, said = read.said
    words, quoted = split_words(new[0])
    images = tuple(images_of(read.last.get("content"), "messages"))
    if not images and not has_visible_text(words):
        raise InvalidRequest("the last message has no content", "messages")
    history = ClientHistory(tuple(past), said, (), repeated)
    plain = None
    if is_clients_question(system, [said.text], len(past)):
        given: dict[str, Any] = {**parameters}
        if offered:
            given |= {"tools": offered, "tool_choice": client.tool_choice}
        plain = PlainRequest(_plain_messages(system, said.text), given)
    return ChatRequest(name, history, words, quoted, images, client, plain)


def unknown_text(unknown: Sequence[ClientMessage]) -> str:
    """Return messages that the tape does not hold as a text to quote."""
    lines = [f"{'user' if one.author == 'person' else 'assistant'}: {one.text}" for one in unknown]
    text = "\n".join(lines)
    return f"(the client's earlier conversation)\n{text[-_LONGEST_QUOTED:]}"


def _plain_messages(system: str, text: str) -> list[dict[str, Any]]:
    head = [{"role": "system", "content": system}] if system else []
    return [*head, {"role": "user", "content": text}]


def _read_messages(messages: Any) -> _Messages:
    if not isinstance(messages, list) or not messages:
        raise InvalidRequest("messages must be a list with at least one message", "messages")
    if len(messages) > MOST_MESSAGES:
        raise InvalidRequest(f"there are more than {MOST_MESSAGES} messages", "messages")
    read = _Messages()
    for place, one in enumerate(messages):
        if not isinstance(one, dict):
            raise InvalidRequest("a message is no object", f"messages[{place}]")
        _read_message(read, one, f"messages[{place}]")
    wanted = "bot" if read.results else "person"
    if not read.said or read.said[-1].author != wanted:
        raise InvalidRequest("the last message must be the user's, or results of tools", "messages")
    return read


def _read_message(read: _Messages, one: Mapping[str, Any], param: str) -> None:
    role, text = one.get("role"), text_of(one.get("content"), param)
    if role in ("system", "developer"):
        read.system.append(text)
    elif role == "tool":
        call = one.get("tool_call_id")
        if not isinstance(call, str) or not call:
            raise InvalidRequest("a tool's result has no tool_call_id", param)
        read.results.append((call, text))
    elif role == "user":
        read.results = []
        read.said.append(ClientMessage("person", split_words(text)[0]))
        read.last = one
    elif role == "assistant":
        read.results = []
        read.said.append(ClientMessage("bot", text))
    else:
        raise InvalidRequest(f"there is no role {str(role)[:40]!r}", f"{param}.role")


def read_tools(tools: Any, *, nested: bool) -> list[dict[str, Any]]:
    """Return a client's functions, each with name, description and parameters.

    Raises:
        InvalidRequest: One is malformed, or there are too many.
    """
    if tools is None:
        return []
    if not isinstance(tools, list) or len(tools) > MOST_TOOLS:
        raise InvalidRequest(f"tools must be a list of at most {MOST_TOOLS}", "tools")
    found: dict[str, dict[str, Any]] = {}
    for place, tool in enumerate(tools):
        if not isinstance(tool, dict) or tool.get("type", "function") != "function":
            # Tools that a provider runs itself: there is none here.
            continue
        function = tool.get("function") if nested else tool
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(function, dict) or not isinstance(name, str) or not _is_name(name):
            raise InvalidRequest(
                "a tool has no name of letters, digits, _ and -", f"tools[{place}]"
            )
        parameters = function.get("parameters")
        found[name] = {
            "name": name,
            "description": clean_text(str(function.get("description") or "")),
            "parameters": parameters if isinstance(parameters, dict) else {},
        }
    if len(str(list(found.values()))) > LONGEST_TOOLS:
        raise InvalidRequest(f"the tools are longer than {LONGEST_TOOLS} characters", "tools")
    return list(found.values())


def _is_name(name: str) -> bool:
    plain = name.replace("_", "").replace("-", "")
    return 0 < len(name) <= _LONGEST_NAME and name.isascii() and (plain.isalnum() or not plain)


def _tool_choice(choice: Any, tools: Sequence[dict[str, Any]]) -> str:
    """Return ``auto``, ``none``, or the name of the function that must be called."""
    if isinstance(choice, dict):
        function = choice.get("function")
        name = function.get("name") if isinstance(function, dict) else choice.get("name")
        if name not in [tool["name"] for tool in tools]:
            raise InvalidRequest("tool_choice names none of the tools", "tool_choice")
        return str(name)
    if choice == "required" and len(tools) == 1:
        return str(tools[0]["name"])
    return "none" if choice == "none" else "auto"


def read_parameters(body: Mapping[str, Any], form: Any) -> dict[str, Any]:
    """Return the parameters of the model call, within limits.

    Raises:
        InvalidRequest: One has a wrong type.
    """
    found: dict[str, Any] = {}
    for name, (least, most) in _NUMBERS.items():
        if (value := body.get(name)) is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidRequest(f"{name} is no number", name)
        found[name] = min(max(float(value), least), most)
    for name in ("max_completion_tokens", "max_output_tokens", "max_tokens"):
        if (value := body.get(name)) is None or "max_tokens" in found:
            continue
        if type(value) is not int or value < 1:
            raise InvalidRequest(f"{name} is no positive whole number", name)
        found["max_tokens"] = min(value, MOST_TOKENS)
    if type(body.get("seed")) is int:
        found["seed"] = body["seed"]
    if (stop := _stop(body.get("stop"))) is not None:
        found["stop"] = stop
    if isinstance(form, dict) and (schema := _schema(form)) is not None:
        found["json_schema"] = schema
    return found


def _stop(stop: Any) -> list[str] | None:
    stops = [stop] if isinstance(stop, str) else stop
    if not isinstance(stops, list) or not stops:
        return None
    if len(stops) > 4 or not all(isinstance(one, str) and len(one) <= 200 for one in stops):
        raise InvalidRequest("stop is a text, or a list of at most four", "stop")
    return stops


def _schema(form: Mapping[str, Any]) -> dict[str, Any] | None:
    if form.get("type") == "json_object":
        return {"type": "object"}
    if form.get("type") != "json_schema":
        return None
    inner = form.get("json_schema")
    schema = inner.get("schema") if isinstance(inner, dict) else form.get("schema")
    if not isinstance(schema, dict) or len(str(schema)) > LONGEST_TOOLS:
        raise InvalidRequest("response_format has no schema, or a too long one", "response_format")
    return schema
