"""The message bus between channels and sessions; channels import nothing else of ``bot``."""

from bot.bus.access.ports import AccessDecision, AccessRequest, Authorizer
from bot.bus.media.ports import AttachmentReceiver, RemoteFile
from bot.bus.messages import (
    Activity,
    Address,
    Answer,
    Attachment,
    Button,
    DeliveryReport,
    Inbound,
    Outbound,
    OutgoingFile,
    PartialAnswer,
    PublishResult,
    ReleaseRequest,
    Role,
    Sender,
)
from bot.bus.ports import Bus, ChannelPort, ReceivedMessage, SessionInbox
from bot.bus.read_positions import ReadPosition, ReadPositionStore
from bot.bus.site import (
    WEB_CHANNEL,
    RemoteCommands,
    Transcript,
    TranscriptMessage,
    WebBackend,
    WebUser,
)
from bot.bus.spool import SharedSpool, Spool
from bot.core.addresses import host_and_port, web_address, websocket_address
from bot.core.errors import (
    BusClosed,
    BusError,
    ChannelRefused,
    FileUnavailable,
    InvalidInbound,
    SessionBusy,
    SessionFull,
    SessionLost,
)
from bot.core.files import TEMPORARY_SUFFIX, create_or_replace_file

__all__ = [
    "TEMPORARY_SUFFIX",
    "WEB_CHANNEL",
    "AccessDecision",
    "AccessRequest",
    "Activity",
    "Address",
    "Answer",
    "Attachment",
    "AttachmentReceiver",
    "Authorizer",
    "Bus",
    "BusClosed",
    "BusError",
    "Button",
    "ChannelPort",
    "ChannelRefused",
    "DeliveryReport",
    "FileUnavailable",
    "Inbound",
    "InvalidInbound",
    "Outbound",
    "OutgoingFile",
    "PartialAnswer",
    "PublishResult",
    "ReadPosition",
    "ReadPositionStore",
    "ReceivedMessage",
    "ReleaseRequest",
    "RemoteCommands",
    "RemoteFile",
    "Role",
    "Sender",
    "SessionBusy",
    "SessionFull",
    "SessionInbox",
    "SessionLost",
    "SharedSpool",
    "Spool",
    "Transcript",
    "TranscriptMessage",
    "WebBackend",
    "WebUser",
    "create_or_replace_file",
    "host_and_port",
    "web_address",
    "websocket_address",
]
