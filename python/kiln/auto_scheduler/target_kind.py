"""Kinds of targets."""

from __future__ import annotations

from typing import Any

from kiln.errors import InvalidArgumentError


def kind_of(target: Any) -> str:
    """The kind that a target's text begins with: "llvm". InvalidArgumentError: it names none."""
    words = str(target).split()
    if not words:
        raise InvalidArgumentError(
            f"target is {str(target)!r}, expected a kind and its options, as 'llvm -mcpu=native'"
        )
    return words[0]
