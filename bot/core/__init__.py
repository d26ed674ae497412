"""What every part rests on: errors, ids, the clock, files, telemetry, the database. Knows nothing of the rest."""
