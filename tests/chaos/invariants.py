"""What must hold whatever happens to a farm. Each check returns sentences about what does not."""

from __future__ import annotations

import json
import os
import time

import processes
from faults import Farm
from records import Database, Trial

# How a job ends whose scheduler died twice without a result of it in between (docs/operations.md).
SET_ASIDE = "kiln jobs resume"
# Files of a database beside it, while it is open and after a kill.
_BESIDE = ("-wal", "-shm", ".lock")


class Invariants:
    """Follows the records of a farm from fault to fault. For one thread."""

    def __init__(self, farm: Farm) -> None:
        self.farm, self.database = farm, Database(farm.db)
        self._seen: dict[tuple[str, int], Trial] = {}
        self._last_id = 0
        self._ended: set[str] = set()

    def after_fault(self) -> list[str]:
        """All that can be said while jobs run."""
        wrong = self._new_trials() + self._trials_stay()
        for job, (state, message, trials) in self.database.states().items():
            if state in ("failed", "cancelled") and SET_ASIDE not in message:
                wrong.append(f"job {job} has {state}: {message}")
            if state == "succeeded" and job not in self._ended:
                self._ended.add(job)
                wrong += self._job_is_whole(job, trials) + self._best_is_right(job)
        return wrong + self._file_is_whole()

    def at_end(self) -> list[str]:
        """After all jobs have ended, before the farm is stopped."""
        wrong = self.after_fault()
        for job, (state, message, _) in self.database.states().items():
            if state != "succeeded":
                wrong.append(f"job {job} is {state} at the end: {message}")
        return wrong

    def after_stop(self, own: set[int]) -> list[str]:
        """After the farm was stopped in order: nothing is left but the database. `own` are not the farm's."""
        wrong = []
        left = [pid for pid in processes.descendants(os.getpid()) if pid not in own]
        for pid in processes.all_ended(left, 10):
            wrong.append(f"process {pid} is left: {processes.command_of(pid)}")
        for suffix in _BESIDE:
            if os.path.exists(self.farm.db + suffix):
                wrong.append(f"{self.farm.db + suffix} is left")
        if files := self._left_in_temporary():
            wrong.append(f"left in {self.farm.temporary}: {', '.join(files)}")
        checked = self.farm.client("db", "check", self.farm.db)
        if checked.returncode != 0:
            wrong.append(f"kiln db check after the stop: {checked.stdout}{checked.stderr}")
        return wrong

    def counts(self) -> str:
        states = self.database.states()
        return f"{len(states)} jobs, {len(self._seen)} trials"

    def _new_trials(self) -> list[str]:
        wrong = []
        for trial in self.database.trials(self._last_id):
            key = (trial.job, trial.number)
            if key in self._seen:
                wrong.append(f"trial {trial.job}/{trial.number} is there twice")
            self._seen[key] = trial
            self._last_id = trial.id
        return wrong

    def _trials_stay(self) -> list[str]:
        """What was seen once is there, as it was."""
        there = self.database.trials(0, self._last_id)
        wrong = [f"trial {t.job}/{t.number} has changed" for t in there if self._seen.get((t.job, t.number)) != t]
        if len(there) != len(self._seen):
            wrong.append(f"{len(self._seen)} trials were seen, and {len(there)} of them are there")
        return wrong[:10]

    def _job_is_whole(self, job: str, trials: int) -> list[str]:
        numbers = self.database.numbers(job)
        if numbers == list(range(trials)):
            return []
        missing = sorted(set(range(trials)) - set(numbers))
        return [f"job {job} has {len(numbers)} trials, expected 0 to {trials - 1}; missing: {missing[:10]}"]

    def _best_is_right(self, job: str) -> list[str]:
        """The job's status and `kiln best` name the record that all records of each task give."""
        shown = self.farm.client("jobs", job, "--json")
        best = self.farm.client("best", job, "--json")
        if shown.returncode != 0 or best.returncode != 0:
            return [f"kiln jobs and kiln best of {job}: {shown.stderr}{best.stderr}"]
        status = json.loads(shown.stdout.splitlines()[0])
        tasks = status.get("job", status)["tasks"]
        ids = [int(json.loads(line)["id"]) for line in best.stdout.splitlines()]
        want = [self.database.best(job, task) for task in range(len(tasks))]
        told = [int(task["best_record_id"]) for task in tasks]
        wrong = [] if told == want else [f"job {job} names the best records {told}, expected {want}"]
        return wrong + ([] if ids == [id for id in want if id] else
                        [f"kiln best {job} names {ids}, expected {want}"])

    def _file_is_whole(self) -> list[str]:
        checked = self.farm.client("db", "check", self.farm.db)
        return [] if checked.returncode == 0 else [f"kiln db check: {checked.stdout}{checked.stderr}"]

    def _left_in_temporary(self) -> list[str]:
        """Files that remain once daemons of each kind were started and stopped after the killed ones.

        A daemon sweeps what a killed one has left when that is a minute old, so the folders are made older.
        """
        old = time.time() - 120
        for entry in os.scandir(self.farm.temporary):
            os.utime(entry.path, (old, old))
        self.farm.sweep()
        return sorted(os.listdir(self.farm.temporary))
