"""Axes that draw as SVG, for plots where matplotlib is not installed.

They take the calls that plots.py makes of matplotlib's axes, and no others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_WIDTH, _HEIGHT = 560, 380
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 16, 34, 48
_COLOURS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#17becf")
_MOST_NAMES = 12
_Pairs = list[tuple[float, float]]


@dataclass(frozen=True)
class _Line:
    """A line, or the points of a scatter plot."""

    pairs: _Pairs
    color: str
    label: str
    width: float
    steps: bool = False
    dots: bool = False

    def get_color(self) -> str:
        """The colour, as matplotlib's lines give it."""
        return self.color


class SvgAxes:
    """One plot. Notebooks show it; `save` writes it to a file."""

    def __init__(self) -> None:
        self._lines: list[_Line] = []
        self._texts = {"title": "", "xlabel": "", "ylabel": ""}
        self._log = {"x": False, "y": False}
        self._from_zero = False
        self._has_legend = False

    def plot(self, xs: Sequence[Any], ys: Sequence[Any], **style: Any) -> tuple[_Line]:
        """Adds a line. Points without a number are left out."""
        line = _Line(
            _numbers(xs, ys),
            style.get("color") or _COLOURS[self._colours_used() % len(_COLOURS)],
            str(style.get("label", "")),
            float(style.get("linewidth", 1.5)),
            steps=style.get("drawstyle") == "steps-post",
        )
        self._lines.append(line)
        return (line,)

    def scatter(self, xs: Sequence[Any], ys: Sequence[Any], **style: Any) -> None:
        """Adds points."""
        color = style.get("color") or _COLOURS[self._colours_used() % len(_COLOURS)]
        label = str(style.get("label", ""))
        self._lines.append(_Line(_numbers(xs, ys), color, label, 2.5, dots=True))

    def set(self, **texts: Any) -> None:
        """Sets title, labels and scales; with ylim=(0, None) the axis begins at 0."""
        for name in self._texts:
            self._texts[name] = str(texts.get(name, self._texts[name]))
        for axis in self._log:
            self._log[axis] = texts.get(f"{axis}scale", "linear") == "log"
        self._from_zero = tuple(texts.get("ylim", ())) == (0, None)

    def legend(self, **_: Any) -> None:
        """Shows the names of the lines."""
        self._has_legend = True

    def save(self, path: str) -> None:
        """Writes the picture."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._repr_svg_())

    def _colours_used(self) -> int:
        return len({line.color for line in self._lines})

    def _range(self, axis: int) -> tuple[float, float]:
        """The least and the largest number of an axis, on its scale."""
        log = self._log["xy"[axis]]
        values = [pair[axis] for line in self._lines for pair in line.pairs]
        values = [value for value in values if value > 0 or not log] or [1.0]
        low, high = min(values), max(values)
        if axis == 1 and self._from_zero:
            low = min(low, 0.0)
        if log:
            low, high = math.log10(low), math.log10(high)
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    def _ticks(self, axis: int) -> list[float]:
        """Numbers at which the axis has marks, on its scale."""
        low, high = self._range(axis)
        if self._log["xy"[axis]]:
            whole = [float(i) for i in range(math.ceil(low), math.floor(high) + 1)]
            return whole if 2 <= len(whole) <= 8 else [low, (low + high) / 2, high]
        power = 10.0 ** math.floor(math.log10((high - low) / 6))
        step = next(power * m for m in (1, 2, 5, 10) if (high - low) / (power * m) <= 6)
        return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]

    def _at(self, axis: int, value: float) -> float:
        """The place of a number that is on the axis's scale."""
        low, high = self._range(axis)
        part = (value - low) / (high - low)
        if axis == 0:
            return _LEFT + part * (_WIDTH - _LEFT - _RIGHT)
        return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)

    def _places(self, line: _Line) -> _Pairs:
        places = []
        for pair in line.pairs:
            if any(self._log["xy"[axis]] and pair[axis] <= 0 for axis in (0, 1)):
                continue
            scaled = [math.log10(pair[axis]) if self._log["xy"[axis]] else pair[axis] for axis in (0, 1)]
            places.append((self._at(0, scaled[0]), self._at(1, scaled[1])))
        return places

    def _drawn(self, line: _Line) -> str:
        places = self._places(line)
        if line.dots:
            return "".join(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{line.width}" fill="{line.color}" '
                'fill-opacity="0.6"/>'
                for x, y in places
            )
        path = []
        for i, (x, y) in enumerate(places):
            if line.steps and i > 0:
                path.append(f"{x:.1f},{places[i - 1][1]:.1f}")
            path.append(f"{x:.1f},{y:.1f}")
        return (
            f'<polyline points="{" ".join(path)}" fill="none" stroke="{line.color}" '
            f'stroke-width="{line.width}"/>'
        )

    def _marks(self) -> list[str]:
        """The grid with its numbers."""
        parts, right, bottom = [], _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
        for axis in (0, 1):
            for tick in self._ticks(axis):
                at = self._at(axis, tick)
                text = f"{10**tick if self._log['xy'[axis]] else tick:.4g}"
                if axis == 0:
                    parts.append(
                        f'<path d="M{at:.1f} {_TOP}V{bottom}" stroke="#e4e4e4"/>'
                        f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="middle">{text}</text>'
                    )
                else:
                    parts.append(
                        f'<path d="M{_LEFT} {at:.1f}H{right}" stroke="#e4e4e4"/>'
                        f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{text}</text>'
                    )
        return parts

    def _names(self) -> list[str]:
        named = [line for line in self._lines if line.label][:_MOST_NAMES]
        return [
            f'<text x="{_WIDTH - _RIGHT - 6}" y="{_TOP + 16 + 14 * i}" text-anchor="end" '
            f'fill="{line.color}">{escape(line.label)}</text>'
            for i, line in enumerate(named)
        ]

    def _repr_svg_(self) -> str:
        """The picture, for notebooks."""
        middle, height = (_LEFT + _WIDTH - _RIGHT) / 2, (_TOP + _HEIGHT - _BOTTOM) / 2
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
            f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="11">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            *self._marks(),
            *(self._drawn(line) for line in self._lines),
            *(self._names() if self._has_legend else []),
            f'<text x="{middle}" y="20" text-anchor="middle" font-size="14">'
            f'{escape(self._texts["title"])}</text>',
            f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle">'
            f'{escape(self._texts["xlabel"])}</text>',
            f'<text transform="translate(14 {height}) rotate(-90)" text-anchor="middle">'
            f'{escape(self._texts["ylabel"])}</text>',
            "</svg>",
        ]
        return "\n".join(parts)


class SvgPanels(list[SvgAxes]):
    """Several plots side by side."""

    def _repr_html_(self) -> str:
        """The plots, for notebooks."""
        return "".join(
            f'<span style="display:inline-block">{axes._repr_svg_()}</span>'  # pylint: disable=protected-access
            for axes in self
        )


def _numbers(xs: Sequence[Any], ys: Sequence[Any]) -> _Pairs:
    """The points that have both numbers."""
    pairs = []
    for x, y in zip(xs, ys):
        if x is None or y is None or not (math.isfinite(x) and math.isfinite(y)):
            continue
        pairs.append((float(x), float(y)))
    return pairs
