"""``/skills``: show skills, fetch those of others, and decide which may be used, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import anyio.to_thread

from bot.agent.commands.approvals import decider
from bot.agent.commands.pagination import (
    MAX_PAGE_CHARS,
    paginate,
    paginate_items,
    split_page_number,
    usable_buttons,
)
from bot.agent.commands.parser import closest_name
from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.agent.foreign_text import code, one_line, printable
from bot.agent.right_scopes import EVERYBODY, chat_scope, person_scope, scope_text
from bot.agent.skills.skill_difference import skill_difference
from bot.agent.skills.skill_format import SKILL_FILE
from bot.agent.skills.skill_library import SkillLibrary
from bot.agent.skills.skill_package import SkillPackage, shown_path
from bot.agent.skills.skill_rights import SkillCopy, SkillRight, SkillsFold
from bot.agent.skills.skill_sources import SkillSource, parse_source
from bot.agent.texts import joined, joined_clauses, known_text
from bot.agent.web.pages import split_parts
from bot.bus import Button
from bot.bus.media.documents import read_text
from bot.core.errors import SkillRefused
from bot.core.i18n import N_, _, format_number, ngettext

_FORMS = (
    ("NAME", N_("show a skill, and what changed since you allowed it")),
    ("NAME FILE", N_("show a file of it")),
    ("add ADDRESS [FOLDER]", N_("fetch a skill from a git repository, or from a folder here")),
    ("update NAME", N_("fetch it again and show what changed; I use it only after your yes")),
    (
        "allow NAME DIGEST|never [here|me|everybody] [TOOL ...]",  # for the parser
        N_("let me read it as advice; a turn that reads it may then use these tools only"),
    ),
    ("remove NAME", N_("remove it with its copies")),
)
_SHORT = 12
"""Digits of a digest that are shown, and at least as many are typed."""

_BEGINNING = 1_200
_SECTION = 1_200
_LONGEST_FILE = 1_000_000
_USAGE_ALLOW = N_(
    "For example: `/skills allow NAME DIGEST here`. `/skills NAME` shows the digest; `never` in its place "
    "takes the right away. The next word is `here` (if there is none), `me` or `everybody`."
)


def skills_command(skills: SkillLibrary) -> Command:
    """Return the command, for owners only.

    Args:
        skills: The skills and the rights.
    """

    async def run(arguments: str, context: CommandContext) -> CommandReply:
        given, page = split_page_number(arguments)
        words = given.split()
        try:
            return await _answer(skills, words, page, context)
        except SkillRefused as error:
            return CommandReply(_("Not done: {error}.", error=error))

    return Command(
        "skills",
        N_("show skills, and the ones of others that I may read"),
        _FORMS,
        run,
        owner_only=True,
    )


async def _answer(
    skills: SkillLibrary, words: list[str], page: int, context: CommandContext
) -> CommandReply:
    match words:
        case []:
            text, buttons = paginate(await _overview(skills), page, "/skills page")
            return CommandReply(text, buttons=usable_buttons(buttons))
        case ["add", address, *folder] if len(folder) < 2:
            return await _fetch(skills, parse_source(address, *folder))
        case ["add", *_]:
            return CommandReply(
                _("For example: `/skills add https://example.org/skills.git FOLDER`.")
            )
        case ["update", name]:
            copy = _newest(await skills.state(), name)
            return await _fetch(skills, SkillSource(copy.source, copy.path), name)
        case ["allow", *rest]:
            return await _allow(skills, rest, context)
        case ["remove", name]:
            if await skills.remove(name):
                told = _("Removed: {name}, with its copies and rights.", name=code(name))
                return CommandReply(told)
            raise _no_skill(await skills.state(), name)
        case [name]:
            return await _show(skills, name, page)
        case [name, file]:
            return await _show_file(skills, _newest(await skills.state(), name), file, page)
    return CommandReply("\n\n".join([_("I know these forms:"), _forms_text()]))


def _forms_text() -> str:
    return "\n".join(f"`/skills {form}`: {_(line)}" for form, line in _FORMS)


def _newest(fold: SkillsFold, name: str) -> SkillCopy:
    copies = fold.of(name)
    if not copies:
        raise _no_skill(fold, name)
    return copies[-1]


def _no_skill(fold: SkillsFold, name: str) -> SkillRefused:
    close = closest_name(name.lower()[:64], {copy.name for copy in fold.copies.values()})
    if close:
        told = _(
            "no skill {name} is installed (did you mean {other}?); `/skills` lists them",
            name=code(name, 64),
            other=f"`{close}`",
        )
    else:
        told = _("no skill {name} is installed; `/skills` lists them", name=code(name, 64))
    return SkillRefused(told)


async def _own_text(skills: SkillLibrary, name: str) -> str | None:
    """Return where an own skill is that is not installed; None if there is none of this name."""
    fold = await skills.state()
    for one in (await skills.workspace.read()).skills:
        if one.name == name and not fold.of(name):
            folder = code(str(one.folder))
            told = _(
                "{name} is your own, in {folder}; I follow it.", name=f"`{name}`", folder=folder
            )
            return f"{told}\n{code(one.description)}"
    return None


async def _overview(skills: SkillLibrary) -> str:
    workspace = await skills.workspace.read()
    fold = await skills.state()
    lines = [f"- `{one.name}`: {code(one.description, 120)}" for one in workspace.skills]
    if lines:
        own_head = _("Your own, from the folder `skills` of the workspace; I follow them:")
        lines = [own_head, *lines]
    for folder, why in workspace.broken:
        broken = _("{folder} is not used: {reason}", folder=code(folder, 64), reason=why)
        lines.append(f"- {broken}")
    names = sorted({copy.name for copy in fold.copies.values()})
    if names:
        own = {one.name for one in workspace.skills}
        lines += ["", _("Installed, by others; advice to me, never instructions:")]
        for name in names:
            lines += [_overview_line(fold, name, hidden=name in own)]
    elif not lines:
        lines = [_("There are no skills.")]
    if not names:
        lines += ["", _("`/skills add ADDRESS` fetches one of others.")]
    return "\n".join(lines).strip()


def _overview_line(fold: SkillsFold, name: str, *, hidden: bool) -> str:
    newest = fold.of(name)[-1]
    told = [_right_text(fold, right) for right in fold.rights_of(name)] or [_("not allowed")]
    if all(right.digest != newest.digest for right in fold.rights_of(name)):
        told.append(_("{digest} waits for your yes", digest=f"`{newest.digest[:_SHORT]}`"))
    if hidden:
        told.append(_("your own skill of this name is used instead"))
    return f"- `{name}`: {joined_clauses(told)}"


def _right_text(fold: SkillsFold, right: SkillRight) -> str:
    where = scope_text(right.scope)
    if right.decision == "never":
        return _("never {where}", where=where)
    parts = [_("{digest} allowed {where}", digest=f"`{right.digest[:_SHORT]}`", where=where)]
    if right.tools:
        parts.append(_("with the tools {names} only", names=joined(map(code, right.tools))))
    if right.digest in fold.damaged:
        parts.append(_("but damaged and not used"))
    return joined(parts)


async def _fetch(skills: SkillLibrary, source: SkillSource, name: str = "") -> CommandReply:
    copy, package = await skills.fetch(source)
    if name and copy.name != name:
        raise SkillRefused(
            _("this is now the skill `{name}`; `/skills {name}` shows it", name=copy.name)
        )
    fold = await skills.state()
    rights = [right for right in fold.rights_of(copy.name) if right.digest == copy.digest]
    if rights and copy.digest not in fold.damaged:
        told = joined_clauses(_right_text(fold, right) for right in rights)
        return CommandReply(
            _("Nothing changed: {name} is {rights}.", name=f"`{copy.name}`", rights=told)
        )
    return await _shown(skills, copy, package, 1)


async def _show(skills: SkillLibrary, name: str, page: int) -> CommandReply:
    if (own := await _own_text(skills, name)) is not None:
        return CommandReply(own)
    copy = _newest(await skills.state(), name)
    package = await skills.package(copy)
    if package is None:
        raise SkillRefused(
            _("its copy is not whole; `/skills update {name}` fetches it again", name=copy.name)
        )
    return await _shown(skills, copy, package, page)


async def _shown(
    skills: SkillLibrary, copy: SkillCopy, package: SkillPackage, page: int
) -> CommandReply:
    fold = await skills.state()
    rights = fold.rights_of(copy.name)
    sections = [_facts(fold, copy, package), *_file_sections(package)]
    before = await _allowed_before(skills, fold, copy)
    if before is not None:
        changed = await anyio.to_thread.run_sync(skill_difference, before[1], package)
        digest = f"`{before[0].digest[:_SHORT]}`"
        head = _("What changed since {digest}, which you allowed:", digest=digest)
        sections += [head, *_fenced(changed)]
    else:
        text = read_text(package.files[SKILL_FILE], _LONGEST_FILE).text or ""
        head = _("It begins so.")
        if len(text) > _BEGINNING:
            command = f"`/skills {copy.name} {SKILL_FILE}`"
            head += " " + _("{command} shows all.", command=command)
        sections += [head, *_fenced(text[:_BEGINNING])]
    allowed = any(right.digest == copy.digest for right in rights)
    allow = f"/skills allow {copy.name} {copy.digest[:_SHORT]}"
    if not allowed or copy.digest in fold.damaged:
        sections.append(
            _(
                "I use it after {command} (or `me`, `everybody`), not before.",
                command=f"`{allow} here`",
            )
        )
    shown, at = paginate_items(_pages(sections), page, 1, f"/skills {copy.name} page")
    choices = () if allowed else (Button(_("Allow here"), f"{allow} here"),)  # for the parser
    buttons = (*at.buttons, *choices, Button(_("Remove"), f"/skills remove {copy.name}"))
    return CommandReply(
        "\n\n".join(filter(None, [*shown, at.note])), buttons=usable_buttons(buttons)
    )


async def _allowed_before(
    skills: SkillLibrary, fold: SkillsFold, copy: SkillCopy
) -> tuple[SkillCopy, SkillPackage] | None:
    """Return the copy that the owner allowed last, unless it is this one."""
    for right in reversed(fold.rights_of(copy.name)):
        former = fold.copies.get(right.digest)
        if former is None or former.digest == copy.digest:
            continue
        package = await skills.package(former)
        if package is not None:
            return former, package
    return None


def _facts(fold: SkillsFold, copy: SkillCopy, package: SkillPackage) -> str:
    header = package.header
    rights = fold.rights_of(copy.name)
    source = code(str(SkillSource(copy.source, copy.path)))
    if copy.commit:
        commit = f"`{copy.commit[:_SHORT]}`"
        lines = [_("from {source}, commit {commit}", source=source, commit=commit)]
    else:
        lines = [_("from {source}", source=source)]
    size = ngettext(
        "digest {digest}, {size} bytes in {n} file; nothing of them is run",
        "digest {digest}, {size} bytes in {n} files; nothing of them is run",
        copy.files,
        digest=f"`{copy.digest[:_SHORT]}`",
        size=format_number(copy.size),
    )
    lines.append(size)
    if header.license:
        lines.append(_("license: {license}", license=code(header.license, 100)))
    if header.compatibility:
        needs = code(header.compatibility, 200)
        lines.append(_("it says that it needs: {needs}", needs=needs))
    if header.allowed_tools:
        named = code(", ".join(header.allowed_tools), 200)
        lines.append(_("it would like to use: {tools}; that gives it no right", tools=named))
    lines += [_right_text(fold, right) for right in rights]
    head = _("The skill {name}, in its own words:", name=f"`{copy.name}`")
    return "\n".join([head, code(header.description, 700), *(f"- {line}" for line in lines)])


def _file_sections(package: SkillPackage) -> list[str]:
    names: list[list[str]] = [[]]
    for path, data in package.files.items():
        name = f"{shown_path(path)} ({format_number(len(data))})"
        if sum(map(len, names[-1])) + len(name) > _SECTION:
            names.append([])
        names[-1].append(name)
    return [_("Files, with their bytes: {names}", names=joined(one)) for one in names]


def _fenced(text: str) -> list[str]:
    """Return a foreign text as code blocks, each of which fits a page."""
    plain = printable(text).replace("```", "'''")
    return [f"```\n{part.rstrip()}\n```" for part in split_parts(plain, _SECTION)]


def _pages(sections: Iterable[str]) -> list[str]:
    """Return sections as pages; none is cut, so that code blocks stay whole."""
    pages: list[str] = []
    for section in sections:
        if pages and len(pages[-1]) + len(section) + 2 <= MAX_PAGE_CHARS:
            pages[-1] += f"\n\n{section}"
        else:
            pages.append(section)
    return pages


async def _show_file(skills: SkillLibrary, copy: SkillCopy, file: str, page: int) -> CommandReply:
    package = await skills.package(copy)
    if package is None:
        raise SkillRefused(
            _("its copy is not whole; `/skills update {name}` fetches it again", name=copy.name)
        )
    if file not in package.files:
        raise SkillRefused(_("`{name}` has no file {file}", name=copy.name, file=shown_path(file)))
    read = read_text(package.files[file], _LONGEST_FILE)
    if read.text is None:
        raise SkillRefused(
            _(
                "{file} is not shown: {note}",
                file=shown_path(file),
                note=known_text(read.note or ""),
            )
        )
    command = f"/skills {copy.name} {file} page"
    shown, at = paginate_items(_fenced(read.text), page, 1, command)
    head = _(
        "{file} of {name} {digest}, in its own words:",
        file=shown_path(file),
        name=f"`{copy.name}`",
        digest=f"`{copy.digest[:_SHORT]}`",
    )
    text = "\n\n".join(filter(None, [head, *shown, at.note]))
    return CommandReply(text, buttons=usable_buttons(at.buttons))


async def _allow(
    skills: SkillLibrary, words: Sequence[str], context: CommandContext
) -> CommandReply:
    scopes = {
        "here": chat_scope(context.tape.name),
        "me": person_scope(decider(context)),
        "everybody": EVERYBODY,
    }
    if len(words) < 2 or (len(words) > 2 and words[2] not in scopes):
        return CommandReply(_(_USAGE_ALLOW))
    name, digest, where = words[0], words[1].lower(), (words[2:3] or ["here"])[0]
    fold = await skills.state()
    scope, by, chat = scopes[where], decider(context), context.tape.name
    if digest == "never":
        _newest(fold, name)
        await skills.decide(SkillRight(name, scope, "never", by=by, chat=chat))
        return CommandReply(
            _("I do not use {name} {where}.", name=f"`{name}`", where=scope_text(scope))
        )
    found = [copy for copy in fold.of(name) if copy.digest.startswith(digest)]
    if len(digest) < _SHORT or len(found) != 1:
        _newest(fold, name)
        raise SkillRefused(
            _(
                "give at least {short} digits of the digest of a copy; `/skills {name}` shows it",
                short=_SHORT,
                name=name,
            )
        )
    tools = tuple(one_line(tool, 64).replace(".", "_") for tool in words[3:23])
    right = SkillRight(name, scope, "allow", found[0].digest, tools, by, chat)
    await skills.decide(right)
    return CommandReply(f"`{name}`: {_right_text(await skills.state(), right)}.")
