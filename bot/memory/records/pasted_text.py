"""Separate a writer's own words from pasted mails, chats, quotations and texts to work on. Pure.

Rule 1: a mail is recognised by its header, a forwarding line, or a salutation with a signature that
    is not the writer's; a chat by its times and speakers. The writer's words around them stay the
    writer's.
Rule 2: if in doubt, a text is the writer's own: a writer's list has labels, too.
Rule 3: each line is matched once, by patterns without nested repetition.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from bot.core.folding import fold_text, words
from bot.core.patterns import LazyPattern

_LONGEST = 20_000
"""Characters that are examined; text behind them counts as the writer's own."""

_FORWARDED = LazyPattern(
    r"-{2,}.{0,40}(?:forward|original|weitergeleitet|ursprungliche|transfere|reenviado|inoltrato|encaminhada|пересл|пересыл)"
    r"|(?:fwd?|wg|rv|enc)\s?:"
)
_WROTE = LazyPattern(
    r".{0,120}(?:\bwrote|\bschrieb\b.{0,60}|\ba ecrit|\bescribio|\bha scritto|\bescreveu|\bнаписала?)\s?:$"
)
_HEADER = LazyPattern(
    r"(?:from|to|cc|date|sent|subject|von|an|datum|gesendet|betreff|de|envoye|objet|para|fecha|asunto|data|oggetto"
    r"|assunto|от|кому|дата|тема)\s?:\s?\S"
)
_SUBJECT = LazyPattern(r"(?:subject|betreff|objet|asunto|oggetto|assunto|тема)\s?:")
_LABEL = LazyPattern(
    r"(?<![^\W\d_])(?:(from|von|de|da|от)|(to|cc|an|para|кому|date|sent|datum|gesendet|data|fecha|дата|subject|betreff|objet"
    r"|asunto|oggetto|assunto|тема))\s?:\s?(?=\S)",
    re.IGNORECASE,
)
_HEADER_LENGTH = 200
"""Most characters between the labels of a mail header that is on one line."""
_SALUTATION = LazyPattern(
    r"(?:dear|hi|hello|hey|sehr geehrte\w?|liebe\w?|hallo|guten tag|bonjour|chere?s?|salut|estimad\w|hola|querid\w"
    r"|buenos dias|gentile|car[oa]|egregi\w|buongiorno|prezad\w|ola|уважаем\w\w|здравствуйте|дорог\w\w|привет)"
    r"\b((?: [^\s,:!]{1,20}){0,4})\s?[,:!]?$"
)
_CLOSING = LazyPattern(
    r"(?:(?:best|kind|warm|many) )?(?:regards|wishes|thanks|best|cheers|sincerely|love|xx|yours(?: \w+)?)"
    r"|(?:mit )?(?:freundlichen|freundliche|vielen?|lieben?|besten?|herzlichen?|schonen?) grussen?|lg|vg|mfg|gruss"
    r"|(?:bien )?cordialement|bien a vous|bises|amicalement|(?:un )?(?:cordial )?saludos?|atentamente|un abrazo"
    r"|(?:cordiali |distinti )?saluti|un abbraccio|atenciosamente|(?:com os melhores )?cumprimentos|abracos?"
    r"|с уважением|с наилучшими \w+"
)
_INTRODUCES = LazyPattern(
    r"\b(?:article|e-?mail|letter|message|post|transcript|wrote|writes|says|sent me|artikel|brief|nachricht|schreibt|schrieb"
    r"|ecrit|lettre|escribio|escribe|carta|mensaje|scrive|scritto|lettera|messaggio|escreveu|escreve|mensagem|пишет|написала?"
    r"|письмо|сообщение|статья)\b[^:]{0,60}:$"
)
_WORKED_ON = LazyPattern(
    r"(?:(?:please|pls|can you|could you|hey|ok|now|for (?:the|a|my)|bitte|s'il te plait|por favor|per favore|пожалуйста),? ){0,2}"
    r"(?:draft|translate|proofread|rephrase|rewrite|paraphrase|summari[sz]e|pretend|role ?play|correct|shorten|polish"
    r"|(?:help me with )?(?:my|the|a) (?:[^\W\d_]{1,15} ){0,2}(?:story|novel|poem|song|essay|speech|script)\b"
    r"|(?:fix|check|improve) (?:the|my|this)\b|write (?:me )?(?:a|an|my|the)\b|lyrics|(?:an )?example|caption|slogan|headline"
    r"|ubersetz\w*|korrigier\w*|formulier\w*|schreib\w* (?:mir |uns )?ein\w{0,2}\b|traduis\w*|traduire|corrige\w*|ecris\w*"
    r"|traduce\w*|escribe\w*|redacta\w*|traduci\w*|correggi\w*|scrivi\w*|traduz\w*|escreve\w*|переведи\w*|исправь\w*"
    r"|напиши\w*)(?![^\W_])[^:\n]{0,60}:(?=\s)"
)
_STAMPED = LazyPattern(
    r"(?:\[[^\]\n]{0,20}\d:\d\d[^\]\n]{0,10}\]|\d{1,4}[./-]\d{1,2}[./-]\d{2,4},? \d{1,2}:\d\d(?::\d\d)?)(?: -)? [^:\n]{1,40}: "
)
_ANGLED = LazyPattern(r"<[^<>\n/]{1,40}> \S")
_LABELLED = LazyPattern(r"([^\W\d_][^\s:]{0,20}(?: [^\s:]{1,20}){0,2}): (\S.*)$")
_SIGNED_AT = LazyPattern(r"[^\W\d_][^,\n]{0,40}, \[[^\]\n]{0,30}\d:\d\d[^\]\n]{0,10}\]:?$")
_NAMED_AT = LazyPattern(r"[^\W\d_][^\s:]{0,20}(?: [^\s:]{1,20}){0,2} \d{1,2}[:.]\d\d$")
_SUBTITLE = LazyPattern(r"\d{1,2}:\d\d(?::\d\d)?[.,]\d{1,3} --> ")
_QUOTATION = LazyPattern(r":\s?([\"“„«][^\"“”„«»\n]{12,400}[\"”“»])")
_SPEAKERS = frozenset("me ich moi yo io eu я q a user assistant you".split())
_TOPICS = frozenset(
    "ps p.s fyi note notes update edit info hinweis btw reminder fact correction today tomorrow work job home name city"
    " allergies diet hobbies kids family plan plans goal goals beruf arbeit wohnort hobbys essen travail metier".split()
)
"""Labels of a writer's own lines."""
_FIRST_PERSON = frozenset(
    "i i'm i've i'll i'd my we our ich mein meine wir je j'ai mon ma nous yo mi soy tengo vivo io mio mia sono ho eu meu"
    " minha sou tenho я мой моя мы у".split()
)
_BLOCK = ("<blockquote", "</blockquote>")
_SHORT = 40


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    low: str


