import pytest

# A failed assertion of the contracts then shows its values.
pytest.register_assert_rewrite("bot.testing")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
