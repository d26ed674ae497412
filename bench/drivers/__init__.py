"""Programs that drive an assistant in its own public way; each runs in that assistant's virtual environment.

They import nothing but what is installed there, the standard library, and :mod:`bench.workload`.
"""
