"""Where tapes live, one module for each kind of place."""
