"""Who may use the bot: nobody, until settings, a pairing or the owner's claim say otherwise."""
