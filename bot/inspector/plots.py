"""Plots as SVG: stacked bars and lines by day. Pure.

Rule 1: colours come from CSS classes (``series-0`` and so on), so that they follow the light or
    dark theme.
Rule 2: each plot has a summary in words; its numbers are in a table beside it.
Rule 3: every text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

WIDTH, HEIGHT = 480, 220
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 8, 10, 26
_LABELS = 5
_STEPS = (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10)
_INNER_WIDTH = WIDTH - _LEFT - _RIGHT
_INNER_HEIGHT = HEIGHT - _TOP - _BOTTOM
_FLOOR = _TOP + _INNER_HEIGHT


@dataclass(frozen=True, slots=True)
class Series:
    """The values that are drawn in one colour.

    Attributes:
        name: The name in the legend.
        values: One value per label; None for a gap.
    """

    name: str
    values: Sequence[float | None]


Format = Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot with its title, summary and values.

    Attributes:
        key: An id that is unique on the page.
        title: The title.
        summary: A sentence with the main numbers, for users who cannot see the plot.
        labels: One label per position on the x axis.
        series: At most six: each has a colour of its own (``plots.css``).
        shown: Formats a value.
        stacked: True for stacked bars, False for lines.
        whole: Whether the values are whole numbers.
    """

    key: str
    title: str
    summary: str
    labels: Sequence[str]
    series: Sequence[Series]
    shown: Format
    stacked: bool = True
    whole: bool = False

    @property
    def empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(value for other in self.series for value in other.values)

    def svg(self) -> Markup:
        """Return the plot as an SVG element."""
        top = ceiling(self._highest(), whole=self.whole)
        marks = _bars(self, top) if self.stacked else _lines(self, top)
        key = escape(self.key)
        return Markup(  # noqa: S704 - its parts are escaped or numbers
            f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-labelledby="{key}-title {key}-desc">'
            f'<title id="{key}-title">{escape(self.title)}</title>'
            f'<desc id="{key}-desc">{escape(self.summary)}</desc>'
            f"{_axes(self, top)}{marks}</svg>"
        )

    def _highest(self) -> float:
        if not self.stacked:
            return max((value or 0 for other in self.series for value in other.values), default=0)
        columns = zip(*(other.values for other in self.series), strict=True)
        return max((sum(value or 0 for value in column) for column in columns), default=0)


def ceiling(highest: float, *, whole: bool = False) -> float:
    """Return an upper bound for the y axis whose quarters are round numbers."""
    if highest <= 0 or not math.isfinite(highest):
        return 4.0 if whole else 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    fits = (step * power for step in _STEPS if step * power >= highest * (1 - 1e-9))
    top = next(fits, 10 * power)
    return float(4 * math.ceil(top / 4)) if whole else top


def _axes(plot: Plot, top: float) -> str:
    made = []
    for part in range(5):
        y = _FLOOR - _INNER_HEIGHT * part / 4
        text = escape(plot.shown(top * part / 4))
        made.append(
            f'<line class="rule" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>'
        )
    count = len(plot.labels)
    every = max(1, math.ceil(count / _LABELS))
    for place in range(count - 1, -1, -every):
        x = _middle(place, count)
        anchor = "end" if x > WIDTH - 40 else "middle"
        x = min(x, WIDTH - 2) if anchor == "end" else x
        label = escape(plot.labels[place])
        made.append(
            f'<text class="tick" x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">{label}</text>'
        )
    return "".join(made)


def _middle(place: int, count: int) -> float:
    return _LEFT + _INNER_WIDTH * (place + 0.5) / count


def _bars(plot: Plot, top: float) -> str:
    count = len(plot.labels)
    width = max(0.5, _INNER_WIDTH / max(1, count) * 0.78)
    made = []
    for place, label in enumerate(plot.labels):
        floor, pieces, told = float(_FLOOR), [], []
        for number, series in enumerate(plot.series):
            value = series.values[place]
            if not value:
                continue
            height = _INNER_HEIGHT * value / top
            floor -= height
            told.append(f"{series.name} {plot.shown(value)}")
            pieces.append(
                f'<rect class="series-{number}" x="{_middle(place, count) - width / 2:.2f}" '
                f'y="{floor:.2f}" width="{width:.2f}" height="{height:.2f}"/>'
            )
        if pieces:
            words = escape(f"{label}: {', '.join(told)}")
            made.append(f"<g><title>{words}</title>{''.join(pieces)}</g>")
    return "".join(made)


def _lines(plot: Plot, top: float) -> str:
    count = len(plot.labels)
    made = []
    for number, series in enumerate(plot.series):
        for run in _runs(series.values):
            points = [
                (_middle(place, count), _FLOOR - _INNER_HEIGHT * value / top)
                for place, value in run
            ]
            path = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
            made.append(f'<polyline class="line series-{number}" points="{path}"/>')
            if count <= 31:
                made += [
                    f'<circle class="dot series-{number}" cx="{x:.2f}" cy="{y:.2f}" r="2.5"><title>'
                    f"{escape(f'{plot.labels[place]}: {series.name} {plot.shown(value)}')}</title></circle>"
                    for (x, y), (place, value) in zip(points, run, strict=True)
                ]
            elif len(points) == 1:
                x, y = points[0]
                made.append(
                    f'<circle class="dot series-{number}" cx="{x:.2f}" cy="{y:.2f}" r="1.5"/>'
                )
    return "".join(made)


def _runs(values: Sequence[float | None]) -> list[list[tuple[int, float]]]:
    """Split values into runs without gaps; a day without a value breaks the line."""
    runs: list[list[tuple[int, float]]] = []
    broken = True
    for place, value in enumerate(values):
        if value is None:
            broken = True
            continue
        if broken:
            runs.append([])
        runs[-1].append((place, value))
        broken = False
    return runs
