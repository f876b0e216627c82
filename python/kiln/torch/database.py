"""Is there a program for a computation already?"""

from __future__ import annotations

from kiln.farm.client import Client

# The best records that are looked at: those of other devices may be among them.
_LOOKED_AT = 64


def has_program(client: Client, workload_key: str, target: str) -> bool:
    """True if the farm has a record of the key for the target.

    "cuda -arch=sm_90" has those of this architecture, "llvm" those of any CPU.
    """
    words = target.split()
    found = client.records(key_prefix=workload_key, target=words[0], top=_LOOKED_AT)
    return any(
        record.workload_key == workload_key and set(words) <= set(record.target.split())
        for record in found
    )
