"""A tool that a model must call to answer; a model without tools writes its arguments by a grammar."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from bot.core.reasons import Reason
from bot.llm.base import ChatMessage, Model, ModelReply, ModelRequest, Purpose, ToolSpec

AnswerT = TypeVar("AnswerT", bound=BaseModel)


class UnusableAnswer(Exception):
    """A model's answer cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class AnswerTool(Generic[AnswerT]):
    """A tool whose only purpose is that its arguments are the answer.

    Attributes:
        name: Name of the tool.
        description: Description for the model.
        answer: Pydantic model of the arguments.
    """

    name: str
    description: str
    answer: type[AnswerT]

    def request(
        self,
        model: Model,
        messages: Sequence[ChatMessage],
        purpose: Purpose,
        *,
        grammar_tokens: int | None = None,
        plain: bool = False,
    ) -> ModelRequest:
        """Return the request for an answer.

        Args:
            model: The model that answers.
            messages: The request's messages.
            purpose: Purpose of the request.
            grammar_tokens: Most tokens of an answer by a grammar.
            plain: Whether the answer is JSON without a tool and a grammar.
        """
        messages, schema = list(messages), answer_schema(self.answer)
        if plain:
            return ModelRequest(messages=messages, purpose=purpose)
        if answers_by_grammar(model):
            return ModelRequest(
                messages=messages, json_schema=schema, max_tokens=grammar_tokens, purpose=purpose
            )
        tool = ToolSpec(self.name, self.description, schema)
        return ModelRequest(
            messages=messages, tools=(tool,), tool_choice=self.name, purpose=purpose
        )

    def arguments(self, reply: ModelReply) -> str | None:
        """Return the answer as JSON: a call's arguments, else what the text holds; None if it holds none."""
        called = (call.arguments for call in reply.tool_calls if call.name == self.name)
        return next(called, reply.content if "{" in reply.content else None)

    def read(self, arguments: str) -> AnswerT:
        """Return the answer in arguments; see ``read_answer``."""
        return read_answer(self.answer, arguments)


def read_answer(answer: type[AnswerT], text: str) -> AnswerT:
    """Return the answer in a text, as models write it.

    Words may be around it, lists and objects may be texts themselves, a list may be its only item, and
    what may be left out may be null.

    Raises:
        UnusableAnswer: It does not fit.
    """
    try:
        return answer.model_validate(_fitted(_json(text, "{}"), answer_schema(answer)))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "arguments"
        raise UnusableAnswer(Reason("answer_unusable", part=where, error=first["msg"])) from error
    except (ValueError, RecursionError) as error:
        told = Reason("answer_unusable", part="arguments", error=str(error))
        raise UnusableAnswer(told) from error


def _json(text: str, brackets: str) -> Any:
    """Return the value of a text, or of what is within its outermost brackets."""
    with suppress(ValueError):
        return json.loads(text)
    begin, end = text.find(brackets[0]), text.rfind(brackets[1]) + 1
    return json.loads(text[begin:end] if 0 <= begin < end else text)


def _fitted(value: Any, schema: dict[str, Any]) -> Any:
    kind = schema["type"]
    if kind in ("array", "object") and isinstance(value, str):
        with suppress(ValueError):
            value = _json(value, "[]" if kind == "array" else "{}")
    if kind == "array":
        return [
            _fitted(one, schema["items"]) for one in (value if isinstance(value, list) else [value])
        ]
    if kind != "object" or not isinstance(value, dict):
        return value
    fields = schema["properties"]
    given = {name: one for name, one in value.items() if name in fields and one is not None}
    empty: dict[str, Any] = {name: [] for name, one in fields.items() if one["type"] == "array"}
    return empty | {name: _fitted(one, fields[name]) for name, one in given.items()}


def answers_by_grammar(model: Model) -> bool:
    """Return whether a model answers by a grammar, because it calls no tools."""
    return model.profile.json_schema and not model.profile.tools


def answer_schema(answer: type[BaseModel]) -> dict[str, Any]:
    """Return an answer's JSON Schema, without references: small models' grammars need that.

    Every field is required, and null where it may be left out.
    """
    schema = answer.model_json_schema()
    return _plain(schema, schema.get("$defs", {}))


def _plain(schema: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    schema = known.get(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    kinds = [one["type"] for one in schema.get("anyOf", ())] or schema["type"]
    if kinds == "object":
        fields = {name: _plain(one, known) for name, one in schema["properties"].items()}
        return {
            "type": "object",
            "properties": fields,
            "required": list(fields),
        }
    found: dict[str, Any] = {"type": kinds}
    if kinds == "array":
        found["items"] = _plain(schema["items"], known)
    return found | {name: schema[name] for name in ("enum", "description") if name in schema}
