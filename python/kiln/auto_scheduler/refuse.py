"""Arguments of TVM's calls that have no meaning here."""

from __future__ import annotations

from typing import Any

from kiln.errors import InvalidArgumentError


def refuse(where: str, why: dict[str, str], given: dict[str, Any]) -> None:
    """InvalidArgumentError: an argument of `why` is given; its entry says why it is not taken."""
    for name, reason in why.items():
        if given.get(name) is not None:
            raise InvalidArgumentError(
                f"{where}: {name} is {given[name]!r}, expected None: {reason}"
            )
