"""Texts that people read are marked for translation."""

from pathlib import Path

import pytest
from unmarked_texts import unmarked_texts

ROOT = Path(__file__).parent.parent.parent

FOLDERS = """bot/agent bot/bus bot/cli bot/core bot/inspector bot/llm bot/mcp_client bot/memory
    bot/runtime bot/tape/verification.py bot/transfer channels""".split()
"""Whose texts are marked."""

OTHER_READERS = {
    "the model": """agent/code agent/consolidation agent/context.py agent/handoff.py agent/prompt.py
        agent/request_builder.py agent/tool_calls.py agent/tools agent/views agent/vision.py agent/web
        agent/workspace_files.py bus/media/document_program.py core/fetch llm/openai_format.py
        llm/written_calls.py mcp_client/results.py memory/gate/evidence_status.py
        memory/gate/write_result.py memory/records/compartment_text.py
        memory/records/compression.py memory/records/pending_calls.py memory/records/transcript.py memory/session/state/zone_snapshot.py
        runtime/sessions/fact_verifier.py
        runtime/sessions/private_quotes.py discord/message_content.py telegram/message_content.py
        llm/model_checks.py""",
    "programs, and who writes them": """agent/client_requests.py bus/messages.py bus/postgres/queries.py
        cli/mcp.py core/errors.py core/http/errors.py core/http/server.py core/recurrence.py
        inspector/app.py inspector/parameters.py memory/session/bus/episodic_trace.py
        runtime/app/memory_clients.py core/installation.py api""",
    "the log and monitoring": """bus/journal.py bus/postgres/codec.py bus/postgres/held_session.py
        core/response_limits.py core/telemetry llm/http llm/litellm_library.py
        mcp_client/bounded_http.py""",
    "nobody: they are words of languages": """agent/grammar_words.py agent/schedules/times/words.py
        memory/gate/instruction_detection.py memory/gate/secret_detection.py""",
    "whoever opens it, so that all read the same": "transfer/backup.py",
}
"""Files and folders whose texts people do not read in their language, by who reads them."""

EXEMPT = tuple(
    f"{package}/{name}"
    for names in OTHER_READERS.values()
    for name in names.split()
    for package in ("bot", "channels")
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_people_read_is_marked(folder):
    found = {}
    for path in (ROOT / folder).rglob("*.py") if (ROOT / folder).is_dir() else [ROOT / folder]:
        name = str(path.relative_to(ROOT))
        if not any(name == other or name.startswith(f"{other}/") for other in EXEMPT):
            found |= {name: texts} if (texts := sorted(unmarked_texts(path))) else {}
    assert found == {}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('reply("Nothing is running.")', 1),
        ('reply("Stopped.")', 1),
        ('reply(_("Nothing is running."))', 0),
        ('reply(_("{what} is running.", what=f"the {name} task"))', 1),
        ('logger.info("nothing is running")', 0),
        ('raise TypeError("a text is no number")', 0),
        ('NAMES = {"two words": 1}', 0),
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
