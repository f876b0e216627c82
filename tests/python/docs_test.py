"""Runs the blocks of Python on the pages about it, with few trials."""

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import unittest

import kiln
import numpy
from kiln import auto_scheduler

FOLDER = os.environ["KILN_TEST_FOLDER"]
PAGES = ("docs/python.md", "docs/coming-from-tvm.md", "docs/tutorial.md", "python/README.md")
# Numbers of the pages that would take long, with those that take their places.
SMALLER = (
    (r"minutes=2, trials=100_000", "trials=6"),
    (r"squeezenet_v1.1", "mlp"),
    (r"trials=\d+", "trials=2, finalists=0"),
    (r"num_measure_trials=2, finalists=0", "num_measure_trials=2"),
    (r"\b512\b", "16"),
    (r"\b256\b", "24"),
    (r"\b128\b", "8"),
)


def blocks(page):
    """The blocks of a page, made smaller."""
    with open(page, encoding="utf-8") as file:
        found = re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
    for pattern, small in SMALLER:
        found = [re.sub(pattern, small, block) for block in found]
    return found


def array(*shape):
    return numpy.ones(shape, "float32")


class DocsTest(unittest.TestCase):
    def run_page(self, page, **names):
        self.assertTrue(blocks(page))
        here = os.getcwd()
        os.chdir(FOLDER)
        try:
            for block in self.pages[page]:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(
                    io.StringIO()
                ):
                    exec(compile(block, page, "exec"), names)  # pylint: disable=exec-used
        finally:
            os.chdir(here)
        return names

    @classmethod
    def setUpClass(cls):
        cls.pages = {page: blocks(page) for page in PAGES}

    def test_python(self):
        names = self.run_page("docs/python.md", a=array(16, 24), b=array(24, 8))
        numpy.testing.assert_array_equal(names["c"], array(16, 8) * 24)

    def test_tutorial(self):
        names = self.run_page("docs/tutorial.md")
        self.assertEqual(names["before"].kernels[0].source, "untuned")
        self.assertIn("tuned", {kernel.source for kernel in names["after"].kernels})

    def test_readme_of_the_wheel(self):
        names = self.run_page("python/README.md", a=array(16, 16), b=array(16, 16))
        numpy.testing.assert_array_equal(names["c"], array(16, 16) * 16)

    def test_coming_from_tvm(self):
        out = numpy.zeros((1, 16, 7, 7), "float32")
        with kiln.local(os.path.join(FOLDER, "tvm.db"), device="cpu") as client:
            auto_scheduler.use(client)
            # A CPU has no program in CUDA.
            page = "docs/coming-from-tvm.md"
            self.pages[page] = [block.replace('"cuda"', '"schedule"') for block in self.pages[page]]
            self.run_page(
                page,
                data=array(1, 16, 7, 7),
                kernel=array(16, 16, 3, 3),
                bias=array(1, 16, 1, 1),
                out=out,
            )
        self.assertEqual(out[0, 0, 3, 3], 16 * 9 + 1)


class DocstringTest(unittest.TestCase):
    """Runs the examples of docstrings, one after the other on a farm that measures nothing."""

    def test_examples(self):
        examples = 0
        with kiln.local(os.path.join(FOLDER, "docstrings.db"), device="null") as client:
            # kiln.torch needs PyTorch, which Debian's Python does not have.
            others = ("kiln.proto", "kiln.torch", "kiln._", "kiln.libkiln")
            for module in pkgutil.walk_packages(kiln.__path__, "kiln.", lambda name: None):
                if module.name.startswith(others):
                    continue
                names = {"kiln": kiln, "client": client}
                found = doctest.DocTestFinder(exclude_empty=True).find(
                    importlib.import_module(module.name), extraglobs=names
                )
                for example in sorted(found, key=lambda each: each.lineno or 0):
                    said = io.StringIO()
                    result = doctest.DocTestRunner(verbose=False).run(example, out=said.write)
                    self.assertEqual(result.failed, 0, said.getvalue())
                    examples += result.attempted
        self.assertGreater(examples, 6)


if __name__ == "__main__":
    unittest.main()
