"""Tests of paths.py itself, on made-up trees and pages."""
import unittest

import paths

FILES = ["base/status.h", "compiler/schedule/steps/steps.h", "costmodel/cost_model.cc", "costmodel/cost_model.h",
         "graph/ops/pool_test.cc", "README.md", "third_party/fmt.BUILD"]


class PathsTest(unittest.TestCase):
    def check(self, text):
        """The missing paths of a page."""
        return list(paths.missing(paths.Tree(FILES), text))

    def test_good(self):
        self.assertEqual(self.check(
            "`base/status.h` `base` `base/` `compiler/schedule` `steps/steps.h` `pool_test.cc` `graph/ops/`\n"
            "`costmodel/cost_model.{h,cc}` `graph/ops/*_test.cc` `base/status.h --update` `(steps.h, status.h)`\n"
            "`//base:status` `//compiler/schedule/...` `third_party/NAME.BUILD` `graph/ops/<family>_test.cc`\n"), [])

    def test_missing(self):
        self.assertEqual(
            self.check("A `base/gone.h`,\nor `gone.h` or\n`cost_model.{h,cc,py}`, `graph/*_fuzz.cc`\n\n`//base/gone:x`\n"
                       "`python3\nbase/script`, `graph/NAME_bench.cc`\n"),
            [(1, "base/gone.h"), (2, "gone.h"), (3, "cost_model.py"), (3, "graph/*_fuzz.cc"), (5, "//base/gone:x"),
             (6, "base/script"), (7, "graph/*_bench.cc")])

    def test_a_part_of_a_name_is_no_end_of_a_path(self):
        self.assertEqual(self.check("`us.h` `ops/steps.h`\n"), [(1, "us.h"), (1, "ops/steps.h")])

    def test_other_words_are_left_alone(self):
        self.assertEqual(self.check(
            "base/gone.h `N/2` `cuda/sm_90` `<cuda_fp16.h>` `/proc` `mine.sched` `$PWD/base/gone` `a.load(x)`\n"
            "```\n`base/gone.h`\n```\n"), [])


if __name__ == "__main__":
    unittest.main()
