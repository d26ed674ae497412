"""Skills of the open Agent Skills standard: the owner's own, and installed ones of others.

Rule 1: skills in the workspace folder are the owner's own, and meant to be followed. An installed skill
    is text from outside: advice, never instructions.
Rule 2: an installed skill is one blob, named by the digest of all its files. The owner allows a digest;
    what changes gets another one.
Rule 3: the tape names a copy before it is stored, and until it is removed: a kill leaves no copy that
    nobody knows of.
Rule 4: a skill that is not allowed costs no tokens; nothing of a skill is ever run.
"""

__all__ = [
    "skill_library",
    "skill_sources",
]
