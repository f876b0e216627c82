#!/usr/bin/python3
"""Unit tests of exposition.py."""
import unittest

import exposition

TEXT = """# HELP kiln_a_total A.
# TYPE kiln_a_total counter
kiln_a_total{x="1",y="q\\"},{"} 3
# HELP kiln_b_seconds B.
# TYPE kiln_b_seconds histogram
kiln_b_seconds_bucket{le="+Inf"} 2
kiln_b_seconds_sum 0.5
kiln_b_seconds_count 2
"""


class ExpositionTest(unittest.TestCase):
    def test_parses_samples(self):
        types, samples = exposition.parse(TEXT)
        self.assertEqual(types, {"kiln_a_total": "counter", "kiln_b_seconds": "histogram"})
        self.assertEqual(samples[0], ("kiln_a_total", {"x": "1", "y": 'q\\"},{'}, 3))
        self.assertEqual(samples[1][1], {"le": "+Inf"})

    def test_refuses_other_texts(self):
        for text in ("kiln_a 1\n", "# HELP kiln_a A.\n# TYPE kiln_a gauge\nkiln_a one\n", "junk\n",
                     "# HELP kiln_a A.\n# TYPE kiln_a gauge\nkiln_a{x=1} 1\n", "# TYPE kiln_a gauge\nkiln_a 1\n",
                     "# HELP kiln_a A.\n# TYPE kiln_a gauge\n# TYPE kiln_a gauge\nkiln_a 1\n"):
            with self.assertRaises(ValueError, msg=text):
                exposition.parse(text)

    def test_conventions(self):
        self.assertEqual(list(exposition.conventions({"kiln_a_total": "counter", "kiln_b_seconds": "histogram"})), [])
        for wrong in ({"a_total": "counter"}, {"kiln_a": "counter"}, {"kiln_a_total": "gauge"}, {"kiln_a_ms": "gauge"}):
            self.assertNotEqual(list(exposition.conventions(wrong)), [], wrong)

    def test_reads_the_page(self):
        page = "| figure | kind | labels | shown | meaning |\n|---|---|---|---|---|\n" \
               "| `kiln_a_total` | counter | `x`, `y` | always | A |\n| `kiln_b` | gauge | | with keys | B |\n"
        self.assertEqual(exposition.documented(page), {"kiln_a_total": ("counter", {"x", "y"}, "always"),
                                                       "kiln_b": ("gauge", set(), "with keys")})

    def test_names_in_expressions(self):
        dashboard = '{"panels": [{"title": "P", "targets": [{"expr": "rate(kiln_b_seconds_bucket[1m])"}]}, {"title": "R"}]}'
        alerts = "  - alert: A\n    expr: kiln_a_total{x=\"kiln_none\"} > 0\n  - alert: B\n    expr: >-\n      kiln_c / 2\n"
        places = exposition.expressions(dashboard, alerts)
        self.assertEqual([place for place, _ in places], ["panel 'P'", "alert A", "alert B"])
        self.assertEqual(list(exposition.unknown_names(places, {"kiln_a_total", "kiln_b_seconds"})), ["alert B: kiln_c"])


if __name__ == "__main__":
    unittest.main()
