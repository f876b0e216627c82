#!/usr/bin/python3
"""Starts a farm with keys, runs a job, and checks the pages of its daemons.

usage: farm_metrics.py KILN WORKSPACE

Each daemon's /metrics has the form that Prometheus reads, and names by its conventions. docs/metrics.md lists what
they show, and nothing else. The dashboard and the alerts in deploy/ ask for nothing that nobody shows. Callers
without a right are refused.
"""
import json
import os
import pathlib
import sys
import tempfile
import time

import exposition
from tls_farm import Farm, get

problems = []


def expect(good, sentence):
    if not good:
        problems.append(sentence)


def check_figures(texts, workspace):
    shown, labels = {}, {}
    for daemon, text in texts.items():
        types, samples = exposition.parse(text)
        for sentence in exposition.conventions(types):
            problems.append(f"{daemon}: {sentence}")
        for name, kind in types.items():
            expect(shown.setdefault(name, kind) == kind, f"{daemon}: {name} is a {kind} and a {shown[name]}")
        for name, of_sample, _ in samples:
            labels.setdefault(exposition.family(name, types), set()).update(set(of_sample) - {"le"})
    page = (workspace / "docs/metrics.md").read_text()
    documented = exposition.documented(page)
    for name in sorted(set(shown) - set(documented)):
        problems.append(f"{name} has no row in docs/metrics.md")
    for name, (kind, of_page, when) in documented.items():
        expect(name in shown or when != "always", f"docs/metrics.md says that {name} is shown always")
        expect(shown.get(name, kind) == kind, f"docs/metrics.md: {name} is a {shown.get(name)}")
        expect(labels.get(name, of_page) == of_page, f"docs/metrics.md: {name} has the labels {labels.get(name)}")
    places = exposition.expressions((workspace / "deploy/grafana/kiln.json").read_text(),
                                    (workspace / "deploy/prometheus/alerts.yml").read_text())
    expect(len(places) > 50, f"{len(places)} expressions")
    problems.extend(exposition.unknown_names(places, documented))


def check_counts(texts, trials):
    _, samples = exposition.parse(texts["scheduler"])
    values = {(name, labels.get("error"), labels.get("state")): value for name, labels, value in samples}
    counted = sum(value for (name, _, _), value in values.items() if name == "kiln_trials_total")
    expect(counted == trials, f"kiln_trials_total counts {counted} trials, expected {trials}")
    expect(values.get(("kiln_jobs_ended_total", None, "succeeded")) == 1, "one job has ended")
    _, samples = exposition.parse(texts["runner null"])
    measured = sum(value for name, _, value in samples if name == "kiln_runner_trials_total")
    expect(measured >= trials, f"the runner counts {measured} trials, expected {trials} or more")


def check_callers(farm, pages, reader):
    other = Farm(farm.kiln, farm.folder / "other")
    farm.run("keys", "init", "--authority", other.keys)
    stranger = other.issue("stranger", "admin")
    for daemon, address in pages.items():
        for who, keys in (("nobody", None), ("a stranger", stranger)):
            status, text = get(address, "/metrics", reader, keys)
            expect(status == 401 and "kiln keys issue" in text, f"{daemon} tells {who} {status} {text}")
            status, text = get(address, "/healthz", reader, keys)
            expect((status, text) == (200, "ok\n"), f"the health of the {daemon} for {who} is {status} {text}")
        status, _ = get(address, "/metrics", reader, None, {"Authorization": "Bearer 0123456789abcdef"})
        expect(status == 401, f"{daemon} takes a secret beside keys")
    farm.run("keys", "revoke", "reader", "--authority", farm.keys)
    for daemon, address in pages.items():
        for _ in range(600):
            status, text = get(address, "/metrics", reader, reader)
            if status == 401:
                break
            time.sleep(0.1)
        expect(status == 401 and "was revoked" in text, f"{daemon} tells a revoked reader {status}")


def main(kiln, workspace):
    trials = 24
    with tempfile.TemporaryDirectory() as folder, Farm(kiln, pathlib.Path(folder) / "farm") as farm:
        farm.run("tune", "matmul", "--args", "16,16,16", "--target", "null", "--trials", trials, "--policy", "sketch.random",
                 *farm.user())
        pages, reader = farm.pages(), farm.issue("reader", "read")
        texts = {}
        for daemon, address in pages.items():
            status, texts[daemon] = get(address, "/metrics", reader, reader)
            expect(status == 200, f"{daemon}: {status} {texts[daemon]}")
        check_figures(texts, workspace)
        check_counts(texts, trials)
        _, targets = get(pages["tracker"], "/sd", reader, reader)
        found = {target for entry in json.loads(targets) for target in entry["targets"]}
        expected = {address for daemon, address in pages.items() if daemon != "scheduler"}
        expect(found == expected, f"/sd has {found}, expected {expected}")
        check_callers(farm, pages, reader)
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2])))
