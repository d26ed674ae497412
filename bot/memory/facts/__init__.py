"""Long-term memory as facts with evidence."""
