"""Decide one step of a turn: which tools to call, or what to reply.

Rule 1: the same call is never made twice in a turn; an existing result is used.
Rule 2: a tool that is not offered is not called, and its effect is not claimed.
Rule 3: memory is changed fact by fact, for all messages of the turn at once. A request to forget
        goes to the tool that erases, if there is one; its question is shown to the person below the
        reply.
Rule 4: the first answer of a conversation says that it comes from the offline responder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import Any

from bot.language.fact_terms import comparison_key
from bot.language.forget_requests import EVERYTHING
from bot.language.language_detection import language_of
from bot.language.parsed_facts import parse_fact
from bot.language.topics import slot_of
from bot.llm.base import ModelRequest
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
from bot.offline.phrases import PHRASES, Phrases, quote
from bot.offline.remember_requests import foreign_confirmation, is_reminder_request
from bot.offline.request_parser import CompletedCall, ParsedRequest, parse_passages, parse_request
from bot.offline.small_talk import describe_time, is_bad_news

RECALL_DAYS = 3650
_FAILED = re.compile(
    r"refus|fail|error|denied|not saved|nothing was saved|not allowed|interrupted|invalid|too large"
    r"|too long|would drop|quarantin|unknown tool|turned down|not done|set aside|it waits for"
)
_FINE = ("saved", "ok", "noted", "done", "updated", "appended", "added", "note")
_NO_REMINDERS = (
    "I cannot remind you by myself, though: reminders do not exist yet. Ask me about it."
)
_SHORT = {
    "ok": "OK.",
    "wrong": "Tell me what is right, and I will note it.",
    "insult": "I am sorry that I am no help here. I note facts and find them again, no more.",
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
        acts: Intents of all messages, in order.
        memory: Long-term memory with all changes applied.
        changing: Positions of the messages that change it.
        erases: A tool handles requests to forget, so they do not change ``memory``.
    """

    prompt: ParsedRequest
    acts: tuple[Intent, ...]
    memory: str
    changing: frozenset[int] = field(default_factory=frozenset)
    erases: bool = False


def next_step(request: ModelRequest) -> TurnStep:
    """Return the next step of the turn."""
    plan = _plan(parse_request(request))
    calls = (*_write_calls(plan), *_erasure_calls(plan), *_recall_calls(plan))
    return TurnStep(calls=calls) if calls else TurnStep(text=_reply(plan))


def _plan(prompt: ParsedRequest) -> _Plan:
    name = user_name(prompt.memory)
    turn = [replace(said, who=name) if name and not said.in_group else said for said in prompt.turn]
    wanted = tuple(act for said in turn for act in message_intents(said))
    called = {done.name for done in prompt.completed_calls}
    erases = "memory_forget" in prompt.tools | called
    memory = prompt.memory
    changing = set()
    for act in wanted:
        if act.kind == "forget" and erases:
            continue
        changed = _memory_after(memory, act)
        if changed != memory:
            changing.add(act.message.at)
        memory = changed
    return _Plan(prompt, wanted, memory, frozenset(changing), erases)


def _memory_after(memory: str, act: Intent) -> str:
    if act.kind == "forget" and act.topic != EVERYTHING:
        return remove_topic(memory, act.topic).text
    if act.kind == "remember" and contains_statement(memory, act.topic):
        return memory
    if act.kind in ("state", "remember"):
        lines = [fact.line for fact in act.facts if not fact.daily or act.kind == "remember"]
        if act.kind == "remember" and not lines:
            said = " ".join(act.topic.replace('"', "”").split())
            lines = [f'{act.message.name or act.message.subject} said: "{said}"']
        return merge_facts(memory, lines).text
    return memory


def _last_call_after(plan: _Plan, name: str, at: int) -> CompletedCall | None:
    """Return the last completed call of a tool after a message; None if there is none."""
    found = [done for done in plan.prompt.completed_calls if done.name == name and done.at > at]
    return found[-1] if found else None


def _daily_notes(act: Intent) -> list[str]:
    return [fact.line for fact in act.facts if fact.daily and act.kind == "state"]


