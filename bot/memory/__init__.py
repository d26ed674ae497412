"""Memory: session and scope state folded from tapes, recall, and the services that change it."""
