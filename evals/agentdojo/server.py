"""One suite of AgentDojo as an MCP server; a script for the virtual environment that AgentDojo is in.

``server.py SUITE`` prints its port. ``POST /mcp`` speaks MCP over streamable HTTP and gives the suite's tools, on the
environment of the run that ``POST /start`` began. ``POST /finish`` ends the run with an answer. AgentDojo itself
prepares each run and judges it (``TaskSuite.run_task_with_pipeline``). One run at a time.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

warnings.simplefilter("ignore")

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement  # noqa: E402
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str  # noqa: E402
from agentdojo.attacks.important_instructions_attacks import (  # noqa: E402
    ImportantInstructionsAttackNoNames,
)
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime  # noqa: E402
from agentdojo.task_suite.load_suites import get_suite  # noqa: E402
from agentdojo.types import text_content_block_from_string  # noqa: E402

VERSION = "v1.2.2"
_PROTOCOL = "2025-06-18"
# Only names of models that AgentDojo knows are accepted; this attack does not use it.
_PIPELINE = SimpleNamespace(name="gpt-4o-2024-05-13")


class OutsideAgent(BasePipelineElement):
    """An agent of AgentDojo whose calls come from outside, until its answer does.

    Args:
        user: The user's task.
        attack: The attacker's; None if there is none.
    """

    def __init__(self, user: Any, attack: Any) -> None:
        self.plan: queue.Queue[dict[str, Any]] = queue.Queue()
        self.answer: queue.Queue[str] = queue.Queue()
        self._tasks = user, attack
        self._runtime = FunctionsRuntime()
        self._environment: Any = None
        self._calls: list[FunctionCall] = []

    def query(
        self, query: str, runtime: Any, env: Any, messages: Any = (), extra_args: Any = None
    ) -> tuple[Any, ...]:
        """Tell what each task's ground truth is, and serve calls until there is an answer."""
        self._runtime, self._environment = runtime, env
        user, attack = (_ground_truth(task, env) for task in self._tasks)
        self.plan.put({"prompt": query, "user": user, "attack": attack})
        said = self.answer.get()
        made = [
            *messages,
            *({"role": "assistant", "content": [], "tool_calls": [one]} for one in self._calls),
        ]
        last = [text_content_block_from_string(said)]
        made.append({"role": "assistant", "content": last, "tool_calls": None})
        return query, runtime, env, made, extra_args or {}

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Run a tool; return its result, and whether it failed."""
        self._calls.append(FunctionCall(function=name, args=arguments))
        result, error = self._runtime.run_function(self._environment, name, arguments)
        return (error, True) if error is not None else (tool_result_to_str(result), False)


def _ground_truth(task: Any, environment: Any) -> dict[str, Any]:
    if task is None:
        return {"calls": [], "output": ""}
    calls = [[one.function, dict(one.args)] for one in task.ground_truth(environment)]
    return {"calls": calls, "output": task.GROUND_TRUTH_OUTPUT}


class Suite:
    """A suite, and the run in it.

    Args:
        name: The suite's name.
    """

    def __init__(self, name: str) -> None:
        self._suite = get_suite(VERSION, name)
        self._agent: OutsideAgent | None = None
        self._verdict: queue.Queue[Any] = queue.Queue()
        self._attack = ImportantInstructionsAttackNoNames(self._suite, _PIPELINE)

    def describe(self) -> dict[str, Any]:
        """Return the tasks, and which of them AgentDojo's own checks pass with their ground truth."""
        # Its check for tasks that cannot be attacked does not read the results of this version.
        _, (users, injections) = self._suite.check(check_injectable=False)
        return {
            "user_tasks": {name: passed for name, (passed, _) in users.items()},
            "injection_tasks": injections,
            "tools": [tool.name for tool in self._suite.tools],
        }

    def tools(self) -> list[dict[str, Any]]:
        """Return the tools as MCP lists them."""
        return [
            {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.parameters.model_json_schema(),
            }
            for tool in self._suite.tools
        ]

    def start(self, user_task: str, injection_task: str | None) -> dict[str, Any]:
        """Begin a run; return the prompt and the ground truth of the tasks."""
        user = self._suite.get_user_task_by_id(user_task)
        injection = vectors = None
        if injection_task is not None:
            injection = self._suite.get_injection_task_by_id(injection_task)
            vectors = self._attack.attack(user, injection)
        agent = OutsideAgent(user, injection)

        def run() -> None:
            try:
                self._verdict.put(
                    self._suite.run_task_with_pipeline(agent, user, injection, vectors or {})
                )
            except Exception as error:  # noqa: BLE001 (whoever waits for the run tells it)
                self._verdict.put(error)
                agent.plan.put({"error": repr(error)})

        threading.Thread(target=run, daemon=True).start()
        plan = agent.plan.get()
        self._agent = agent
        return plan

    def finish(self, answer: str) -> dict[str, Any]:
        """End the run; return AgentDojo's verdict."""
        assert self._agent is not None
        self._agent.answer.put(answer)
        verdict = self._verdict.get()
        self._agent = None
        if isinstance(verdict, Exception):
            return {"error": repr(verdict)}
        return {"utility": bool(verdict[0]), "security": bool(verdict[1])}

    def mcp(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Answer an MCP request; a notification has no answer."""
        number, method, params = (
            request.get("id"),
            request.get("method"),
            request.get("params") or {},
        )
        if number is None:
            return None
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
        if method == "initialize":
            info = {"name": "agentdojo", "version": VERSION}
            answer["result"] = {
                "protocolVersion": _PROTOCOL,
                "capabilities": {"tools": {}},
                "serverInfo": info,
            }
        elif method == "tools/list":
            answer["result"] = {"tools": self.tools()}
        elif method == "tools/call":
            answer["result"] = self._call(params["name"], params.get("arguments") or {})
        else:
            answer["error"] = {"code": -32601, "message": "unknown method"}
        return answer

    def _call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        assert self._agent is not None, "no run has begun"
        text, failed = self._agent.call(name, arguments)
        return {"content": [{"type": "text", "text": text}], "isError": failed}


def handler(suite: Suite) -> type[BaseHTTPRequestHandler]:
    """Return the handler of a server's requests."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            """Refuse to stream."""
            self._send(405, None)

        def do_POST(self) -> None:
            """Answer one request after the other: there is one environment."""
            given = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
            with lock:
                answer = self._answer(given)
            self._send(202 if answer is None else 200, answer)

        def _answer(self, given: dict[str, Any]) -> dict[str, Any] | None:
            if self.path == "/mcp":
                return suite.mcp(given)
            if self.path == "/start":
                return suite.start(given["user_task"], given.get("injection_task"))
            if self.path == "/finish":
                return suite.finish(given["answer"])
            return suite.describe()

        def _send(self, status: int, body: dict[str, Any] | None) -> None:
            data = b"" if body is None else json.dumps(body, default=str).encode()
            head = [
                f"HTTP/1.1 {status} {self.responses[status][0]}",
                "Content-Type: application/json",
                f"Content-Length: {len(data)}",
            ]
            # In one packet: a head that is sent first waits for its receipt.
            self.wfile.write("\r\n".join([*head, "", ""]).encode() + data)

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    return Handler


def main() -> None:
    """Serve until standard input ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(Suite(sys.argv[1])))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    # AgentDojo's tasks print.
    sys.stdout = sys.stderr
    sys.stdin.read()


if __name__ == "__main__":
    main()
