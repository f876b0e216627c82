"""Contexts that stand in each other."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from kiln.errors import FailedPreconditionError

_Self = TypeVar("_Self", bound="NestedContext")


class NestedContext:
    """Base of a kind of contexts, whose class has the innermost one as `current`.

    Threads share `current`. The outermost context is set, and never entered.
    """

    current: ClassVar[Any]
    # The context around this one, while its block runs.
    _outer: Any = None

    @classmethod
    def _kind_of_context(cls) -> Any:
        """The class that derives from NestedContext itself."""
        return next(each for each in cls.__mro__ if NestedContext in each.__bases__)

    def __enter__(self: _Self) -> _Self:
        """FailedPreconditionError: its block runs already, so it would stand in itself."""
        kind = self._kind_of_context()
        if self._outer is not None or kind.current is self:
            raise FailedPreconditionError(
                f"the block of this {type(self).__name__} runs already, expected another context"
            )
        self._outer, kind.current = kind.current, self
        return self

    def __exit__(self, *_: object) -> None:
        self._kind_of_context().current = self._outer
        self._outer = None
