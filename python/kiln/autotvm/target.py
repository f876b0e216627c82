"""The target that templates are called for."""

from __future__ import annotations


class Target:
    """A target as a text, for a `with` block around calls of templates."""

    _current: list[Target] = []

    def __init__(self, target: str) -> None:
        self.text = str(target)

    def __str__(self) -> str:
        return self.text

    def __enter__(self) -> Target:
        Target._current.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        Target._current.pop()

    @staticmethod
    def current() -> Target | None:
        """The target of the innermost block, or None."""
        return Target._current[-1] if Target._current else None
