"""Tests of openers.py itself, on made-up files."""
import unittest

import openers


class OpenersTest(unittest.TestCase):
    def test_first_word_of_a_block_counts(self):
        text = "// Of all.\n// More.\nint a;  // Of a.\n\n// Offset.\n  // Where it is.\n"
        self.assertEqual(openers.openers("a.cc", text), [(1, "Of all.")])

    def test_blocks_are_parted_by_code_and_by_empty_lines(self):
        text = "// Fine.\n\n// Those.\nint a;\n    /// As b.\n"
        self.assertEqual([number for number, _ in openers.openers("a.h", text)], [3, 5])

    def test_hashes(self):
        text = "#!/bin/bash\n# By hand.\n#include is no comment here\n"
        self.assertEqual(openers.openers("a.sh", text), [(2, "By hand.")])
        self.assertEqual(openers.openers("a.cc", "#if Of\n"), [])

    def test_folders(self):
        self.assertEqual(openers.folder_of("a/b/c/d.h"), "a/b")
        self.assertEqual(openers.folder_of("a/d.h"), "a")
        self.assertEqual(openers.folder_of("d.h"), ".")

    def test_limits_print_and_parse_back(self):
        limits = {"a/b": 3, "c": 1}
        self.assertEqual(openers.read_limits(openers.write_limits(limits | {"none": 0})), limits)

    def test_a_count_may_neither_rise_nor_stay_below_its_limit(self):
        self.assertEqual(list(openers.problems({"a": 2, "new": 0}, {"a": 2})), [])
        self.assertIn("2 comments begin", next(openers.problems({"a": 2}, {"a": 1})))
        self.assertIn("1 comments begin", next(openers.problems({"new": 1}, {})))
        self.assertIn("lower it", next(openers.problems({"a": 0}, {"a": 1})))
        self.assertIn("lower it", next(openers.problems({}, {"gone": 1})))


if __name__ == "__main__":
    unittest.main()
