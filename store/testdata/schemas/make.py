"""Makes the databases of earlier schemas, with which store/migration_test.cc tests migrations.

usage: make.py      in the root of a checkout with its history; writes FILE.db.gz beside this script

The SQL of each schema comes word for word from store/schema.cc of the commit that made it. The rows are those that a
Kiln of that commit wrote: all columns that its tables have, with the values that its inserts put into them. Schemas 14
and 16 changed under their numbers, so they have a file for each form.
"""
import gzip
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import tempfile

# Name, commit, version.
SCHEMAS = [
    ("01", "e35d677", 1), ("02", "167c76c", 2), ("03", "d096a70", 3), ("04", "56eb47a", 4), ("05", "7320853", 5),
    ("06", "6da0202", 6), ("07", "0fdb5d2", 7), ("08", "0fdb5d2", 8), ("09", "0fdb5d2", 9), ("10", "1863a99", 10),
    ("11", "c9da3c4", 11), ("12", "19989da", 12), ("13", "f87a613", 13), ("14-first", "7ccfc02", 14),
    ("14-second", "5100027", 14), ("14", "0e1b08f", 14), ("15", "0cdd00a", 15), ("16-first", "76ca567", 16),
    ("16", "ab527e6", 16), ("17", "de0a9da", 17), ("18", "ee2b708", 18), ("19", "27b7cca", 19),
    ("20", "1cb74e3", 20), ("21", "4573072", 21),
]  # fmt: skip
APPLICATION_ID = 0x4B494C4E

DAG = "A = placeholder(1, 56, 56, 64)\n"
OTHER_DAG = "B = placeholder(8)\n"
KEY = '["0fad1b42", [1, 56, 56, 64]]'
TARGET = "cuda -arch=sm_90"
# Names that a column had before schema 13.
OLD_NAMES = {
    "remeasured_costs_s": "final_costs_s",
    "remeasurements": "final_readings",
    "remeasured_run_s": "final_run_s",
    "remeasured_device": "final_device",
    "variant": "form",
}


def sql_of(commit, version):
    """The SQL that makes one version of the one before."""
    source = subprocess.run(
        ["git", "show", f"{commit}:store/schema.cc"], check=True, capture_output=True, text=True
    ).stdout
    raw = re.search(rf'kVersion{version}\[\] =\s*R"sql\((.*?)\)sql";', source, re.S)
    if raw:
        return raw.group(1)
    quoted = re.search(rf'kVersion{version}\[\] =\s*((?:"[^"]*"\s*)+);', source)
    return "".join(re.findall(r'"([^"]*)"', quoted.group(1)))


def insert(db, table, **values):
    """Inserts what the table has columns for. A table that the schema does not have gets nothing."""
    columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
    row = {}
    for name, value in values.items():
        for known in (name, OLD_NAMES.get(name)):
            if known in columns:
                row[known] = value
    if row:
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))


def numbers(values):
    return "[" + ", ".join(repr(v) for v in values) + "]"