def _write_calls(plan: _Plan) -> list[tuple[str, dict[str, Any]]]:
    calls: list[tuple[str, dict[str, Any]]] = []
    tools = plan.prompt.tools
    unsaved = any(_last_call_after(plan, "memory_save", at) is None for at in plan.changing)
    changes = _memory_changes(plan) if "memory_save" in tools and unsaved else []
    if changes:
        calls.append(("memory_save", {"changes": changes}))
    notes: dict[str, list[str]] = {}
    for act in plan.acts:
        if _daily_notes(act) and _last_call_after(plan, "memory_daily", act.message.at) is None:
            notes.setdefault(act.message.date, []).extend(_daily_notes(act))
    if "memory_daily" in tools:
        for day, lines in notes.items():
            content = "\n".join(f"- {line}" for line in dict.fromkeys(lines))
            calls.append(("memory_daily", {"content": content} | ({"date": day} if day else {})))
    return calls


def _memory_changes(plan: _Plan) -> list[dict[str, Any]]:
    """Return the changes from present to planned memory; new lines change facts in place."""
    old, new = plan.prompt.memory.splitlines(), plan.memory.splitlines()
    found: list[dict[str, Any]] = []
    for _, begin, end, first, last in SequenceMatcher(None, old, new, False).get_opcodes():
        gone = [] if old[begin:end] == new[first:last] else old[begin:end]
        numbers = [plan.prompt.numbers[line] for line in gone if line in plan.prompt.numbers]
        texts = [line.removeprefix("- ") for line in new[first:last] if line not in old]
        for text in filter(None, map(str.strip, texts)):
            change = {"op": "change", "fact": numbers.pop(0)} if numbers else {"op": "add"}
            slot = slot_of(parse_fact(text))
            found.append({**change, "text": text} | ({"slot": slot} if slot else {}))
        found += [{"op": "end", "fact": number} for number in numbers]
    return found


def _erasure_call(plan: _Plan, act: Intent) -> CompletedCall | None:
    found = (done for done in plan.prompt.completed_calls if done.name == "memory_forget")
    return next((done for done in found if done.arguments == {"what": act.topic}), None)


def _erasure_calls(plan: _Plan) -> list[tuple[str, dict[str, Any]]]:
    if "memory_forget" not in plan.prompt.tools:
        return []
    wishes = [act for act in plan.acts if act.kind == "forget" and act.topic != EVERYTHING]
    wanted = dict.fromkeys(act.topic for act in wishes if _erasure_call(plan, act) is None)
    return [("memory_forget", {"what": what}) for what in wanted]


def _recall_arguments(question: ParsedQuestion) -> dict[str, Any]:
    if question.relative_day and not question.required:
        return {"days": 2}
    return {"query": question.query, "days": RECALL_DAYS}


def _recall_arguments_for(plan: _Plan, act: Intent) -> list[dict[str, Any]]:
    """Return arguments of recall calls for a question, and for facts that may have changed."""
    if act.question is None or not (act.question.query or act.question.relative_day):
        return []
    wanted = [_recall_arguments(act.question)]
    if named := follow_up_query(_all_facts(plan), act.message, act.question):
        wanted.append({"query": named, "days": RECALL_DAYS})
    return wanted


def _recall_calls(plan: _Plan) -> list[tuple[str, dict[str, Any]]]:
    if "memory_recall" not in plan.prompt.tools:
        return []
    made = [done.arguments for done in plan.prompt.completed_calls if done.name == "memory_recall"]
    calls: list[tuple[str, dict[str, Any]]] = []
    for act in plan.acts:
        for wanted in _recall_arguments_for(plan, act):
            if wanted not in made:
                made.append(wanted)
                calls.append(("memory_recall", wanted))
    return calls


def _reply(plan: _Plan) -> str:
    parts = [text for act in plan.acts if (text := _reply_to_intent(plan, act))]
    body = "\n\n".join(dict.fromkeys(parts)) or PHRASES["en"].nothing
    said_so = not parts or any(act.kind == "other" for act in plan.acts)
    if plan.prompt.first and not said_so:
        body += f"\n\n{_phrases(plan.acts[-1]).honest}"
    return body


def _all_facts(plan: _Plan) -> str:
    """Return the person's facts and the facts shared with everyone, as text."""
    return "\n".join(filter(None, (plan.memory, plan.prompt.shared)))


def _phrases(act: Intent) -> Phrases:
    return PHRASES[language_of(act.message.words)]


