"""A chat model of a provider: what its calls have in common, whatever client makes them.

Rule 1: nothing is loaded until the first call, or ``warm``.
Rule 2: what a server refuses is left out, and remembered as long as the process runs once it has answered without: a
field that it names, pictures, a form of forcing a call, and tools, if it has never taken any. An error that names
neither may pass: the request is repeated first, and what is left out is remembered the second time in a row. Tools
are then described in the prompt, and calls are read from the text.
Rule 3: a window that an error names is the model's from then on. A refused request that is long, whatever
the words, is to be tried once shorter, and then never again before one was accepted.
Rule 4: an answer that is not complete, or cannot be understood, is a transient error.
"""

from __future__ import annotations

import json
import logging
import re
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from bot.core.errors import (
    ContextOverflow,
    ModelAuthError,
    ModelError,
    ModelRejected,
    TransientModelError,
)
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason
from bot.llm.base import (
    CapabilityProfile,
    ChatMessage,
    Model,
    ModelReply,
    ModelRequest,
    OnText,
    Usage,
    estimate_tokens,
)
from bot.llm.bounds import MOST_TEXT
from bot.llm.http.answer import CallForm, ModelAnswer, Wire, carried
from bot.llm.http.anthropic_messages import REPLY_TOOL
from bot.llm.http.providers import ModelServer
from bot.llm.instrumented import instrumented
from bot.llm.openai_format import FORCINGS, MESSAGE_FIELDS, flatten_content, own_messages
from bot.llm.prices import call_cost
from bot.llm.profiles import profile_for
from bot.llm.provider_errors import UNREADABLE_REPLY, is_of_account, is_rate_limit, named_limit
from bot.llm.streamed_reply import StreamedReply, finish_reason
from bot.llm.written_calls import as_text

logger = logging.getLogger(__name__)

_OPTIONAL = tuple(
    "temperature stream_options max_tokens max_completion_tokens usage response_format".split()
)
"""Fields of a request that may be left out, besides the client's own parameters."""

_REFUSALS = frozenset({400, 404, 405, 415, 422, 500, 501})
"""Statuses of servers that do not take what a request has."""

_LONG = 2_000
"""Tokens of a conversation from which on its length may be why it is refused."""

_LEAST_WINDOW = 1_024
_MISSING_REASONING = LazyPattern(
    r"missing .{0,3}reasoning_content|reasoning_content.{0,80}passed back", re.IGNORECASE
)
"""DeepSeek's words, if calls come back without the reasoning that led to them."""

_FORCED = LazyPattern(r"tool[_ ]choice", re.IGNORECASE)
_NAMES = {
    "tools": LazyPattern(r"\btools?\b|\bfunction[ _]call", re.IGNORECASE),
    "images": LazyPattern(r"image|picture|vision|multimodal", re.IGNORECASE),
}
_NO_REASONING = "reasoning"
_IMAGES = LazyPattern(r"\bsupport\b|only supported|unknown variant|not a multimodal")


