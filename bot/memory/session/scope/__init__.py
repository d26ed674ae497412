"""One scope's facts on its tape, and who is one person on several channels."""
