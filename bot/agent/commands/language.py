"""``/language``: show and choose the language that a person reads."""

from __future__ import annotations

import anyio.to_thread

from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.agent.languages import Languages
from bot.bus import Button
from bot.core.i18n import LANGUAGES, N_, _, current_language, use_language
from bot.core.locale_names import find_language

_AUTO = "auto"


def language_command(languages: Languages) -> Command:
    """Return the command.

    Args:
        languages: The languages that people read.
    """

    async def run(arguments: str, context: CommandContext) -> CommandReply:
        identity, wanted = context.spender.identity, arguments.strip().lower()
        if not wanted:
            return _show(languages.choice(identity))
        if wanted == _AUTO:
            await languages.choose(identity, None)
            return CommandReply(_("From your next message on I follow the language of your app."))
        code = await anyio.to_thread.run_sync(find_language, wanted)
        if code is None:
            return CommandReply(await anyio.to_thread.run_sync(_unknown, wanted))
        await languages.choose(identity, code)
        with use_language(code):
            return CommandReply(_("I speak {language} with you now.", language=LANGUAGES[code]))

    return Command(
        "language",
        N_("show or choose the language that I speak with you"),
        (
            ("CODE", N_("choose a language, such as `de`")),
            ("auto", N_("follow the language of your app")),
        ),
        run,
        reads=("",),
    )


def _show(chosen: str) -> CommandReply:
    name = LANGUAGES[current_language()]
    lines = [
        _("I speak {language} with you, as you chose.", language=name)
        if chosen
        else _("I speak {language} with you, as your app does or as I am set up.", language=name)
    ]
    lines += [
        f"- `/language {code}`: {title}"  # for programs and people alike
        for code, title in LANGUAGES.items()
    ]
    lines.append(_("`/language auto` follows the language of your app."))
    buttons = [Button(title, f"/language {code}") for code, title in LANGUAGES.items()]
    return CommandReply("\n".join(lines), buttons=tuple(buttons))


def _unknown(wanted: str) -> str:
    shown = wanted[:40].replace("`", "'")
    code = find_language(wanted, close=True)
    if code is None:
        return _("I do not speak `{language}`. `/language` lists what I speak.", language=shown)
    return _(
        "I do not speak `{language}`. Did you mean `/language {code}`?", language=shown, code=code
    )
