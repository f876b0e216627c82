#!/usr/bin/python3
"""Prints what failed, and as the last line 'N passed, N failed, N skipped' for one `bazel test`.

usage: test_summary.py EVENTS [EXIT_STATUS]

EVENTS is what bazel wrote to --build_event_json_file. bazel's own closing lines count targets; this counts the cases
in the test.xml files that the events name: those of this run, cached ones included, and no stale ones. A target that
does not build, times out or leaves no failed case behind though it failed counts as one failed case.
EXIT_STATUS is bazel's: not zero means that something has failed even if no event tells what.
"""
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ET


class Summary:
    def __init__(self):
        self.passed = self.skipped = 0
        # Descriptions of the failures.
        self.failed = []

    def add_case(self, label, case):
        if case.find("failure") is not None or case.find("error") is not None:
            name = ".".join(filter(None, [case.get("classname"), case.get("name")]))
            self.failed.append(f"{label} {name}")
            return False
        if case.find("skipped") is not None or case.get("status") == "notrun":
            self.skipped += 1
        else:
            self.passed += 1
        return True

    def add_target(self, label, xml_paths, status):
        """The cases of one test target; `status` as bazel names it."""
        all_good = True
        cases = 0
        for path in xml_paths:
            try:
                root = ET.parse(path).getroot()
            except (OSError, ET.ParseError):
                continue
            for case in root.findall(".//testcase"):
                cases += 1
                all_good &= self.add_case(label, case)
        good_status = status in ("PASSED", "FLAKY")
        if all_good and (not good_status or cases == 0):
            self.failed.append(f"{label} {'left no test.xml' if good_status else status}")


def read_events(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                # Bazel was killed while it wrote.
                return


def xml_of(result):
    for output in result.get("testActionOutput", []):
        if output.get("name") == "test.xml":
            return urllib.parse.unquote(urllib.parse.urlparse(output["uri"]).path)
    return None


def summarize(events, exit_status):
    # Maps a label to {(run, shard): (attempt, path of test.xml)}.
    results = {}
    # Maps a label to its overall status.
    statuses = {}
    # Maps a label to the reason why it was not built.
    unbuilt = {}
    for event in events:
        kind, ident = next(iter(event["id"].items()), (None, {}))
        label = ident.get("label") if isinstance(ident, dict) else None
        if kind == "testResult" and "testResult" in event:
            where = (ident.get("run", 0), ident.get("shard", 0))
            attempt = ident.get("attempt", 0)
            last = results.setdefault(label, {})
            if attempt >= last.get(where, (0, None))[0]:
                last[where] = (attempt, xml_of(event["testResult"]))
        elif kind == "testSummary" and "testSummary" in event:
            statuses[label] = event["testSummary"].get("overallStatus", "NO_STATUS")
        elif kind == "targetCompleted" and "completed" in event:
            if not event["completed"].get("success"):
                unbuilt[label] = "failed to build"
        elif kind in ("targetCompleted", "targetConfigured", "unconfiguredLabel", "configuredLabel"):
            if "aborted" in event:
                skipped = event["aborted"].get("reason") == "SKIPPED"
                unbuilt.setdefault(label, None if skipped else "failed to load or build")

    summary = Summary()
    for label in sorted(set(results) | set(statuses) - set(unbuilt)):
        paths = [path for _, path in results.get(label, {}).values() if path]
        summary.add_target(label, paths, statuses.get(label, "NO_STATUS"))
    for label in sorted(set(unbuilt) - set(results)):
        if unbuilt[label] is None:
            summary.skipped += 1
        else:
            summary.failed.append(f"{label} {unbuilt[label]}")
    if exit_status != 0 and not summary.failed:
        summary.failed.append(f"bazel, with exit status {exit_status}")
    return summary


def main():
    exit_status = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    summary = summarize(read_events(sys.argv[1]), exit_status)
    for description in summary.failed:
        print(f"failed: {description}")
    print(f"{summary.passed} passed, {len(summary.failed)} failed, {summary.skipped} skipped")
    return 1 if summary.failed or not summary.passed else 0


if __name__ == "__main__":
    sys.exit(main())