def own_words(text: str, writer: str = "") -> str:
    """Return the writer's own words in a message; see ``split_pasted``."""
    found = split_pasted(text, writer)
    own = [part.strip("\n") for part, theirs in found if not theirs and part.strip()]
    # Separate parts must not become one sentence.
    return text if found == [(text, False)] else "\n\n".join(own)


def pasted_parts(text: str, writer: str = "") -> list[str]:
    """Return the parts of a message that are not the writer's own; see ``split_pasted``."""
    return [part for part, theirs in split_pasted(text, writer) if theirs]


def split_pasted(text: str, writer: str = "") -> list[tuple[str, bool]]:
    """Split a message into parts, each with whether it is not the writer's own statement.

    Args:
        text: The message.
        writer: Name of the writer.
    """
    found: list[tuple[str, bool]] = []
    at = 0
    for start, end in _spans(text, writer):
        found += [(text[at:start], False)] if at < start else []
        found.append((text[start:end], True))
        at = end
    return [*found, (text[at:], False)] if at < len(text) else found


@lru_cache(maxsize=512)
def _spans(text: str, writer: str) -> tuple[tuple[int, int], ...]:
    head = text[:_LONGEST]
    lines = _lines(head)
    theirs = [False] * len(lines)
    for look in (_marked, _timed, _spoken, _tables):
        look(lines, theirs)
    _mails(lines, theirs, frozenset(word for word in words(fold_text(writer)) if len(word) > 2))
    _introduced(head, lines, theirs)
    spans = [
        (line.start, line.end) for line, is_theirs in zip(lines, theirs, strict=True) if is_theirs
    ]
    spans += [hit.span(1) for hit in _QUOTATION.finditer(head)]
    spans += _in_one_line(head)
    return _joined([*spans, *_blocks(head), *_worked_on(lines)], head)


