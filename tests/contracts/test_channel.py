"""Every channel keeps the channel contract (``bot.testing.channel_contract``)."""

from __future__ import annotations

import pytest
from channel_scenes import SCENES

from bot.testing.channel_contract import ChannelContract


@pytest.fixture(scope="session", autouse=True)
def client_libraries() -> None:
    """Load them before any test's clock runs: that takes seconds."""
    import channels.discord
    import channels.telegram
    import channels.web  # noqa: F401


class TestEveryChannel(ChannelContract):
    @pytest.fixture(params=SCENES, autouse=True)
    def scene_of_a_channel(self, request: pytest.FixtureRequest) -> None:
        self.open_scene = SCENES[request.param]

    @pytest.mark.slow
    async def test_an_answer_of_before_a_restart_is_shown_after_it(self, tmp_path):
        await super().test_an_answer_of_before_a_restart_is_shown_after_it(tmp_path)
