"""Long-term memory as facts with evidence: types, fold, Markdown, proposals and undo."""
