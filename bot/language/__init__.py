"""Read the words of several languages where a rule must: sentences, orders to forget, a plain yes. Pure."""

__all__ = [
    "claim_terms",
    "clauses",
    "folding",
    "forget_requests",
    "lexicon",
    "names",
    "plain_answers",
    "sentences",
    "speech_patterns",
]
