from tapebot_plugin_example.parrot import Parrot

from bot.llm.base import Model
from bot.testing.model_contract import ModelContract


class TestParrot(ModelContract):
    def create(self) -> Model:
        return Parrot("polly")
