"""What a scheduler's database holds, read beside the scheduler: jobs, trials, and the best of them."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import sqlite3

# A store looks at so many of the best for finalists that do not differ from the fastest one.
_MOST_RIVALS = 256


@dataclasses.dataclass(frozen=True)
class Trial:
    """A record, by what must not change once it was seen."""

    id: int
    job: str
    number: int
    task: int
    # Digest of steps, first readings, error and workers.
    digest: str


class Database:
    """Reads a database file that a scheduler may write to. For one thread."""

    def __init__(self, path: str) -> None:
        self.path = path

    def _rows(self, query: str, *values: object) -> list[tuple]:
        connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=30)
        try:
            return connection.execute(query, values).fetchall()
        finally:
            connection.close()

    def last_id(self) -> int:
        """The id of the newest record; 0 if there is none."""
        return self._rows("SELECT coalesce(max(id), 0) FROM records")[0][0]

    def states(self) -> dict[str, tuple[str, str, int]]:
        """State, message and number of trials of each job, oldest first."""
        rows = self._rows("SELECT id, state, message, trials FROM jobs ORDER BY number")
        return {row[0]: (row[1], row[2], row[3]) for row in rows}

    def newest_of_jobs(self) -> dict[str, int]:
        """The id of the newest record of each job."""
        return dict(self._rows("SELECT job_id, max(id) FROM records GROUP BY job_id"))

    def trials(self, after_id: int = 0, up_to_id: int = 1 << 62) -> list[Trial]:
        """Records by id."""
        rows = self._rows(
            "SELECT id, job_id, trial, task_index, steps, costs_s, error, builder, runner FROM records "
            "WHERE id > ? AND id <= ? ORDER BY id", after_id, up_to_id)
        return [Trial(*row[:2], *row[2:4], hashlib.sha256(repr(row[4:]).encode()).hexdigest()) for row in rows]

    def numbers(self, job: str) -> list[int]:
        """The numbers of the job's trials, ascending."""
        return [row[0] for row in self._rows("SELECT trial FROM records WHERE job_id = ? ORDER BY trial", job)]

    def best(self, job: str, task: int) -> int:
        """The id of the best record by the order that docs/records.md describes; 0 if there is none.

        Computed from all records of the task, without the database's indexes or order.
        """
        rows = self._rows(
            "SELECT measured_as, stopped_early, mean_cost_s, id, confidence_s, device FROM records "
            "WHERE job_id = ? AND task_index = ? AND error = 0", job, task)
        if not rows:
            return 0
        first_way = max(row[0] for row in rows)
        ranked = sorted((row for row in rows if row[0] == first_way), key=lambda row: row[1:4])[:_MOST_RIVALS]
        fastest = ranked[0]
        equal = [row[3] for row in ranked if row[3] != fastest[3] and _are_equal(fastest, row)]
        return min([fastest[3], *equal])

    def runners_of(self, ids: list[int]) -> set[str]:
        """The workers that measured these records."""
        marks = ",".join("?" * len(ids))
        return {row[0] for row in self._rows(f"SELECT DISTINCT runner FROM records WHERE id IN ({marks})", *ids)}


def _are_equal(a: tuple, b: tuple) -> bool:
    """Whether two finalists do not differ significantly."""
    both_finalists = bool(a[4]) and bool(b[4]) and a[4] > 0 and b[4] > 0
    return (both_finalists and not a[1] and not b[1] and a[5] == b[5]
            and abs(a[2] - b[2]) <= math.hypot(a[4], b[4]))
