"""Is there a program for a computation already?"""

from __future__ import annotations

from kiln.farm.client import Client


def has_program(client: Client, workload_key: str, target: str) -> bool:
    """True if the farm has a record of the key for the target.

    "cuda -arch=sm_90" has those of this architecture, "llvm" those of any CPU.
    """
    words = set(target.split())
    return any(
        words <= set(record.target.split()) for record in client.best_of_targets(workload_key)
    )
