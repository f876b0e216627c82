"""The version of this package, and whether a program or a farm fits it."""

from __future__ import annotations

from kiln.errors import FailedPreconditionError

VERSION = "1"
# Version of the scheduler's calls (base/version.h). Others are not understood.
PROTOCOL = 1


def check_protocol(version: str, protocol: int, who: str) -> None:
    """FailedPreconditionError: `who`, "the scheduler at box:9290", has other calls."""
    if protocol != PROTOCOL:
        raise FailedPreconditionError(
            f"{who} is kiln {version} of protocol {protocol}, this package is kiln {VERSION} of "
            f"protocol {PROTOCOL}; install the same kiln at both ends"
        )