def _in_one_line(text: str) -> list[tuple[int, int]]:
    """Return the span, to the text's end, of a mail with a one-line header ("From: a@b.c To: d")."""
    labels = list(_LABEL.finditer(text))
    for first, second in pairwise(labels):
        header = text[first.start() : second.start()]
        near = len(header) <= _HEADER_LENGTH and "\n" not in header
        if first[1] and second[2] and near and "@" in header:
            return [(first.start(), len(text))]
    return []


def _lines(text: str) -> list[_Line]:
    lines, at = [], 0
    for line in text.splitlines(keepends=True):
        lines.append(_Line(at, at + len(line), fold_text(line).strip()))
        at += len(line)
    return lines


def _joined(spans: list[tuple[int, int]], text: str) -> tuple[tuple[int, int], ...]:
    """Return spans in order, with adjacent ones merged."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and not text[found[-1][1] : start].strip():
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def _marked(lines: list[_Line], theirs: list[bool]) -> None:
    """Mark code fences and lines quoted with ">"."""
    fenced = False
    for at, line in enumerate(lines):
        # Folding turns a backquote into an apostrophe.
        fence = line.low.startswith(("'''", "~~~"))
        theirs[at] |= fenced or fence or (line.low.startswith(">") and len(line.low) > 1)
        fenced ^= fence


def _timed(lines: list[_Line], theirs: list[bool]) -> None:
    """Mark subtitles, and chat lines with times."""
    running = False
    for at, line in enumerate(lines):
        if _SUBTITLE.match(line.low):
            running = True
            if at and lines[at - 1].low.isdecimal():
                theirs[at - 1] = True
        running &= bool(line.low)
        theirs[at] |= running or bool(_STAMPED.match(line.low) or _ANGLED.match(line.low))
    signed = [at for at, line in enumerate(lines) if _SIGNED_AT.match(line.low)]
    named = signed or [at for at, line in enumerate(lines) if _NAMED_AT.match(line.low)]
    if signed or len(named) > 1:
        last = next((at for at in range(named[-1], len(lines)) if not lines[at].low), len(lines))
        theirs[named[0] : last] = [True] * (last - named[0])


def _spoken(lines: list[_Line], theirs: list[bool]) -> None:
    """Mark a chat without times: a label repeats, or a line behind one is in the first person."""
    found = [(at, hit) for at, line in enumerate(lines) if (hit := _LABELLED.match(line.low))]
    found = [
        (at, hit)
        for at, hit in found
        if not (theirs[at] or hit[1] in _TOPICS or _HEADER.match(lines[at].low))
    ]
    labels = [hit[1] for _, hit in found]
    if len(found) < 2:
        return
    again = len(set(labels)) < len(labels)
    first = any(not _FIRST_PERSON.isdisjoint(words(hit[2])[:6]) for _, hit in found)
    if again or first or not _SPEAKERS.isdisjoint(labels):
        for at in range(found[0][0], found[-1][0] + 1):
            theirs[at] = True


def _tables(lines: list[_Line], theirs: list[bool]) -> None:
    """Mark rows of comma-separated values."""
    for at in range(1, len(lines)):
        commas = lines[at].low.count(",")
        if commas > 1 and commas == lines[at - 1].low.count(",") and ", " not in lines[at - 1].low:
            theirs[at - 1] = theirs[at] = True


def _mails(lines: list[_Line], theirs: list[bool], writer: frozenset[str]) -> None:
    closings = [at for at, line in enumerate(lines) if _closes(line.low)]
    at = 0
    while at < len(lines):
        begins = "" if theirs[at] else _begins_mail(lines, at, writer)
        if not begins:
            at += 1
            continue
        place = bisect_right(closings, at)
        closing = closings[place] if place < len(closings) else len(lines)
        end, signed = _signature(lines, closing)
        named = not writer.isdisjoint(words(lines[at].low))
        if begins == "greets" and not named and (not signed or not writer.isdisjoint(signed)):
            at += 1
            continue
        theirs[at:end] = [True] * (end - at)
        at = end


def _begins_mail(lines: list[_Line], at: int, writer: frozenset[str]) -> str:
    """Return "sent" if a mail's header begins here, "greets" for a salutation, else ""."""
    low = lines[at].low
    if _FORWARDED.match(low) or _WROTE.match(low):
        return "sent"
    if _HEADER.match(low):
        more = at + 1 < len(lines) and _HEADER.match(lines[at + 1].low)
        if more or _SUBJECT.match(low):
            return "sent"
    greeting = _SALUTATION.match(low)
    if greeting is None:
        return ""
    # "Hi Nadia here" and "Hello!" start a message to the assistant.
    last = words(greeting[1])[-1:]
    return "greets" if last and (not low[-1].isalnum() or last[0] in writer) else ""


