"""Memory: folds over tapes, and the operations that change them."""
