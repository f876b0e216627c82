"""What may become of the layout of weights."""

from __future__ import annotations

from typing import Any

from kiln.auto_scheduler.target_kind import kind_of
from kiln.errors import InvalidArgumentError


class LayoutRewriteOption:
    """How a schedule may lay out anew what `layout_free_placeholders` names."""

    NO_REWRITE = 0
    # Refused: Kiln's programs have no stage that packs weights at each call.
    INSERT_TRANSFORM_STAGE = 1
    # Candidates are measured with weights that are packed before.
    REWRITE_FOR_PRE_TRANSFORMED = 2

    @staticmethod
    def get_target_default(target: Any, in_relay_integration: bool = False) -> int:
        """What a task has that says nothing: 2 in networks for CPUs, else 0."""
        is_cpu = kind_of(target) in ("llvm", "cpu")
        return 2 if in_relay_integration and is_cpu else 0


def check_layout_rewrite(option: int | None) -> None:
    """InvalidArgumentError: the option is none, or the one that Kiln does not have."""
    if option == LayoutRewriteOption.INSERT_TRANSFORM_STAGE:
        raise InvalidArgumentError(
            "layout_rewrite_option is 1 (INSERT_TRANSFORM_STAGE), expected 0 or 2: Kiln's programs "
            "have no stage that packs weights at each call"
        )
    if option not in (None, 0, 2):
        raise InvalidArgumentError(f"layout_rewrite_option is {option!r}, expected 0 or 2")