def _reply_to_intent(plan: _Plan, act: Intent) -> str:
    phrases = _phrases(act)
    if act.message.files and (not act.message.words or (act.kind == "other" and not act.topic)):
        return reply_to_files(act.message.files)
    if act.kind in ("state", "remember"):
        sorry = "I'm sorry. " if is_bad_news(act.message.words) else ""
        return sorry + _confirm_statement(plan, act, phrases)
    if act.kind == "forget":
        return _reply_to_forget_request(plan, act, phrases)
    if act.kind == "ask" and act.question is not None:
        wanted = _recall_arguments_for(plan, act)
        found = [
            parse_passages(done.result)
            for done in plan.prompt.completed_calls
            if done.arguments in wanted
        ]
        recalled = [one for result in found for one in result]
        return answer(plan.prompt, _all_facts(plan), recalled, act.message, act.question)
    if act.kind == "all":
        known = listing(plan.prompt, _all_facts(plan), act.message)
        return (
            f"This is what I know:\n{known}"
            if known
            else f"{phrases.unknown} {phrases.how_to_tell}"
        )
    if act.kind == "courtesy":
        return _small_talk_reply(plan, act, phrases)
    return phrases.needs_model if act.topic else phrases.nothing


def _confirm_statement(plan: _Plan, act: Intent, phrases: Phrases) -> str:
    words = act.topic or " ".join(dict.fromkeys(fact.words for fact in act.facts))
    said = quote(words, phrases)
    written = [
        done
        for name in ("memory_save", "memory_daily")
        if (done := _last_call_after(plan, name, act.message.at)) and _needs_tool(act, name)
    ]
    refused = [done for done in written if not saved(done.result)]
    if refused:
        return f"I could not save that: {_first_line(refused[0].result)}"
    unsaved = act.message.at in plan.changing and not any(
        done.name == "memory_save" for done in written
    )
    unnoted = bool(_daily_notes(act)) and not any(done.name == "memory_daily" for done in written)
    if unsaved or unnoted:
        return (
            f"I read that, but I may not write to memory in this step, so it is not saved: {said}"
        )
    if act.kind == "remember":
        told = foreign_confirmation(act.message.words) or phrases.remember.format(quote=said)
        return f"{told}. {_NO_REMINDERS}" if is_reminder_request(act.message.words) else told
    if written:
        return phrases.noted.format(quote=said)
    return phrases.known.format(quote=said)


def _needs_tool(act: Intent, name: str) -> bool:
    daily = _daily_notes(act)
    return (
        bool(daily)
        if name == "memory_daily"
        else len(daily) < len(act.facts) or act.kind == "remember"
    )


def _reply_to_forget_request(plan: _Plan, act: Intent, phrases: Phrases) -> str:
    if act.topic == EVERYTHING:
        return (
            "To erase all of my memory, send `/memory clear`. I do not do that on a sentence alone."
        )
    if plan.erases:
        return _erasure_reply(_erasure_call(plan, act), phrases)
    done = _last_call_after(plan, "memory_save", act.message.at)
    if done is None:
        if matching_lines(plan.prompt.memory, act.topic):
            return "I may not write to memory in this step, so nothing is forgotten yet."
        return f"{phrases.nothing_to_forget} What was said stays on the tape."
    if not saved(done.result):
        return (
            f"I could not forget that: {_first_line(done.result)} `/memory clear` clears all of it."
        )
    told = phrases.forgotten.format(quote=quote(act.topic, phrases))
    return f"{told} The words themselves stay on the tape; `/memory undo` brings the line back."


def _erasure_reply(done: CompletedCall | None, phrases: Phrases) -> str:
    if done is None:
        return "I may not erase anything in this step, so nothing is forgotten yet."
    if done.result.lstrip().startswith("Nothing"):
        return phrases.nothing_to_forget
    if done.result.lstrip().startswith("Not done"):
        return _first_line(done.result)
    # The tool's findings and question are shown below the reply.
    return phrases.found_to_forget


def _small_talk_reply(plan: _Plan, act: Intent, phrases: Phrases) -> str:
    name = f", {act.message.name}" if act.message.name and comparison_key(act.message.name) else ""
    if act.small_talk == "about":
        start = "" if plan.prompt.first else phrases.honest.strip("_") + "\n\n"
        return start + phrases.honest_help
    if act.small_talk == "hello":
        return f"{phrases.hello.format(name=name)} {phrases.honest_help}"
    if act.small_talk == "clock":
        return describe_time(act.message.date, act.message.time)
    return _SHORT.get(act.small_talk) or (
        phrases.thanks if act.small_talk == "thanks" else phrases.bye.format(name=name)
    )


def saved(result: str) -> bool:
    """Return whether a tool's result reports a successful write."""
    low = result.strip().lower()[:300]
    return low.startswith(_FINE) or not _FAILED.search(low)


def _first_line(result: str) -> str:
    line = result.strip().partition("\n")[0][:300] or "the tool gave no reason"
    return line if line.endswith((".", "!", "?")) else f"{line}."
