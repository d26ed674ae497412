"""Access control: settings, pairing and the owner's claim decide who may use the bot."""