class ProviderModel(Model):
    """A chat model, named ``provider/model``; adapters say how it is called."""

    def __init__(
        self,
        name: str,
        server: ModelServer,
        wire: Wire,
        *,
        profile: CapabilityProfile,
        temperature: float | None = None,
        max_tokens: int | None = None,
        forcing: str = FORCINGS[0],
    ) -> None:
        self._name = name
        self._server = server
        self._wire = wire
        self._profile = profile
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._entry: dict[str, Any] | None = None
        self._origin = f"{name}@{urlsplit(server.address).hostname or ''}"
        self._refused = frozenset(FORCINGS[: FORCINGS.index(forcing)])
        self._doubted: set[str] = set()
        self._in_vain = ""
        self._takes_tools = self._calls_tools = False
        self._thinks_untold = self._was_long = False

    @property
    def name(self) -> str:
        """The model's name, with its provider."""
        return self._name

    @property
    def profile(self) -> CapabilityProfile:
        """The model's capabilities, as far as they are known."""
        return self._profile

    @abstractmethod
    async def warm(self) -> None:
        """Load the client and the model's price now."""

    @abstractmethod
    async def _send(
        self, answer: ModelAnswer, body: dict[str, Any], on_text: OnText | None
    ) -> None:
        """Make one call, and read its answer."""

    def _marked(self, messages: list[ChatMessage], request: ModelRequest) -> list[ChatMessage]:  # noqa: ARG002 (an adapter's)
        """Return a request's messages, with the marks for a cache that the wire does not set."""
        return messages

    @abstractmethod
    def _map_errors(self) -> AbstractContextManager[None]:
        """Return a context that maps the client's errors."""

    @instrumented
    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Run one call; see ``Model.complete``."""
        await self.warm()
        if self._server.missing_key:
            raise ModelAuthError(
                Reason("model_no_key", model=self._name, variable=self._server.missing_key)
            )
        trial, first, refused = "", None, self._refused
        forced = request.tool_choice not in {"auto", "none"}
        trials: list[str] | None = None
        while True:
            sent = as_text(request) if "tools" in (trial, *self._profile.without) else request
            # As a fallback, it may get requests made for other models.
            messages = own_messages(sent.messages, self._origin)
            if trial == "images" or not self._profile.vision:
                messages = flatten_content(messages)
            messages = self._marked(messages, sent)
            body = self._wire.body(
                replace(sent, messages=messages), self._form(on_text is not None, refused)
            )
            reply = StreamedReply(
                request.tools,
                bare=request.json_schema is None and (not self._calls_tools or forced),
                held=self._thinks_untold,
            )
            answer = ModelAnswer(reply)
            try:
                with self._map_errors(), self._map_malformed():
                    await self._send(answer, body, on_text)
                    self._check_end(answer)
                    made = self._reply(request, body, answer)
            except ModelError as error:
                if named := _named(error, request, body, refused):
                    refused |= {named}
                    continue
                if trials is None:
                    first, trials = error, self._suspects(error, body)
                if not trials:
                    self._in_vain = str(error.__cause__) if trial else self._in_vain
                    failure = self._judged(first or error, body)
                    raise failure from failure.__cause__
                trial = trials.pop()
                continue
            self._keep(refused, trial, body, str(first and first.__cause__))
            self._takes_tools |= "tools" in body
            self._in_vain, self._was_long = "", False
            return made

    def _form(self, stream: bool, refused: frozenset[str]) -> CallForm:
        return CallForm(
            self._server,
            stream=stream,
            tool_choice=FORCINGS[len(refused & {*FORCINGS})],
            refused=refused,
            needs_reasoning=_NO_REASONING in refused,
            temperature=self._temperature,
            max_tokens=self._max_tokens,
            context_tokens=self._profile.context_tokens,
        )

    def _correct_profile(self, entry: dict[str, Any] | None) -> None:
        self._entry = entry
        if self._profile == profile_for(self._name):
            self._profile = profile_for(self._name, entry)

    # What is learned of a server.

    def _suspects(self, error: ModelError, body: dict[str, Any]) -> list[str]:
        """Return what to call without, the last first, if no field is named; "" is the same again."""
        status, text = getattr(error.__cause__, "status_code", None), str(error.__cause__)
        if not _may_refuse(error) or text == self._in_vain:
            return []
        may = {
            "tools": not self._takes_tools and (_NAMES["tools"].search(text) or status != 500),
            "images": self._profile.vision and (_IMAGES.search(text) or status == 404),
        }
        found = [one for one, suspected in may.items() if suspected and one in _held(body)]
        sure = any(one in self._doubted or _NAMES[one].search(text) for one in found)
        return found if sure or not found else [*found, ""]

    def _keep(self, refused: frozenset[str], trial: str, body: dict[str, Any], error: str) -> None:
        """Remember what the server has answered without; what no error named, the second time in a row."""
        for field in sorted(refused - self._refused - {"named", "max_tokens", _NO_REASONING}):
            self._leave_out("tool_choice" if field == "required" else field)
        self._refused |= refused
        if trial and (trial in self._doubted or _NAMES[trial].search(error)):
            self._leave_out(trial)
        self._doubted = (self._doubted | {trial}) - {"", *_held(body)}

    def _leave_out(self, what: str) -> None:
        logger.warning("%s: its server refuses %s, which is left out", self._name, what)
        without = tuple(dict.fromkeys((*self._profile.without, what)))
        vision = self._profile.vision and what != "images"
        self._profile = replace(self._profile, without=without, vision=vision)

    def _judged(self, error: ModelError, body: dict[str, Any]) -> ModelError:
        """Return an error that says whether a shorter request may help; learn a window that it names."""
        text = str(error.__cause__)
        limit = named_limit(text)
        conversation = flatten_content([one for one in body["messages"] if one["role"] != "system"])
        size = estimate_tokens(json.dumps(conversation, ensure_ascii=False))
        if isinstance(error, ContextOverflow) or is_rate_limit(text):
            # A request above a limit of tokens a minute is refused whenever it is sent.
            error.is_long |= limit is not None and size > limit
            if limit is not None and error.is_long:
                window = max(_LEAST_WINDOW, min(limit, self._profile.most_tokens or limit))
                self._profile = replace(self._profile, most_tokens=window)
        elif isinstance(error, ModelRejected) and error.of_content and size >= _LONG:
            error.is_long, self._was_long = not self._was_long, True
        return error

    # Answers.

    def _said(self, error: str) -> Reason:
        return Reason("model_said", model=self._name, error=error)

    @contextmanager
    def _map_malformed(self) -> Iterator[None]:
        try:
            yield
        except TimeoutError as exc:
            raise TransientModelError(self._said(Reason("model_timeout"))) from exc
        except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as exc:
            logger.warning("%s: an answer that cannot be parsed", self._name, exc_info=exc)
            raise TransientModelError(self._said(UNREADABLE_REPLY)) from exc

    def _check_end(self, answer: ModelAnswer) -> None:
        if answer.reply.is_full:
            logger.warning("%s: the answer was cut at %d characters", self._name, MOST_TEXT)
            answer.reply.set_finish_reason("length")
        elif not answer.ended and not _all_calls_are_whole(answer):
            raise TransientModelError(self._said(Reason("model_answer_cut_off")))

    def _reply(
        self, request: ModelRequest, body: dict[str, Any], answer: ModelAnswer
    ) -> ModelReply:
        calls, ending = answer.reply.calls(), answer.reply.finish_reason
        if request.json_schema is None:
            self._calls_tools |= bool(calls)
            content, calls = answer.reply.content_and_calls(answer.thoughts, request.messages)
        elif calls and calls[0].name == REPLY_TOOL:
            content, calls = calls[0].arguments, ()
            ending = "stop" if ending == "tool_calls" else ending
        else:
            content = answer.reply.answer.finish()
        self._thinks_untold |= answer.reply.answer.closed
        if not content.strip() and not calls and ending in {"content_filter", "length"}:
            filtered = ending == "content_filter"
            reason = "model_filtered" if filtered else "answer_cut_off"
            raise ModelRejected(self._said(Reason(reason)), of_content=filtered)
        kept = carried(answer.kept) if calls else {}
        return ModelReply(
            content=content,
            tool_calls=tuple(replace(call, extra=carried(call.extra)) for call in calls),
            finish_reason=finish_reason(ending, calls),
            usage=self._usage(body, answer),
            model=self._name,
            cache_reported=answer.usage is not None and answer.usage.cached is not None,
            usage_reported=answer.usage is not None,
            reasoning=kept,
            origin=self._origin if kept or any(call.extra for call in calls) else "",
        )

    def _usage(self, body: dict[str, Any], answer: ModelAnswer) -> Usage:
        """Return the usage that the server reports, or an estimate if it reports none."""
        told = answer.usage
        if told is None:
            messages = flatten_content(body["messages"])
            prompt = json.dumps(
                [body.get("system"), messages, body.get("tools")], ensure_ascii=False
            )
            read, written = estimate_tokens(prompt), estimate_tokens(answer.reply.answer.text)
            return Usage(prompt_tokens=read, completion_tokens=written, cost=None, calls=1)
        cost = told.cost
        if cost is None:
            cost = call_cost(
                self._entry,
                at=datetime.now(UTC),
                prompt=told.prompt,
                completion=told.completion,
                cached=told.cached or 0,
                stored=told.stored,
            )
        return Usage(told.prompt, told.cached or 0, told.completion, cost, 1)


def _may_refuse(error: ModelError) -> bool:
    """Return whether a server may refuse what a request has, rather than who sends it."""
    refuses = getattr(error.__cause__, "status_code", None) in _REFUSALS
    fits = isinstance(error, (ModelRejected, TransientModelError))
    return refuses and fits and not is_of_account(str(error.__cause__))


def _named(
    error: ModelError, request: ModelRequest, body: dict[str, Any], refused: frozenset[str]
) -> str:
    """Return what an error names that can be left out or added; empty if nothing."""
    text = str(error.__cause__)
    if not _may_refuse(error):
        return ""
    forced = request.tool_choice not in {"auto", "none"} or request.json_schema is not None
    left = [one for one in FORCINGS[:-1] if one not in refused]
    if forced and left and _FORCED.search(text):
        return left[0]
    if _MISSING_REASONING.search(text) and _NO_REASONING not in refused:
        return _NO_REASONING
    fields = {name for message in body["messages"] for part in _parts(message) for name in part}
    known = (*_OPTIONAL, *request.parameters, *sorted(fields - MESSAGE_FIELDS))
    sent = (one for one in known if one in fields | set(body) and one not in refused)
    return next((one for one in sent if re.search(rf"\b{re.escape(one)}\b", text)), "")


def _held(body: dict[str, Any]) -> set[str]:
    """Return which of tools and pictures a request has."""
    shown = any(isinstance(message.get("content"), list) for message in body["messages"])
    return {"tools"} & {*body} | ({"images"} if shown else set())


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a message and the calls in it."""
    return [message, *(message.get("tool_calls") or ())]


def _all_calls_are_whole(answer: ModelAnswer) -> bool:
    """Return whether a stream that ended without a reason called tools, and with whole arguments."""
    calls = answer.reply.calls()
    try:
        return bool(calls) and all(isinstance(json.loads(call.arguments), dict) for call in calls)
    except ValueError:
        return False