def _closes(low: str) -> bool:
    low = low.rstrip(",.! ")
    return len(low) <= _SHORT and _CLOSING.fullmatch(low) is not None


def _signature(lines: list[_Line], closing: int) -> tuple[int, frozenset[str]]:
    """Return the line after a mail that closes at a line, and the words of its signature."""
    end = closing + 1
    while end < len(lines) and lines[end].low and len(lines[end].low) <= _SHORT:
        end += 1
    signature = [word for line in lines[closing + 1 : end] for word in words(line.low)]
    return min(end, len(lines)), frozenset(signature)


def _introduced(text: str, lines: list[_Line], theirs: list[bool]) -> None:
    """Mark the paragraph or quotation after a line such as "Here is an article:"."""
    for at, line in enumerate(lines):
        if theirs[at] or not _INTRODUCES.search(line.low):
            continue
        first = next((n for n in range(at + 1, len(lines)) if lines[n].low), len(lines))
        quotation = first < len(lines) and lines[first].low.startswith('"')
        for n in range(first, len(lines)):
            if not lines[n].low:
                break
            theirs[n] = True
            if quotation and fold_text(text[lines[n].start : lines[n].end]).strip().endswith('"'):
                break


def _blocks(text: str) -> list[tuple[int, int]]:
    found = []
    low = text.lower()
    at = low.find(_BLOCK[0])
    while at >= 0 and len(low) == len(text):
        end = low.find(_BLOCK[1], at)
        end = len(text) if end < 0 else end + len(_BLOCK[1])
        found.append((at, end))
        at = low.find(_BLOCK[0], end)
    return found


def _worked_on(lines: list[_Line]) -> list[tuple[int, int]]:
    """Return the spans of paragraphs to be written, corrected or translated: they state nothing."""
    found: list[tuple[int, int]] = []
    running = False
    for line in lines:
        running = bool(line.low) and (running or _WORKED_ON.match(line.low) is not None)
        if running:
            found.append((line.start, line.end))
    return found
