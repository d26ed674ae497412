"""Texts that people read are marked for translation."""

import ast
import re
from pathlib import Path

import pytest
from unmarked_texts import unmarked_texts

ROOT = Path(__file__).parent.parent.parent

FOLDERS = (
    "bot/agent",
    "bot/bus",
    "bot/cli",
    "bot/core",
    "bot/inspector",
    "bot/llm",
    "bot/mcp_client",
    "bot/memory",
    "bot/offline",
    "bot/runtime",
    "bot/tape/verification.py",
    "bot/transfer",
    "channels",
)
"""Whose texts are marked."""

OTHER_READERS = {
    "bot/cli/mcp.py": "read by the program that uses memory, in English",
    "bot/core/installation.py": "commands to type",
    "bot/runtime/app/memory_clients.py": "read by the program that uses memory, in English",
    "bot/agent/client_requests.py": "read by programs",
    "bot/agent/code": "read by the model",
    "bot/agent/consolidation": "read by the model",
    "bot/agent/context.py": "read by the model",
    "bot/agent/handoff.py": "read by the model",
    "bot/agent/prompt.py": "read by the model",
    "bot/agent/request_builder.py": "read by the model",
    "bot/agent/tool_calls.py": "read by the model",
    "bot/agent/tools": "descriptions and results of tools, which the model reads",
    "bot/agent/views": "read by the model",
    "bot/agent/vision.py": "read by the model",
    "bot/agent/web": "read by the model",
    "bot/agent/workspace_files.py": "read by the model",
    "bot/bus/journal.py": "errors of damaged files, for the log",
    "bot/bus/media/document_program.py": "places in files, which are kept and read by the model",
    "bot/bus/messages.py": "errors of programmers",
    "bot/bus/postgres/codec.py": "errors of damaged rows, for the log",
    "bot/bus/postgres/held_session.py": "for the log: nobody waits for an answer of a lost session",
    "bot/bus/postgres/queries.py": "SQL",
    "bot/core/errors.py": "errors of programmers, and for the log",
    "bot/core/fetch": "what a page could not be read for, which the model reads",
    "bot/core/http/errors.py": "read by programs",
    "bot/core/http/server.py": "read by programs",
    "bot/core/recurrence.py": "errors that the model or a program reads; schedules are told by bot.agent",
    "bot/core/response_limits.py": "for the log",
    "bot/core/telemetry": "read by monitoring, and the log",
    "bot/inspector/app.py": "read by programmers of clients",
    "bot/inspector/parameters.py": "read by programmers of clients",
    "bot/llm/http": "names of headers, and a server's own errors",
    "bot/llm/litellm_library.py": "names of LiteLLM's loggers",
    "bot/llm/model_checks.py": "questions to a model; what it lacks is marked",
    "bot/llm/openai_format.py": "read by the model",
    "bot/llm/written_calls.py": "read by the model",
    "bot/mcp_client/bounded_http.py": "errors beside those of the HTTP library",
    "bot/mcp_client/results.py": "read by the model",
    "bot/memory/gate/cited_sentences.py": "words of languages",
    "bot/memory/gate/evidence_status.py": "read by the model",
    "bot/memory/gate/fact_similarity.py": "words of languages",
    "bot/memory/gate/instruction_detection.py": "words of languages",
    "bot/memory/gate/remember_requests.py": "words of languages",
    "bot/memory/gate/secret_detection.py": "words of languages",
    "bot/memory/gate/write_result.py": "read by the model",
    "bot/memory/records/compression": "read by the model",
    "bot/memory/records/fact_slot.py": "words of languages",
    "bot/memory/records/pending_calls.py": "read by the model",
    "bot/memory/records/transcript.py": "read by the model",
    "bot/memory/session/bus/episodic_trace.py": "errors of programmers",
    "bot/memory/session/state/zone_snapshot.py": "read by the model",
    "bot/offline/answer_types.py": "words of languages",
    "bot/offline/consolidation.py": "read by the model",
    "bot/offline/intents.py": "words of languages",
    "bot/offline/remember_requests.py": "words of languages",
    "bot/offline/request_parser.py": "words of prompts",
    "bot/transfer/backup.py": "in every backup, whoever opens it",
    "channels/api": "read by programs",
    "channels/discord/message_content.py": "read by the model",
    "channels/telegram/message_content.py": "read by the model",
    "bot/runtime/sessions/explicit_memories.py": "read by the model",
    "bot/runtime/sessions/fact_verifier.py": "read by the model",
    "bot/runtime/sessions/private_quotes.py": "read by the model",
}
"""Files and folders whose texts people do not read, and who does."""


def _files():
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")) or [ROOT / folder]:
            name = str(path.relative_to(ROOT))
            if not any(name == other or name.startswith(f"{other}/") for other in OTHER_READERS):
                yield name


@pytest.mark.parametrize("name", list(_files()))
def test_what_people_read_is_marked(name):
    assert sorted(unmarked_texts(ROOT / name)) == []


@pytest.mark.parametrize("name", list(OTHER_READERS))
def test_an_exception_is_needed(name):
    path = ROOT / name
    files = path.rglob("*.py") if path.is_dir() else [path]
    assert any(next(iter(unmarked_texts(file)), None) for file in files)


def test_no_message_is_put_together_before_it_is_marked():
    """An f-string, or a sum with a value in it, is not found by the extraction."""
    wrong = []
    for path in sorted([*(ROOT / "bot").rglob("*.py"), *(ROOT / "channels").rglob("*.py")]):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"import [^\n]*\b(N_|_|ngettext)\b|i18n import \(", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                given = node.args[: 2 if node.func.id == "ngettext" else 1]
                if node.func.id in ("_", "N_", "ngettext") and any(
                    isinstance(part, ast.JoinedStr | ast.BinOp) for part in given
                ):
                    wrong.append((str(path.relative_to(ROOT)), node.lineno))
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('reply("Nothing is running.")', 1),
        ('reply(f"{count} files")', 1),
        ('reply("Stopped.")', 1),
        ('reply(_("Nothing is running."))', 0),
        ('reply(_("{what} is running.", what=f"the {name} task"))', 1),
        ('logger.info("nothing is running")', 0),
        ('raise TypeError("a text is no number")', 0),
        ('NAMES = {"two words": 1}', 0),
        ('if what == "two words": pass', 0),
        ('note("two words")  # for the model', 0),
        ('button("/memory forget no")', 0),
        ('reply(f"`/memory accept {number}`")', 0),
        ('form("set KEY VALUE")', 0),
        ('reply("So do I")', 1),
        ('"""A docstring of words."""', 0),
    ],
)
def test_a_text_that_is_not_marked_is_found(tmp_path, code, found):
    path = tmp_path / "code.py"
    path.write_text(code, encoding="utf-8")
    assert len(list(unmarked_texts(path))) == found
