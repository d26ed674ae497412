"""Decide one step of a turn: which tools to call, or what to reply.

Rule 1: the same call is never made twice in a turn; an existing result is used.
Rule 2: a tool that is not offered is not called, and its effect is not claimed.
Rule 3: memory is changed fact by fact, for all messages of the turn at once. A request to forget
        goes to the tool that erases, if there is one; its question is shown to the person below the
        reply.
Rule 4: the first answer of a conversation says that it comes from the offline responder.
Rule 5: a reply is in the person's language; who reads English is answered in the language that they
        write, if the responder understands it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any

from bot.core.i18n import N_, _, current_language, use_language
from bot.core.patterns import LazyPattern
from bot.language.fact_terms import comparison_key
from bot.language.forget_requests import EVERYTHING
from bot.language.language_detection import language_of
from bot.llm.base import ModelRequest
from bot.offline import phrases
from bot.offline.answer import answer, listing
from bot.offline.changes import follow_up_query
from bot.offline.files import reply_to_files
from bot.offline.intents import Intent, ParsedQuestion, message_intents
from bot.offline.memory_text import (
    contains_statement,
    matching_lines,
    merge_facts,
    remove_topic,
    user_name,
)
from bot.offline.phrases import quote
from bot.offline.program_words import translated_outcome
from bot.offline.remember_requests import foreign_language, foreign_memory_text, is_reminder_request
from bot.offline.request_parser import (
    CompletedCall,
    ParsedRequest,
    parse_passages,
    parse_request,
)
from bot.offline.small_talk import describe_time, is_bad_news

RECALL_DAYS = 3650
_FAILED = LazyPattern(
    r"refus|fail|error|denied|not saved|nothing was saved|not allowed|interrupted|invalid|too large"
    r"|too long|would drop|quarantin|unknown tool|turned down|not done|set aside|it waits for"
)
_FINE = ("saved", "ok", "noted", "done", "updated", "appended", "added", "note")
_NO_REMINDERS = N_("I cannot send you reminders, though. Ask me about it.")
_SHORT = {
    "ok": N_("OK."),
    "thanks": N_("You're welcome."),
    "wrong": N_("Tell me what is right, and I will note it."),
    "insult": N_("I am sorry that I cannot help. I only note facts and find them again."),
}


@dataclass(frozen=True, slots=True)
class TurnStep:
    """Result of a step: tool calls to make, or the reply if there are none."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


@dataclass(frozen=True, slots=True)
class _Plan:
    """Intents of a turn and the memory that they lead to.

    Attributes:
        prompt: The parsed request.
        intents: Intents of all messages, in order.
        memory: Long-term memory with all changes applied.
        changing: Positions of the messages that change it.
        erases: A tool handles requests to forget, so they do not change ``memory``.
    """

    prompt: ParsedRequest
    intents: tuple[Intent, ...]
    memory: str
    changing: frozenset[int] = field(default_factory=frozenset)
    erases: bool = False


def next_step(request: ModelRequest) -> TurnStep:
    """Return the next step of the turn."""
    plan = _plan(parse_request(request))
    calls = (
        *_write_calls(plan),
        *_erasure_calls(plan),
        *_recall_calls(plan),
    )
    return TurnStep(calls=calls) if calls else TurnStep(text=_reply(plan))


def _plan(prompt: ParsedRequest) -> _Plan:
    name = user_name(prompt.memory)
    turn = [
        replace(message, who=name) if name and not message.in_group else message
        for message in prompt.turn
    ]
    called = {done.name for done in prompt.completed_calls}
    intents = tuple(intent for message in turn for intent in message_intents(message))
    erases = "memory_forget" in prompt.tools | called
    memory = prompt.memory
    changing = set()
    for intent in intents:
        if intent.kind == "forget" and erases:
            continue
        changed = _memory_after(memory, intent)
        if changed != memory:
            changing.add(intent.message.at)
        memory = changed
    return _Plan(prompt, intents, memory, frozenset(changing), erases)


