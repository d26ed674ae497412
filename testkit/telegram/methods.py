"""The methods of the Bot API that the Telegram test server has."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from testkit.telegram import account, posting
from testkit.telegram.rules import Params, Refused
from testkit.telegram.world import Bot, World

Method = Callable[[World, Bot, Params], Any]

METHODS: dict[str, Method] = {
    "getMe": account.get_me,
    "sendMessage": posting.send_message,
    "editMessageText": posting.edit_text,
    "editMessageReplyMarkup": posting.edit_buttons,
    "deleteMessage": posting.delete_message,
    "sendChatAction": posting.chat_action,
    "sendMessageDraft": posting.draft,
    "answerCallbackQuery": account.answer_callback,
    "setMyCommands": account.set_commands,
    "getMyCommands": account.get_commands,
    "deleteMyCommands": account.delete_commands,
    "getFile": account.get_file,
    "getChat": account.get_chat,
    "getChatMember": account.get_member,
    "leaveChat": account.leave,
    "setMessageReaction": posting.react,
    "setWebhook": account.set_webhook,
    "deleteWebhook": account.delete_webhook,
    "getWebhookInfo": account.webhook_info,
    **{
        f"send{kind.title()}": posting.send_media(kind)
        for kind in ("photo", "document", "audio", "voice", "video")
    },
}
NAMES = {name.lower(): name for name in (*METHODS, "getUpdates")}
"""The methods by their names in lower case, since Telegram minds no case."""


def canonical(name: str, missing: Collection[str] = ()) -> str:
    """A method's name as documented.

    Args:
        name: In any case.
        missing: Methods that there shall not be.

    Raises:
        Refused: There is no such method.
    """
    if name.lower() not in NAMES or NAMES[name.lower()] in missing:
        raise Refused(404, "Not Found")
    return NAMES[name.lower()]
