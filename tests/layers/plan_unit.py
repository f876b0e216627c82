"""Tests of plan.py itself, on made-up trees and includes."""
import os
import tempfile
import unittest

import layers
import plan


def top(path):
    return path.split("/")[0]


class PlanTest(unittest.TestCase):
    def test_layers_follow_from_includes(self):
        rows = plan.plan([("a/x.h", []), ("b/x.h", ["a/x.h", "b/y.h"]), ("c/x.h", ["b/x.h", "a/x.h"]),
                          ("c/y.h", ["a/x.h", "d/x.h"])], top)
        self.assertEqual([(row["layer"], row["folder"], row["files"], row["includes"]) for row in rows],
                         [(0, "a", 1, {}), (0, "d", 0, {}), (1, "b", 1, {"a": 1}), (2, "c", 2, {"a": 2, "b": 1, "d": 1})])
        self.assertEqual(plan.summary("folders", rows),
                         "4 folders on 3 layers, 4 dependencies by 5 includes; upward: none")

    def test_includes_of_a_cycle_run_upward(self):
        rows = plan.plan([("a/x.h", []), ("b/x.h", ["a/x.h", "c/x.h"]), ("c/x.h", ["d/x.h"]), ("d/x.h", ["b/x.h", "b/y.h"]),
                          ("e/x.h", ["d/x.h"])], top)
        self.assertEqual({row["folder"]: row["upward"] for row in rows},
                         {"a": {}, "b": {"c": 1}, "c": {"d": 1}, "d": {"b": 2}, "e": {}})
        self.assertTrue(plan.summary("folders", rows).endswith("upward: c -> d (1), d -> b (2), b -> c (1)"))

    def test_lines_of_the_table(self):
        rows = plan.plan([("longer/x.h", ["a/x.h"]), ("a/x.h", [])], top)
        self.assertEqual(list(plan.table(rows)), ["layer  files  folder  includes from",
                                                  "    0      1  a",
                                                  "    1      1  longer  a 1"])
        self.assertEqual(plan.plan([], top), [])

    def test_tests_and_libraries_are_left_out(self):
        files = {
            "base/log.h": "#include <spdlog/spdlog.h>\n#include <vector>\n",
            "store/wire/rows.cc": '#include "base/log.h"\n#include "store/store.h"\n',
            "store/store.h": '#include "base/log.h"\n',
            "base/log_test.cc": '#include "store/store.h"\n',
            "tests/faults/kill.cc": '#include "base/log.h"\n',
        }
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            rows = plan.plan(plan.product_includes(root), layers.layer_of)
        self.assertEqual({row["folder"]: row["includes"] for row in rows},
                         {"base": {}, "store": {"base": 1}, "store/wire": {"base": 1, "store": 1}})


if __name__ == "__main__":
    unittest.main()
