"""Link and unlink identities, and move a person's facts and compartments between scopes."""
