"""Sessions: one worker each, the only writer of its tape."""
