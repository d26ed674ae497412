"""One scope's facts on its tape, and the links between a person's identities."""
