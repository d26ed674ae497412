"""Reasons of decisions, which are recorded as a code with values and shown in the reader's language.

A tape is free of language: an entry holds ``{"code": "fact_repeated", "fact": 3}``. ``Reason.as_json``
writes that and ``parse_reason`` reads it. An entry from before there were codes holds a text, which is
shown as it is.

A ``Reason`` is its English text, for the model and for logs. Where it is formatted into a message,
``_("Not added: {reason}.", reason=reason)``, it appears in the current language; ``{reason!s}`` is
English in every language.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from bot.core.i18n import N_, _

REASONS = {
    # The write gate.
    "approved": N_("approved"),
    "contested": N_("it contradicts what another source said; a person must decide"),
    "not_aligned": N_("it does not serve the priorities"),
    "ungrounded": N_("no words of a person carry it; it is logged, not believed"),
    "unsure": N_("its confidence of {confidence:.2f} is below the {needed:.1f} needed here"),
    "order": N_("it tells the assistant what to do, and an owner did not say it"),
    "order_not_owner": N_("it tells the assistant what to do, and the words are not an owner's"),
    "order_not_own": N_("it tells the assistant what to do, and the words are not a person's own"),
    "outside_text": N_("it is from quoted or fetched text, and no words of a person say it"),
    "imported_line": N_("it is a line of {who}"),
    "imported_conversation": N_("it is from a conversation with {who}"),
    "program_proposes": N_("the program {program} proposes it, which is no person's word"),
    "waited_elsewhere": N_("it waited for a person in the other memory"),
    "accepted_elsewhere": N_(
        "a person accepted it in the other memory, though no words of theirs carry it"
    ),
    # Decisions on facts.
    "accepted": N_("accepted by a person"),
    "dropped": N_("dropped by a person"),
    "ended": N_("ended"),
    "taken_back": N_("taken back"),
    "restored": N_("it is as it was before"),
    "fact_missing": N_("there is no fact {fact}"),
    "fact_unnamed": N_("there is no fact"),
    "fact_not_pending": N_("fact {fact} is not pending"),
    "fact_known": N_("fact {fact} says so already"),
    "fact_repeated": N_("fact {fact} was said again"),
    "fact_newer": N_("fact {fact} is newer"),
    "fact_ended": N_("fact {fact} has ended already"),
    "fact_ended_since": N_("fact {fact} said so and was ended since"),
    "fact_holds": N_("fact {fact} holds: it was said again"),
    "fact_not_judged": N_("fact {fact} waits for no judge"),
    "fact_says_less": N_("it says more than fact {fact} did"),
    "fact_not_ended_here": N_("fact {fact} did not end here"),
    "fact_remains": N_("what stays of fact {fact}"),
    "fact_does_not_end": N_("fact {fact} does not end: {why}"),
    "fact_shortened": N_("it drops most of what fact {fact} says"),
    "fact_detail_dropped": N_("of fact {fact} it drops something that the user said: {why}"),
    "pending_already": N_("it is pending already"),
    "said_by_another": N_("somebody else said it"),
    "no_heir": N_("what was to take its place is not believed"),
    "own_words_kept": N_("kept in the person's own words: of what was proposed, {why}"),
    "says_nothing": N_("it says nothing"),
    "too_long": N_("it is longer than {limit} characters"),
    "memory_full": N_("there are {limit} facts already: forget some first"),
    "too_many_ends": N_(
        "this would end {ended} of {facts} facts at once: keep them, and end only what the user's "
        "own words end"
    ),
    "secret": N_("it looks like {kind}"),
    "secret_unasked": N_("it looks like {kind}, which is not learned unasked"),
    "secret_elsewhere": N_("it looks like {kind}, which is kept only where a person asks"),
    "private_key": N_("a private key"),
    "recovery_phrase": N_("a recovery phrase"),
    "password": N_("a password"),
    "api_key": N_("an API key"),
    "one_time_code": N_("a one-time code"),
    "pin": N_("a PIN"),
    "card_number": N_("a card number"),
    "iban": N_("an IBAN"),
    # Evidence.
    "message_out_of_range": N_("message {message} is not in the range"),
    "message_lacks_quote": N_("message {message} does not say {quote!r}"),
    "cites_nothing": N_("it cites no message"),
    "no_text": N_("it has no text"),
    "does_not_hold": N_("it does not hold"),
    "words_say_nothing": N_("the words say nothing of it"),
    "words_say_it_holds": N_("the words say that it holds"),
    "user_said_nothing": N_("the user said nothing of it"),
    "not_carried": N_("no words of the user carry it"),
    "not_carried_words": N_("no words of the user carry it: {words}"),
    "too_long_to_check": N_("it is too long to be checked"),
    "nothing_said": N_("nothing is said in it"),
    "name_missing": N_("the user's words do not name {name}"),
    "date_missing": N_("the user's words do not give the date {date}"),
    "number_missing": N_("the user's words do not give the number {number}"),
    "other_subject": N_("it speaks of something else"),
    "other_person": N_("it speaks of somebody else"),
    "word_missing": N_("it does not speak of {word}"),
    "only_asked": N_("it only asks"),
    "only_supposed": N_("it only supposes it"),
    "only_reported": N_("it repeats somebody else's words"),
    "joke": N_("it is plainly a joke"),
    "opposite": N_("it says the opposite"),
    "not_denied": N_("it does not deny that"),
    "not_of_all": N_("it is not said of all"),
    "roles_swapped": N_("it is told the other way round"),
    # The judge.
    "judge_supported": N_("the judge finds that the words carry it"),
    "judge_not_supported": N_("the judge finds that the words do not say it"),
    "judge_contradicted": N_("the judge finds that the words say the opposite"),
    "judge_other_person": N_("the judge finds that the words speak of somebody else"),
    "judge_overstated": N_("the judge finds that it says more than the words"),
    "judge_not_stated": N_("the judge finds that the words only ask, suppose, joke or quote"),
    "judged_by": N_("{ruling} ({model})"),
    "judged_because": N_("{ruling}: {explanation}"),
    "judged_by_because": N_("{ruling} ({model}): {explanation}"),
    # Beliefs.
    "evidence_missing": N_("{evidence} is missing"),
    "evidence_erased": N_("{evidence} was erased"),
    "evidence_pending": N_("{evidence} waits for a person"),
    "evidence_superseded": N_("{evidence} was superseded"),
    "evidence_superseded_by": N_("{evidence} was superseded by {by}"),
    "evidence_retired": N_("{evidence} was retired"),
    "evidence_dropped": N_("{evidence} was dropped"),
    "belief_stale": N_("{evidence} is stale"),
    "belief_retired": N_("{evidence} is retired"),
    "belief_contradicts": N_("{evidence} says otherwise"),
    "belief_invalid": N_("revalidated: no longer valid"),
    "belief_confirmed": N_("revalidated: still valid"),
    "cleared": N_("cleared"),
    "parted": N_("parted"),
    "several": "{reasons}",
    # Why a consolidation failed.
    "crashed": N_("tapebot hung or crashed in it"),
    "answer_cut_off": N_("its answer was cut off at the model's limit"),
    "answered_in_prose": N_("it answered in prose ({said!r}) instead of calling {tool}"),
    "called_no_tool": N_("it called no tool instead of calling {tool}"),
    "answer_unusable": N_("its {part} cannot be used: {error}"),
    "history_empty": N_("its history entry is empty"),
    # Why a model gave no answer.
    "model_said": "{model}: {error}",
    "model_no_provider": N_(
        "{model}: no such provider; write provider/model, such as openai/gpt-5"
    ),
    "model_no_key": N_("{model}: no API key; set {variable}"),
    "model_unreadable": N_("the model's server sent an answer that cannot be understood"),
    "model_timeout": N_("no answer in time"),
    "model_key_refused": N_(
        "the key was refused; see TAPEBOT_MODEL_API_KEY, or the provider's own variable"
    ),
    "model_answer_cut_off": N_("the answer was cut off"),
    "model_answer_too_long": N_("the model's server sent an answer of more than {limit} MB"),
    "model_line_too_long": N_("the model's server sent a line of more than {limit} MB"),
    "model_answer_packed": N_(
        "the model's server sent an answer packed as {packing}, which was not asked for"
    ),
    "model_unreachable": N_("{address} cannot be reached: {error}"),
    "model_connection_broken": N_("the model's server broke the connection off"),
    "model_answer_broken": N_("the model's server broke the answer off"),
    "model_bad_address": N_("{address} is no address"),
    "model_server_unusable": N_("the model's server cannot be used: {error}"),
    "model_redirected": N_("it redirects to {address}; that address may be meant"),
    "model_library_missing": N_("aiohttp is missing: {command}"),
    "model_litellm_missing": N_("litellm is missing: {command}"),
    "model_answer_refused": N_("{name}: the model's server sent {large}"),
    "model_calls_too_many": N_(
        "the model asked for more in one answer than is carried out (at most {most_calls} tool calls, {most_arguments} characters); nothing was done"
    ),
    "gguf_cut_off": N_("{name}: the answer was cut off"),
    "gguf_unreadable": N_("cannot read the model {path}: {why}"),
    "gguf_not_one": N_("{path} is not a GGUF file"),
    "gguf_library_missing": N_("xllamacpp is missing: {command}"),
    "gguf_not_loaded": N_("llama.cpp cannot load {path}: {why}"),
    # Why an MCP server is not there.
    "mcp_not_reached": N_("it was not reached yet"),
    "mcp_package_missing": N_('a package is missing; install "tapebot[mcp]"'),
    "mcp_stopping": N_("tapebot is stopping"),
    "mcp_login_changed": N_("its login changed"),
    "mcp_login_renewed": N_("its login is being renewed"),
    "mcp_login_needed": N_("it needs a login: /mcp login {server}"),
    "mcp_login_damaged": N_("its login is damaged; log in anew"),
    "mcp_login_unread": N_("its login cannot be read ({error})"),
    "mcp_login_unkept": N_("its login cannot be kept ({error})"),
    "mcp_login_lost": N_("its login cannot be read or kept ({error})"),
    "mcp_file_damaged": N_("the file is damaged"),
    "mcp_silent": N_("it does not answer in time"),
    "mcp_slow": N_("it did not answer within {seconds} seconds"),
    "mcp_ended": N_("it ended"),
    "mcp_bad_list": N_("its list of tools is malformed"),
    "mcp_bad_output": N_("it writes what is no message to its standard output"),
    "mcp_long_message": N_("it sent a message of more than {limit} bytes"),
    "mcp_not_started": N_("its program cannot be started ({error})"),
    "mcp_bad_command": N_("its command or environment is malformed"),
    "mcp_refused": N_("it refuses the connection: {error}"),
    "mcp_unreachable": N_("it cannot be reached ({error})"),
    "mcp_nonsense": N_("it answers with nonsense ({error})"),
    # Why a call waits for a yes.
    "argument_unsaid": N_("{name} is {origin}"),
    "origin_outside_at": N_("from outside, not from whoever asked ({entry})"),
    "origin_outside": N_("not in the words of whoever asked"),
    "origin_model": N_("written by the model"),
    "origin_memory_at": N_("in words that memory rests on ({entry})"),
    "origin_memory": N_("in words that memory rests on"),
    "origin_person_at": N_("in the words of whoever asked ({entry})"),
    "origin_person": N_("in the words of whoever asked"),
    "origin_owner_at": N_("in an owner's words ({entry})"),
    "origin_owner": N_("in an owner's words"),
    "address_unnamed": N_(
        "I had read text from outside, and you named neither this address nor the site of a link to it"
    ),
    "address_composed": N_("the address has more than {most} characters, and you did not give it"),
    "many_addresses": N_("it holds more addresses than anybody would check"),
    "holds_secret": N_("it holds what looks like {kind}"),
    "holds_memory": N_(
        "it holds what memory or the tape says ({detail!r}), and you did not say that here"
    ),
    # Models.
    "empty_answer": N_("the model gave an empty answer, twice"),
    # What is in view from outside.
    "source_earlier": N_("what {tool} found in earlier text ({entry})"),
    "source_result": N_("the result of {tool} ({entry})"),
    "source_call": N_("the result of call {call} ({entry})"),
    "source_cause": N_("what came by {cause} ({entry})"),
    "source_task": N_("the result of a task ({entry})"),
    "source_quoted": N_("quoted text or a file ({entry})"),
    "source_words": N_("the words of {who} ({entry})"),
    "source_people": N_("the words of several people at once"),
    "source_belief": N_("a belief in memory, in the model's words (`/memory beliefs`)"),
    "source_fact": N_("a fact in memory that is not from people's own words"),
    "source_own": N_("what I wrote after I had read such text ({entry})"),
    "source_summaries": N_("summaries of earlier text ({entry})"),
    "source_instructions": N_("the instructions of the program that asks ({entry})"),
}
"""The message of each code. A code that was released keeps its meaning and its values."""

_BETWEEN = "; "


class Reason(str):
    """Why a decision was made: a code with values, and its English text.

    Args:
        code: A code of ``REASONS``.
        values: What its message names: texts, numbers or other reasons.

    Attributes:
        code: The code.
        values: The values.
    """

    __slots__ = ("code", "values")

    code: str
    values: dict[str, Any]

    def __new__(cls, code: str, /, **values: Any) -> Self:
        """Return the reason; its message must fit the values."""
        plain = {name: _plain(value) for name, value in values.items()}
        self = super().__new__(cls, REASONS[code].format_map(plain))
        self.code, self.values = code, values
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        """Return what makes a copy."""
        return (self.code,), self.values

    def __format__(self, spec: str) -> str:
        """Return the text in the current language."""
        if self.code == "several":
            text = _BETWEEN.join(f"{reason}" for reason in self.values["reasons"])
        else:
            text = _(REASONS[self.code], **self.values)
        return format(text, spec)

    def as_json(self) -> dict[str, Any]:
        """Return it as an entry records it."""
        return {"code": self.code, **{name: _as_json(value) for name, value in self.values.items()}}


def join_reasons(reasons: list[str]) -> str:
    """Return several reasons as one."""
    return Reason("several", reasons=reasons) if len(reasons) != 1 else reasons[0]


def split_reasons(reason: str) -> list[str]:
    """Return the parts of what ``join_reasons`` returned, or of a recorded text."""
    if isinstance(reason, Reason):
        return list(reason.values["reasons"]) if reason.code == "several" else [reason]
    return [part for part in reason.split(_BETWEEN) if part]


def reason_json(reason: str) -> object:
    """Return a reason as an entry records it; a text that is not the program's own as it is."""
    return _as_json(reason)


