"""Which images a session's model has taken, and which it has refused."""

from __future__ import annotations

from bot.agent.agent import Images


class TakenImages:
    """Images by their name in the blob store, but for those that the model does not take.

    A provider refuses a whole request for one picture that it cannot read: without this book, that
    picture would silence its session until it leaves the view.

    Args:
        images: Where they are; None where there are none to show.
    """

    def __init__(self, images: Images | None) -> None:
        self._images = images
        self._shown: set[str] = set()
        self._taken: set[str] = set()
        self._refused: set[str] = set()

    async def get(self, name: str) -> bytes | None:
        """Return an image; None where it is not there, or was refused."""
        if self._images is None or name in self._refused:
            return None
        data = await self._images(name)
        if data is not None:
            self._shown.add(name)
        return data

    @property
    def shown(self) -> list[str] | None:
        """The images of the request that is made; None where there is nothing to take them from."""
        return None if self._images is None else sorted(self._shown)

    def begin(self) -> None:
        """Begin a request."""
        self._shown.clear()

    def took(self) -> None:
        """Note that the model took the request."""
        self._taken |= self._shown

    def refuse(self) -> bool:
        """Note that it refused the request; False where no image can be why.

        What it has taken before is not suspected.
        """
        suspects = self._shown - self._taken
        self._refused |= suspects
        return bool(suspects)
