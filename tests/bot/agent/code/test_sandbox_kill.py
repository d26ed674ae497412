"""After a kill of the bot no process of the sandbox goes on, and the next start cleans up."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import pytest
from code_sandbox import built_sandbox, processes_of
from waiting import until

from bot.agent.code.sandbox import PythonSandbox

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends the process only there"),
    pytest.mark.timeout(900),
]

BOT = """
import sys
from pathlib import Path
import anyio
from bot.agent.code.sandbox import PythonSandbox
anyio.run(PythonSandbox(Path(sys.argv[1]), seconds=600).run, sys.argv[2])
"""


async def killed_when(looked, folder: Path, code: str = "") -> None:
    """Run code in a program that is killed as soon as something is seen; wait for its processes' end."""
    async with await anyio.open_process(
        [sys.executable, "-c", BOT, str(folder), code], stdout=None, stderr=None
    ) as program:
        await until(looked)
        assert len(processes_of(folder)) >= 2  # the builder starts some for a moment
        program.kill()
        await program.wait()
    await until(lambda: processes_of(folder) == [])


@pytest.mark.slow
@pytest.mark.parametrize("code", ["while True: pass", "import time\ntime.sleep(500)"])
async def test_code_ends_with_a_killed_bot(tmp_path, code):
    folder = tmp_path / "sandbox"
    await built_sandbox(folder)
    began = f"open('begun', 'w').close()\n{code}"
    await killed_when(lambda: list(folder.glob("runs/*/begun")), folder, began)
    sandbox = PythonSandbox(folder)
    assert list(folder.glob("runs/*")) == []
    assert (await sandbox.run("1 + 1")).output == "2"


@pytest.mark.slow
async def test_a_damaged_interpreter_is_built_again(tmp_path):
    folder = tmp_path / "sandbox"
    sandbox = await built_sandbox(folder)
    [component] = folder.glob("*.cwasm")
    component.unlink()  # it is a link to the one of all tests
    component.write_bytes(b"no component")
    assert (await sandbox.run("1 + 1")).output == "2"