def parse_reason(record: object) -> str:
    """Read a recorded reason: a code with values, or the text of an entry without codes."""
    if not isinstance(record, dict):
        return record if isinstance(record, str) else ""
    values = {name: _parsed(value) for name, value in record.items() if isinstance(name, str)}
    code = str(values.pop("code", ""))
    if code == "several" and not isinstance(values.get("reasons"), list):
        return code
    try:
        return Reason(code, **values)
    except (KeyError, ValueError, TypeError, AttributeError, IndexError):
        # A later version wrote it, or no version did.
        return code


def reason_text(record: object) -> str:
    """Return a reason, recorded or not, in the current language."""
    return f"{parse_reason(record)}"


def recorded_words(record: object) -> Iterator[str]:
    """Yield the texts that a recorded reason names, without the program's own codes."""
    if isinstance(record, str):
        yield record
    elif isinstance(record, list):
        for one in record:
            yield from recorded_words(one)
    elif isinstance(record, dict):
        for name, value in record.items():
            if name != "code":
                yield from recorded_words(value)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return _BETWEEN.join(map(str, value))
    return str(value) if isinstance(value, Reason) else value


def _as_json(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_json(one) for one in value]
    return value.as_json() if isinstance(value, Reason) else value


def _parsed(value: object) -> object:
    if isinstance(value, list):
        return [_parsed(one) for one in value]
    return parse_reason(value) if isinstance(value, dict) else value


def reason_of(error: Exception) -> str:
    """Return what a refusal says, as a reason if it holds one."""
    told = error.args[0] if error.args else ""
    return told if isinstance(told, Reason) else str(error)