def _memory_after(memory: str, intent: Intent) -> str:
    if intent.kind == "forget" and intent.topic != EVERYTHING:
        return remove_topic(memory, intent.topic).text
    if intent.kind == "remember" and contains_statement(memory, intent.topic):
        return memory
    if intent.kind in ("state", "remember"):
        lines = [fact.line for fact in intent.facts if not fact.daily or intent.kind == "remember"]
        if intent.kind == "remember" and not lines:
            quotation = " ".join(intent.topic.replace('"', "”").split())
            # for the model
            lines = [f'{intent.message.name or intent.message.subject} said: "{quotation}"']
        return merge_facts(memory, lines).text
    return memory


def _last_call_after(plan: _Plan, name: str, at: int) -> CompletedCall | None:
    """Return the last completed call of a tool after a message; None if there is none."""
    calls = [call for call in plan.prompt.completed_calls if call.name == name and call.at > at]
    return calls[-1] if calls else None


def _daily_notes(intent: Intent) -> list[str]:
    return [fact.line for fact in intent.facts if fact.daily and intent.kind == "state"]


def _write_calls(plan: _Plan) -> list[tuple[str, dict[str, Any]]]:
    calls: list[tuple[str, dict[str, Any]]] = []
    tools = plan.prompt.tools
    unsaved = any(_last_call_after(plan, "memory_save", at) is None for at in plan.changing)
    changes = _memory_changes(plan) if "memory_save" in tools and unsaved else []
    if changes:
        calls.append(("memory_save", {"changes": changes}))
    notes: dict[str, list[str]] = {}
    for intent in plan.intents:
        if (
            _daily_notes(intent)
            and _last_call_after(plan, "memory_daily", intent.message.at) is None
        ):
            notes.setdefault(intent.message.date, []).extend(_daily_notes(intent))
    if "memory_daily" in tools:
        for day, lines in notes.items():
            content = "\n".join(f"- {line}" for line in dict.fromkeys(lines))
            calls.append(("memory_daily", {"content": content} | ({"date": day} if day else {})))
    return calls


def _memory_changes(plan: _Plan) -> list[dict[str, Any]]:
    """Return the changes from present to planned memory; new lines change facts in place."""
    old, new = plan.prompt.memory.splitlines(), plan.memory.splitlines()
    changes: list[dict[str, Any]] = []
    for _tag, begin, end, first, last in SequenceMatcher(None, old, new, False).get_opcodes():
        removed = [] if old[begin:end] == new[first:last] else old[begin:end]
        numbers = [plan.prompt.numbers[line] for line in removed if line in plan.prompt.numbers]
        texts = [line.removeprefix("- ") for line in new[first:last] if line not in old]
        for text in filter(None, map(str.strip, texts)):
            change = {"op": "change", "facts": [numbers.pop(0)]} if numbers else {"op": "add"}
            changes.append({**change, "text": text, "quotes": _quotes(plan, text)})
        changes += [
            {"op": "end", "facts": [number], "quotes": _quotes(plan, "")} for number in numbers
        ]
    return changes


def _quotes(plan: _Plan, text: str) -> list[str]:
    """Return the words that say a text, else those of the newest message that changes memory."""
    said = [fact.words for one in plan.intents for fact in one.facts if fact.line == text]
    changing = [one.message.words for one in plan.intents if one.message.at in plan.changing]
    return said[-1:] or changing[-1:]


def _erasure_call(plan: _Plan, intent: Intent) -> CompletedCall | None:
    calls = (call for call in plan.prompt.completed_calls if call.name == "memory_forget")
    return next((call for call in calls if call.arguments == {"what": intent.topic}), None)


def _erasure_calls(plan: _Plan) -> list[tuple[str, dict[str, Any]]]:
    if "memory_forget" not in plan.prompt.tools:
        return []
    requests = [
        intent for intent in plan.intents if intent.kind == "forget" and intent.topic != EVERYTHING
    ]
    topics = dict.fromkeys(
        intent.topic for intent in requests if _erasure_call(plan, intent) is None
    )
    return [("memory_forget", {"what": what}) for what in topics]


