"""``/model``: show the models to choose from and what they cost, and choose one for this chat.

Permissions:

Rule 1: in a private chat anybody may choose a preset that is not reserved for owners.
Rule 2: in a group only an owner may choose, for everyone there.
"""

from __future__ import annotations

from bot.agent.commands.parser import closest_name
from bot.agent.commands.registry import Command, CommandContext, CommandReply, did_you_mean
from bot.agent.texts import bold, joined
from bot.bus import Button
from bot.core.i18n import N_, _, format_money, format_number
from bot.llm.presets import ModelPresets, Preset
from bot.llm.prices import FREE, list_price
from bot.memory.records.event_names import MODEL_CHOSEN
from bot.tape.entries import event

_DEFAULT = "default"
_BUTTONS = 6
_ONE_ONLY = N_("There is one model, {line}. The owner can add others in `tapebot.toml`.")
_PRIVATE = N_("This problem is private: whatever is chosen, only private models answer in it.")


async def _run(arguments: str, context: CommandContext) -> CommandReply:
    presets = context.presets
    if presets is None:
        return CommandReply(_(_ONE_ONLY, line=context.model_line()))
    return (
        await _choose(arguments, presets, context) if arguments else await _show(presets, context)
    )


async def _show(presets: ModelPresets, context: CommandContext) -> CommandReply:
    usable = _usable(presets, context)
    if len(usable) == 1:
        return CommandReply(_(_ONE_ONLY, line=await _line(usable[0])))
    chosen = _chosen(presets, context)
    lines = [bold(_("Models"))]
    for preset in usable:
        name = f"**{preset.name}**"
        if preset is chosen:
            name = _("{name} (chosen)", name=name)
        lines.append(f"- {name}: {await _line(preset)}")
    lines.append(_("`/model NAME` chooses one for this chat, `/model default` goes back."))
    if context.fold.is_private:
        lines.append(_(_PRIVATE))
    others = [preset for preset in usable if preset is not chosen][:_BUTTONS]
    buttons = [Button(preset.name, f"/model {preset.name}") for preset in others]
    return CommandReply("\n".join(lines), buttons=tuple(buttons) if _may_choose(context) else ())


async def _choose(name: str, presets: ModelPresets, context: CommandContext) -> CommandReply:
    name = name.strip().lower()
    usable = {preset.name: preset for preset in _usable(presets, context)}
    preset = presets.default if name == _DEFAULT else usable.get(name)
    if preset is None and presets.get(name) is not None:
        return CommandReply(
            _(
                "Only an owner may choose {name}. `/model` lists what you may choose.",
                name=f"`{name}`",
            )
        )
    if preset is None:
        hint = did_you_mean(MODEL_COMMAND.name, closest_name(name, usable))
        missing = _("There is no model {name}.", name=f"`{name[:40]}`")
        return CommandReply(" ".join([missing, *hint, _("`/model` lists all.")]))
    kept = "" if preset is presets.default else preset.name
    data = {"preset": kept, "by": context.author.id}
    parts = [
        _(
            "From your next message on, {model} answers here: {line}.",
            model=f"**{preset.name}**",
            line=await _line(preset),
        )
    ]
    if context.fold.is_private and not preset.private:
        parts = [_("Chosen for this chat: {model}.", model=f"**{preset.name}**"), _(_PRIVATE)]
    back = () if not kept else (Button(_("Back to the default"), f"/model {_DEFAULT}"),)
    return CommandReply("\n\n".join(parts), extra_entries=[event(MODEL_CHOSEN, data)], buttons=back)


def _usable(presets: ModelPresets, context: CommandContext) -> list[Preset]:
    """Return the presets that the author may choose, and the one that is chosen."""
    owner, chosen = context.author.role == "owner", _chosen(presets, context)
    return [one for one in presets if owner or not one.owner_only or one is chosen]


def _chosen(presets: ModelPresets, context: CommandContext) -> Preset:
    return presets.get(context.fold.chosen_preset) or presets.default


def _may_choose(context: CommandContext) -> bool:
    return context.author.private or context.author.role == "owner"


async def _line(preset: Preset) -> str:
    """Return what a preset is and what it costs."""
    price = await list_price(preset.model.name)
    if price == FREE:
        cost = _("costs nothing")
    elif price is None:
        cost = _("price unknown")
    else:
        read, written = format_money(price.read), format_money(price.written)
        cost = _("{read} in and {written} out per million tokens", read=read, written=written)
    parts = [
        f"`{preset.model.name}`",
        cost,
        _("{size} tokens of context", size=_thousands(preset.context_tokens)),
    ]
    parts += [_("private")] * preset.private + [_("for owners")] * preset.owner_only
    return joined(parts)


def _thousands(tokens: int) -> str:
    if tokens >= 1_000_000:
        return f"{format_number(round(tokens / 1_000_000, 2))}M"
    return f"{tokens // 1000}k"


MODEL_COMMAND = Command(
    "model",
    N_("show the models, or choose one for this chat"),
    (
        ("NAME", N_("choose the model that answers in this chat")),
        ("default", N_("go back to the usual model")),
    ),
    _run,
    destructive=bool,
    reads=("",),
)
