"""Tests of attacks.py itself, on a made-up tree and page."""
import pathlib
import tempfile
import unittest

import attacks

BUILD = """kiln_test(
    name = "a_test",
    deps = [":x"],
)

cc_test(
    name = "b_test",
    size = "small",
    srcs = [
        "b_faults_test.cc",
        "b_test.cc",
    ],
)
"""
HEAD = "| attack | result | test |\n|---|---|---|\n"


class AttacksTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "rpc").mkdir()
        (self.root / "rpc/BUILD.bazel").write_text(BUILD)
        (self.root / "rpc/a_test.cc").write_text("TEST_F(A, One) {}\nTEST(A,\n     LongName) {}\n")
        (self.root / "rpc/b_faults_test.cc").write_text("TEST_P(B, Two) {}\n")
        (self.root / "rpc/b_test.cc").write_text("")

    def check(self, cell):
        return list(attacks.missing(self.root, f"{HEAD}| x | `EPERM` | {cell} |\n"))

    def test_good(self):
        self.assertEqual(self.check("`//rpc:a_test` `A.One` `A.LongName`; `//rpc:b_test` `B.Two`"), [])

    def test_missing(self):
        self.assertEqual(self.check("`//rpc:a_test` `A.Gone`"), [(3, "A.Gone")])
        self.assertEqual(self.check("`//rpc:a_test` `B.Two`"), [(3, "B.Two")])
        self.assertEqual(self.check("`//rpc:c_test` `A.One`"), [(3, "//rpc:c_test")])
        self.assertEqual(self.check("`//gone:a_test`"), [(3, "//gone:a_test")])
        self.assertEqual(self.check("by hand"), [(3, "a test")])


if __name__ == "__main__":
    unittest.main()