def _recall_arguments(question: ParsedQuestion) -> dict[str, Any]:
    if question.relative_day and not question.required:
        return {"days": 2}
    return {"query": question.query, "days": RECALL_DAYS}


def _recall_arguments_for(plan: _Plan, intent: Intent) -> list[dict[str, Any]]:
    """Return arguments of recall calls for a question, and for facts that may have changed."""
    if intent.question is None or not (intent.question.query or intent.question.relative_day):
        return []
    arguments = [_recall_arguments(intent.question)]
    if named := follow_up_query(_all_facts(plan), intent.message, intent.question):
        arguments.append({"query": named, "days": RECALL_DAYS})
    return arguments


def _recall_calls(plan: _Plan) -> list[tuple[str, dict[str, Any]]]:
    if "memory_recall" not in plan.prompt.tools:
        return []
    done_before = [
        call.arguments for call in plan.prompt.completed_calls if call.name == "memory_recall"
    ]
    calls: list[tuple[str, dict[str, Any]]] = []
    for intent in plan.intents:
        for arguments in _recall_arguments_for(plan, intent):
            if arguments not in done_before:
                done_before.append(arguments)
                calls.append(("memory_recall", arguments))
    return calls


def _reply(plan: _Plan) -> str:
    parts: list[str] = []
    for intent in plan.intents:
        with use_language(_reply_language(intent)):
            parts += filter(None, [_reply_to_intent(plan, intent)])
    body = "\n\n".join(dict.fromkeys(parts)) or _(phrases.NOTHING_FOUND)
    model_was_named = not parts or any(intent.kind == "other" for intent in plan.intents)
    if _is_first_answer(plan) and not model_was_named:
        with use_language(_reply_language(plan.intents[-1])):
            body += f"\n\n_{_(phrases.NO_MODEL)}_"
    return body


def _is_first_answer(plan: _Plan) -> bool:
    """Return whether the conversation had no answer yet, not even before ``/new``."""
    return plan.prompt.first and not plan.prompt.handoff


def _all_facts(plan: _Plan) -> str:
    """Return the person's facts and the facts shared with everyone, as text."""
    return "\n".join(filter(None, (plan.memory, plan.prompt.shared)))


def _reply_language(intent: Intent) -> str:
    """Return the person's language; who reads English is answered in the language that they write."""
    words, current = intent.message.words, current_language()
    return current if current != "en" else foreign_language(words) or language_of(words)


def _reply_to_intent(plan: _Plan, intent: Intent) -> str:
    if intent.message.files and (
        not intent.message.words or (intent.kind == "other" and not intent.topic)
    ):
        return reply_to_files(intent.message.files)
    if intent.kind in ("state", "remember"):
        confirmation = _confirm_statement(plan, intent)
        if is_bad_news(intent.message.words):
            return f"{_(phrases.SORRY)} {confirmation}"
        return confirmation
    if intent.kind == "forget":
        return _reply_to_forget_request(plan, intent)
    if intent.kind == "ask" and intent.question is not None:
        arguments = _recall_arguments_for(plan, intent)
        results = [
            parse_passages(call.result)
            for call in plan.prompt.completed_calls
            if call.arguments in arguments
        ]
        recalled = [passage for result in results for passage in result]
        return answer(plan.prompt, _all_facts(plan), recalled, intent.message, intent.question)
    if intent.kind == "all":
        known = listing(plan.prompt, _all_facts(plan), intent.message)
        if known:
            return f"{_(phrases.ALL_KNOWN)}\n{known}"
        return f"{_(phrases.UNKNOWN)} {_(phrases.TELL_ME)}"
    if intent.kind == "courtesy":
        return _small_talk_reply(plan, intent)
    return _(phrases.NEEDS_MODEL) if intent.topic else _(phrases.NOTHING_FOUND)


