"""Access control: settings, pairing and the owner's claim decide who may use the bot."""

__all__ = [
    "access_list",
    "codes",
    "control",
    "file_store",
    "messages",
    "postgres_store",
    "store",
]
