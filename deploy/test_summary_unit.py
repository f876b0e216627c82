"""Tests of test_summary.py on made-up events, of the form that bazel 4 writes."""
import os
import tempfile
import unittest

import test_summary

GOOD = '<testsuites><testsuite><testcase name="a" status="run" classname="S"/></testsuite></testsuites>'
MIXED = """<testsuites><testsuite>
<testcase name="good" status="run" classname="S"/>
<testcase name="bad" status="run" classname="S"><failure message="x"/></testcase>
<testcase name="skipped" status="run" classname="S"><skipped message="x"/></testcase>
<testcase name="off" status="notrun" classname="S"/>
</testsuite></testsuites>"""


class SummaryTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.files = 0

    def result(self, label, xml, attempt=1, shard=1):
        outputs = []
        if xml is not None:
            self.files += 1
            path = os.path.join(self.folder.name, f"with space {self.files}.xml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(xml)
            outputs = [{"name": "test.log", "uri": "file:///log"},
                       {"name": "test.xml", "uri": "file://" + path.replace(" ", "%20")}]
        return {"id": {"testResult": {"label": label, "run": 1, "shard": shard, "attempt": attempt}},
                "testResult": {"testActionOutput": outputs}}

    def target(self, label, status, *xmls):
        return [self.result(label, xml, shard=i) for i, xml in enumerate(xmls)] + [
            {"id": {"targetCompleted": {"label": label}}, "completed": {"success": True}},
            {"id": {"testSummary": {"label": label}}, "testSummary": {"overallStatus": status}}]

    def check(self, events, passed, failed, skipped, exit_status=0):
        summary = test_summary.summarize(events, exit_status)
        self.assertEqual((summary.passed, summary.failed, summary.skipped), (passed, failed, skipped))

    def test_counts_cases(self):
        events = self.target("//a:a", "PASSED", GOOD) + self.target("//b:b", "FAILED", MIXED)
        self.check(events, 2, ["//b:b S.bad"], 2, exit_status=3)

    def test_counts_all_shards(self):
        self.check(self.target("//a:a", "PASSED", GOOD, GOOD), 2, [], 0)

    def test_only_the_last_attempt_counts(self):
        events = [self.result("//a:a", MIXED, 1), self.result("//a:a", GOOD, 2)]
        self.check(events + self.target("//a:a", "FLAKY"), 1, [], 0)

    def test_a_timeout_without_failed_case_is_a_failure(self):
        self.check(self.target("//a:a", "TIMEOUT", GOOD), 1, ["//a:a TIMEOUT"], 0, exit_status=3)
        self.check(self.target("//a:a", "TIMEOUT", None), 0, ["//a:a TIMEOUT"], 0, exit_status=3)

    def test_no_or_broken_xml_is_a_failure(self):
        self.check(self.target("//a:a", "PASSED", None), 0, ["//a:a left no test.xml"], 0)
        self.check(self.target("//a:a", "PASSED", "<tes"), 0, ["//a:a left no test.xml"], 0)

    def test_what_does_not_build_is_a_failure(self):
        events = [{"id": {"targetCompleted": {"label": "//a:a"}}, "completed": {}},
                  {"id": {"testSummary": {"label": "//a:a"}}, "testSummary": {"overallStatus": "NO_STATUS"}}]
        self.check(events, 0, ["//a:a failed to build"], 0, exit_status=1)

    def test_what_does_not_fit_the_machine_is_skipped(self):
        events = [{"id": {"targetCompleted": {"label": "//a:a"}}, "aborted": {"reason": "SKIPPED"}}]
        self.check(events, 0, [], 1)
        events = [{"id": {"targetCompleted": {"label": "//a:a"}}, "aborted": {"reason": "ANALYSIS_FAILURE"}}]
        self.check(events, 0, ["//a:a failed to load or build"], 0)

    def test_a_failure_without_events_is_one(self):
        self.check([], 0, ["bazel, with exit status 4"], 0, exit_status=4)


if __name__ == "__main__":
    unittest.main()
