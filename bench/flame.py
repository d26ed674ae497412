"""Where the CPU time of a turn goes, by part of the program.

``python -m bench.flame`` also draws the picture and writes both into ``docs/performance.md``.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from types import FrameType

import anyio

from bench.flame_picture import Call, Stack, libraries, picture, share_table
from bench.processes import ROOT, model_server
from bench.program import program
from bench.report import Scale, Table, markdown, ms, write_section

_PAGE = ROOT / "docs" / "performance.md"
_PICTURE = ROOT / "docs" / "performance" / "turn.svg"
_EVERY = 0.001
"""Seconds of CPU time between two samples; the kernel may round them up."""
_CHAT_TURNS = 20
"""Turns of a conversation: about so many messages are in view in the mean."""
_WAITS = {"select", "poll", "wait", "get", "acquire", "_wait_for_tstate_lock", "epoll", "readinto"}
_SHOWN = 6


class Sampler:
    """Notes what runs, each time that the process has used a little CPU time.

    Attributes:
        samples: How often each stack was seen.
    """

    def __init__(self) -> None:
        self.samples: Counter[Stack] = Counter()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Sample inside."""
        before = signal.signal(signal.SIGPROF, self._note)
        signal.setitimer(signal.ITIMER_PROF, _EVERY, _EVERY)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)

    def _note(self, _: int, frame: FrameType | None) -> None:
        stack = _stack(frame)
        if stack and stack[-1].function in _WAITS and stack[-1].module == "selectors":
            # The event loop waits, so a thread has used the time.
            here = threading.get_ident()
            others = [_stack(one) for at, one in sys._current_frames().items() if at != here]  # noqa: SLF001 (documented)
            busy = [one for one in others if one and one[-1].function not in _WAITS]
            stack = busy[0] if busy else stack
        self.samples[stack] += 1


def _stack(frame: FrameType | None) -> Stack:
    calls = []
    while frame is not None:
        module = str(frame.f_globals.get("__name__", "?"))
        calls.append(Call(module, frame.f_code.co_qualname))
        frame = frame.f_back
    return tuple(reversed(calls))


async def sample(work: Path, turns: int) -> tuple[Counter[Stack], float]:
    """Take turns with a model server; return what was seen, and the CPU seconds of a turn."""
    sampler = Sampler()
    with model_server() as address:
        settings = {"model_api_base": address, "model_api_key": "bench"}
        async with program(work, "openai/scripted", **settings) as running:
            for number in range(_CHAT_TURNS):
                await running.turn(f"warm-{number % 2}")
            cpu = process_time()
            with sampler.running():
                for number in range(turns):
                    await running.turn(f"chat-{number // _CHAT_TURNS}")
            cpu = process_time() - cpu
    return sampler.samples, cpu / turns


async def measure(scale: Scale) -> list[Table]:
    """Take turns, and say where their time went."""
    samples, cpu = await sample(scale.work, scale.pick(2_000, 60))
    return tables(samples, cpu)


def tables(samples: Counter[Stack], cpu: float) -> list[Table]:
    """Return the shares by part and by library."""
    whole = max(samples.total(), 1)
    found = libraries(samples).most_common(_SHOWN)
    return [
        Table(
            "CPU of a turn by part",
            ("part", "%", "ms"),
            share_table(samples, ms(cpu)),
            [f"{ms(cpu):.1f} ms in all; {samples.total()} samples"],
        ),
        Table(
            "The same by the library that runs",
            ("library", "%", "ms"),
            [(name, 100 * n / whole, ms(cpu) * n / whole) for name, n in found],
            ["bot: the program; selectors: the wait for events, with the switches between threads"],
        ),
    ]


def main() -> None:
    """Measure, draw, and write the page."""
    with tempfile.TemporaryDirectory() as folder:
        samples, cpu = anyio.run(sample, Path(folder), 2_000)
    _PICTURE.parent.mkdir(exist_ok=True)
    title = f"CPU of a turn: {ms(cpu):.1f} ms; wider is more"
    _PICTURE.write_text(picture(samples, title), encoding="utf-8")
    shown = tables(samples, cpu)
    write_section(_PAGE, "flame", "\n\n".join(markdown(one.as_json()) for one in shown))
    for one in shown:
        print(f"{one.render()}\n")
    print(f"written to {_PICTURE.relative_to(ROOT)} and {_PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