def _confirm_statement(plan: _Plan, intent: Intent) -> str:
    words = intent.topic or " ".join(dict.fromkeys(fact.words for fact in intent.facts))
    quotation = quote(words)
    written = [
        call
        for name in ("memory_save", "memory_daily")
        if (call := _last_call_after(plan, name, intent.message.at)) and _needs_tool(intent, name)
    ]
    refused = [call for call in written if not saved(call.result)]
    if refused:
        return _(phrases.NOT_SAVED, why=_why(refused[0].result))
    unsaved = intent.message.at in plan.changing and not any(
        call.name == "memory_save" for call in written
    )
    unnoted = bool(_daily_notes(intent)) and not any(
        call.name == "memory_daily" for call in written
    )
    if unsaved or unnoted:
        return _(
            "I read that, but I may not write to memory in this step, so it is not saved: {quote}",
            quote=quotation,
        )
    if intent.kind == "remember":
        foreign = foreign_memory_text(intent.message.words)
        confirmation = _(phrases.REMEMBERED, quote=quote(foreign) if foreign else quotation)
        if not is_reminder_request(intent.message.words):
            return confirmation
        return f"{confirmation}. {_(_NO_REMINDERS)}"
    return _(phrases.NOTED if written else phrases.KNOWN, quote=quotation)


def _needs_tool(intent: Intent, name: str) -> bool:
    daily = _daily_notes(intent)
    return (
        bool(daily)
        if name == "memory_daily"
        else len(daily) < len(intent.facts) or intent.kind == "remember"
    )


def _reply_to_forget_request(plan: _Plan, intent: Intent) -> str:
    if intent.topic == EVERYTHING:
        return _(phrases.ERASE_ALL)
    if plan.erases:
        return _erasure_reply(_erasure_call(plan, intent))
    call = _last_call_after(plan, "memory_save", intent.message.at)
    if call is None:
        if matching_lines(plan.prompt.memory, intent.topic):
            return _("I may not write to memory in this step, so nothing is forgotten yet.")
        kept = _("What was said stays on the tape.")
        return f"{_(phrases.NOTHING_TO_FORGET)} {kept}"
    if not saved(call.result):
        failed = _(phrases.NOT_FORGOTTEN, why=_why(call.result))
        clear = _("`/memory clear` clears all of it.")
        return f"{failed} {clear}"
    confirmation = _(phrases.FORGOTTEN, quote=quote(intent.topic))
    kept = _("The words themselves stay on the tape; `/memory undo` brings the line back.")
    return f"{confirmation} {kept}"


def _erasure_reply(call: CompletedCall | None) -> str:
    if call is None:
        return _("I may not erase anything in this step, so nothing is forgotten yet.")
    if call.result.lstrip().startswith("Nothing"):
        return _(phrases.NOTHING_TO_FORGET)
    if call.result.lstrip().startswith("Not done"):
        return _(phrases.NOT_FORGOTTEN, why=_why(call.result))
    # The tool's findings and question are shown below the reply.
    return _(phrases.FOUND_TO_FORGET)


def _small_talk_reply(plan: _Plan, intent: Intent) -> str:
    name = intent.message.name if comparison_key(intent.message.name) else ""
    if intent.small_talk == "about":
        start = "" if _is_first_answer(plan) else _(phrases.NO_MODEL) + "\n\n"
        return start + _(phrases.HELP)
    if intent.small_talk == "hello":
        hello = _("Hello, {name}!", name=name) if name else _("Hello!")
        return f"{hello} {_(phrases.HELP)}"
    if intent.small_talk == "clock":
        return describe_time(intent.message.date, intent.message.time)
    if intent.small_talk == "bye":
        bye = _("Goodbye, {name}.", name=name) if name else _("Goodbye.")
        kept = _("What you told me stays here.")
        return f"{bye} {kept}"
    return _(_SHORT[intent.small_talk])


def saved(result: str) -> bool:
    """Return whether a tool's result reports a successful write."""
    low = result.strip().lower()[:300]
    return low.startswith(_FINE) or not _FAILED.search(low)


def _why(result: str) -> str:
    return translated_outcome(result) or _("the tool gave no reason")
