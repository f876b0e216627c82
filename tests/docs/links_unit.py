"""Tests of links.py itself, on made-up pages."""
import os
import tempfile
import unittest

import links


class LinksTest(unittest.TestCase):
    def check(self, pages):
        """What is wrong with the first of {path: text}."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in pages.items():
                os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            first = os.path.join(root, next(iter(pages)))
            return [problem.replace(root + "/", "") for problem in links.problems(first)]

    def test_good(self):
        self.assertEqual(
            self.check({
                "a.md": "# One\n[b](b.md) [its part](sub/c.md#the-end-of-it-all) [here](#one) [far](https://x.org/y)\n",
                "b.md": "",
                "sub/c.md": "## The end, of `it` all\n",
            }), [])

    def test_no_file(self):
        self.assertEqual(self.check({"a.md": "\n[b](b.md)\n"}), ["a.md:2: there is no b.md"])

    def test_no_heading(self):
        self.assertEqual(self.check({"a.md": "[b](b.md#two)\n", "b.md": "# One\n"}),
                         ["a.md:1: b.md has no heading #two"])

    def test_several_on_a_line(self):
        self.assertEqual(len(self.check({"a.md": "[b](b.md) and [c](c.md), not [d](a.md)\n"})), 2)


if __name__ == "__main__":
    unittest.main()
