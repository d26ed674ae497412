"""Every channel keeps the channel contract (``bot.testing.channel_contract``)."""

from __future__ import annotations

import pytest
from channel_scenes import SCENES

from bot.testing.channel_contract import ChannelContract

pytestmark = pytest.mark.usefixtures("client_libraries")


class TestEveryChannel(ChannelContract):
    @pytest.fixture(params=SCENES, autouse=True)
    def scene_of_a_channel(self, request: pytest.FixtureRequest) -> None:
        self.open_scene = SCENES[request.param]

    @pytest.mark.slow
    async def test_an_answer_of_before_a_restart_is_shown_after_it(self, tmp_path):
        await super().test_an_answer_of_before_a_restart_is_shown_after_it(tmp_path)