def add_record(db, version, job, trial, **changes):
    values = {
        "id": None,
        "job_id": job,
        "task_index": 0,
        "trial": trial,
        "workload_id": hashlib.sha256(DAG.encode()).hexdigest(),
        "workload_key": KEY,
        "dag_id": 1,
        "target": TARGET,
        "hardware": "[-1, 16, 64, 49152, 2147483647, 1024, 8, 32]",
        "steps": f'[["SP", 0, 0, 56, [{trial}], 1]]',
        "costs": [0.001 * (trial + 1), 0.003 * (trial + 1)],
        "error": 0,
        "message": "",
        "build_s": 0.5,
        "run_s": 0.25,
        "timestamp_s": 1700000000 + trial,
        "device": "NVIDIA H200",
        "builder": "builder-1",
        "runner": "runner-1",
        "stopped_early": 0,
        "max_error": 1e-06,
        "flop_count": 1e9,
        "origin": "mutation",
        "score": -0.002,
        "remeasured": [],
        "confidence_s": None,
        "times": b"\x09\x00t",
        "remeasurements": 0,
        "remeasured_run_s": 0.0,
        "remeasured_device": "",
        "unchecked": "",
        "sampled_outputs": 8192,
        "target_host": "",
        "layout_rewrite_option": 0,
        "input_names": "[]",
        "device_model_id": 1,
        "measured_as": "graph/warm/free",
        "device_state": b"\x08\x00\x10",
        "mark": "",
    }
    values.update(changes)
    costs, remeasured = values.pop("costs"), values.pop("remeasured")
    values["costs_s"] = numbers(costs)
    values["remeasured_costs_s"] = numbers(remeasured)
    counted = sorted(remeasured)[len(remeasured) // 2] if remeasured and version >= 2 else None
    mean = sum(costs) / len(costs) if costs else None
    values["mean_cost_s"] = None if values["error"] else counted or mean
    del values["id"]
    insert(db, "records", **values)


def add_job(db, number, job, spec, state="succeeded"):
    insert(
        db, "jobs", number=number, id=job, name=f"name of {job}", user="ada", priority=3, state=state,
        message="", spec=spec, created_ms=1000, started_ms=2000, finished_ms=3000, ending=2, active_s=1.5,
        fruitless_runs=1, trials=64,
    )  # fmt: skip


def fill(db, version):
    for number, text in ((1, DAG), (2, OTHER_DAG)):
        insert(db, "dags", id=number, digest=hashlib.sha256(text.encode()).hexdigest(), text=text)
    insert(db, "device_models", id=1, text="compute_capability=90 multiprocessors=132 name=NVIDIA H200")
    # JobSpec.name, and JobSpec.options.measure.number or flush_cache.
    add_job(db, 1, "j", b"\x0a\x01a\x2a\x04\x22\x02\x08\x07")
    add_job(db, 2, "cold", b"\x2a\x04\x22\x02\x28\x01", "failed")
    add_job(db, 3, "import", b"")
    for index, (text, variant) in enumerate(((DAG, "direct"), (OTHER_DAG, "winograd"))):
        insert(
            db, "tasks", job_id="j", task_index=index, workload_id=hashlib.sha256(text.encode()).hexdigest(),
            workload_key=KEY, dag_id=index + 1, target=TARGET, weight=2.0, description=f"task {index}",
            flop_count=1e9, reference_cost_s=0.125, alternative_of=0 if index else None, variant=variant,
            preparation="p", network="net",
        )  # fmt: skip
        insert(
            db, "computations", workload_key=KEY, workload_id=hashlib.sha256(text.encode()).hexdigest(),
            dag_id=index + 1, flop_count=1e9,
        )  # fmt: skip
    add_record(db, version, "j", 0)
    add_record(
        db, version, "j", 1, remeasured=[0.0002, 0.0004, 0.0003], confidence_s=1e-05, remeasurements=6,
        remeasured_run_s=0.75, remeasured_device="GPU-1",
    )  # fmt: skip
    add_record(db, version, "j", 2, error=5, costs=[], message="outputs differ")
    word = "register_buffering" if version >= 13 else "fragments"
    add_record(db, version, "j", 3, stopped_early=1, unchecked="constant", steps=json.dumps([["PR", 1, 2, f"{word}$8"]]))
    add_record(
        db, version, "j", 4, target="llvm -mcpu=znver4", device="EPYC", device_model_id=None,
        measured_as="call/warm/free",
    )  # fmt: skip
    add_record(db, version, "cold", 0, measured_as="")
    add_record(
        db, version, "import", 0, workload_id="", dag_id=None, device="", builder="", runner="", origin="", score=None,
        times=b"", sampled_outputs=0, device_model_id=None, target_host="llvm", layout_rewrite_option=2,
        input_names='["x"]', measured_as="", device_state=b"",
    )  # fmt: skip
    insert(
        db, "rounds", job_id="j", number=0, task_index=1, elapsed_s=4.5, trials=5, total_latency_s=0.002,
        best_s="[0.0003, 0]", search_s=0.5, report="a report",
    )  # fmt: skip
    insert(db, "scheduler", id="5ced", incarnation=7)
    insert(db, "bindings", workload_key='["other", []]', workload_id=hashlib.sha256(DAG.encode()).hexdigest())
    insert(db, "calibrations", device="NVIDIA H200", compute_capability=90, constants="c=1", fitted_s=9, report="good")
    insert(
        db, "autotvm_records", target=TARGET, task="dense.cuda", args="[1]", kwargs="{}", config_index=3, code_hash=None,
        entities="[]", costs_s="[1e-05, 3e-05]", mean_cost_s=2e-05, error=0, all_cost_s=0.5, timestamp_s=1.5,
        version=0.2, tvm_version="0.8",
    )  # fmt: skip
    insert(db, "models", name="m", created_s=11, info="{}", file=b"\x00model")
    insert(
        db, "pinned_schedules", workload_id=hashlib.sha256(DAG.encode()).hexdigest(), target=TARGET, steps="[]",
        pinned_s=12,
    )  # fmt: skip
    insert(
        db, "users", name="ada", weight=3.0, trials_per_day=1000, devices=2, jobs=4, stored_bytes=1 << 30, device_s=12.5,
        used_at_ms=4000, queue_use=2.25,
    )  # fmt: skip
    insert(
        db, "audit", id=1, at_ms=5000, user="ada", call="Scheduler.CancelJob", subject="job cold", refused="",
    )  # fmt: skip
    # Since schema 16 the importer counts; between, a trigger did.
    triggers = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")]
    if "import_shrinks" in triggers and "import_grows" not in triggers:
        insert(db, "import_counts", error=0, trials=1)


def make(name, commit, version):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kiln.db")
        db = sqlite3.connect(path)
        db.execute("PRAGMA journal_mode=WAL")
        db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        for each in range(1, version + 1):
            db.executescript(sql_of(commit, each))
        db.execute(f"PRAGMA user_version={version}")
        fill(db, version)
        db.commit()
        db.close()
        with open(path, "rb") as file:
            packed = gzip.compress(file.read(), mtime=0)
        out = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.db.gz")
        with open(out, "wb") as file:
            file.write(packed)
        print(f"{name}: {len(packed)} bytes")


if __name__ == "__main__":
    for schema in SCHEMAS:
        make(*schema)
