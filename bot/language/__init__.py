"""Analyse sentences of several languages by rules; compare claims with evidence. Pure."""

__all__ = [
    "claim_terms",
    "clauses",
    "fact_terms",
    "folding",
    "forget_requests",
    "grammatical_person",
    "language_detection",
    "lexicon",
    "names",
    "parsed_facts",
    "plain_answers",
    "remaining_facts",
    "sentences",
    "speech_patterns",
    "statements",
    "topics",
    "translation",
]
