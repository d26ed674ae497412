"""Run Python code inside the sandbox; ``componentize-py`` builds this module into WebAssembly.

It imports nothing of tapebot. The build stores the memory of an interpreter that has imported this
module: each run begins with the modules below loaded, and cannot import any other.
"""

# ruff: noqa: F401, ICN001
from __future__ import annotations

import argparse
import array
import ast
import asyncio
import base64
import binascii
import bisect
import calendar
import cmath
import codecs
import collections
import colorsys
import concurrent.futures
import configparser
import contextlib
import copy
import csv
import dataclasses
import datetime
import decimal
import difflib
import email.message
import email.parser
import email.policy
import encodings.ascii
import encodings.cp437
import encodings.cp1252
import encodings.idna
import encodings.latin_1
import encodings.punycode
import encodings.utf_8_sig
import encodings.utf_16
import encodings.utf_32
import enum
import errno
import fnmatch
import fractions
import functools
import gc
import glob
import graphlib
import gzip
import hashlib
import heapq
import hmac
import html.entities
import html.parser
import inspect
import io
import ipaddress
import itertools
import json
import keyword
import linecache
import locale
import logging
import math
import mimetypes
import numbers
import operator
import os
import pathlib
import pickle
import platform
import pprint
import queue
import random
import re
import secrets
import shlex
import shutil
import signal
import socket
import sqlite3
import statistics
import string
import struct
import sys
import tarfile
import tempfile
import textwrap
import threading
import time
import timeit
import tomllib
import traceback
import types
import typing
import unicodedata
import unittest
import urllib.parse
import urllib.request
import uuid
import warnings
import weakref
import xml.etree.ElementTree
import zipfile
import zlib
import zoneinfo

_NAME = "code.py"


class WitWorld:
    """What the component exports; ``componentize-py`` looks for a class of this name."""

    def run(self, source: str) -> bool:
        """Run code as a program, and print the value of a last expression, as a console does.

        Returns:
            Whether it ended without an exception; its traceback is printed.
        """
        # The state that the build stored is the same in every run.
        random.seed()
        sys.stdout, sys.stderr = _text_stream(1), _text_stream(2)
        linecache.cache[_NAME] = (len(source), None, source.splitlines(keepends=True), _NAME)
        program = types.ModuleType("__main__")
        sys.modules["__main__"] = program
        done = _run(source, program)
        # Closes, and so writes, the files that it left open.
        program.__dict__.clear()
        gc.collect()
        sys.stdout.flush()
        return done


def _text_stream(descriptor: int) -> io.TextIOWrapper:
    """Return a stream that writes all of a long text: those of the build are unbuffered."""
    buffer = io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False))
    return io.TextIOWrapper(buffer, "utf-8", "backslashreplace", line_buffering=True)


def _run(source: str, program: types.ModuleType) -> bool:
    try:
        for part in _parts(source):
            value = eval(part, program.__dict__)  # noqa: S307
            if value is not None:
                print(repr(value))  # noqa: T201
    except SystemExit as ending:
        if ending.code is None or ending.code == 0:
            return True
        print(f"SystemExit: {ending.code}")  # noqa: T201
        return False
    except BaseException as error:  # noqa: BLE001 - whatever it raises is its result
        _report(error)
        return False
    return True


def _report(error: BaseException) -> None:
    """Print a traceback without the frames of this module."""
    behind = error.__traceback__
    while behind is not None and behind.tb_frame.f_code.co_filename != _NAME:
        behind = behind.tb_next
    try:
        traceback.print_exception(type(error), error, behind, file=sys.stdout)
    except MemoryError:
        print(f"{type(error).__name__}: too long to be shown")  # noqa: T201


def _parts(source: str) -> list[types.CodeType]:
    """Compile the statements, and a last expression apart from them."""
    tree = ast.parse(source, _NAME)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        return [compile(tree, _NAME, "exec")]
    tree.body.pop()
    return [compile(tree, _NAME, "exec"), compile(ast.Expression(last.value), _NAME, "eval")]
