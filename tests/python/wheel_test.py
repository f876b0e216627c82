"""usage: wheel_test.py FOLDER, with a wheel in it"""

import base64
import configparser
import csv
import email
import glob
import hashlib
import os
import subprocess
import sys
import unittest
import zipfile

FOLDER = sys.argv.pop(1)
(WHEEL,) = glob.glob(os.path.join(FOLDER, "*.whl"))
SITE = os.path.join(FOLDER, "site")


def unpack():
    """Unpacks as pip does: files keep the right to be run."""
    with zipfile.ZipFile(WHEEL) as archive:
        for entry in archive.infolist():
            path = archive.extract(entry, SITE)
            if entry.external_attr >> 16 & 0o111:
                os.chmod(path, 0o755)


def read(name):
    with zipfile.ZipFile(WHEEL) as archive:
        return archive.read(name)


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        unpack()

    def run_python(self, code):
        environment = {**os.environ, "PYTHONPATH": SITE}
        return subprocess.run(
            [sys.executable, "-c", code], cwd=FOLDER, env=environment, check=False, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        ).stdout

    def test_its_name_says_where_it_fits(self):
        self.assertEqual(os.path.basename(WHEEL), "kiln-1-py3-none-linux_x86_64.whl")
        self.assertIn(b"Tag: py3-none-linux_x86_64\n", read("kiln-1.dist-info/WHEEL"))
        self.assertIn(b"Root-Is-Purelib: false\n", read("kiln-1.dist-info/WHEEL"))

    def test_the_record_is_of_all_files(self):
        lines = list(csv.reader(read("kiln-1.dist-info/RECORD").decode().splitlines()))
        with zipfile.ZipFile(WHEEL) as archive:
            self.assertEqual([line[0] for line in lines], archive.namelist())
        for name, digest, size in lines[:-1]:
            content = read(name)
            found = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            self.assertEqual((digest, size), (f"sha256={found}", str(len(content))))
        self.assertEqual(lines[-1][1:], ["", ""])

    def test_metadata(self):
        found = email.message_from_bytes(read("kiln-1.dist-info/METADATA"))
        self.assertEqual((found["Name"], found["Requires-Python"]), ("kiln", ">=3.10"))
        needs = found.get_all("Requires-Dist")
        self.assertIn("grpcio>=1.51", needs)
        self.assertIn('torch>=2.4 ; extra == "torch"', needs)
        for extra in ("torch", "onnx", "pandas", "matplotlib", "jupyter", "apache-tvm-ffi", "cuda"):
            self.assertIn(extra, found.get_all("Provides-Extra"))
        self.assertIn("kiln.local()", found.get_payload())

    def test_the_package_has_all_that_it_needs(self):
        with zipfile.ZipFile(WHEEL) as archive:
            names = set(archive.namelist())
        for name in ("py.typed", "bin/kiln", "libkiln_runtime.so", "_caller.abi3.so",
                     "te/__init__.py", "farm/client.py", "proto/scheduler_pb2.py",
                     "proto/scheduler_pb2.pyi"):
            self.assertIn(f"kiln/{name}", names)
        self.assertFalse([name for name in names if "__pycache__" in name or "BUILD" in name])

    def test_it_declares_and_loads(self):
        said = self.run_python("import kiln; print(kiln.op('matmul', 8, 8, 8).flop_count)")
        self.assertEqual(said, "1024.0\n")
        self.assertIn("Kiln runtime", self.run_python("import kiln; print(kiln.version())"))

    def test_the_command(self):
        scripts = configparser.ConfigParser()
        scripts.read_string(read("kiln-1.dist-info/entry_points.txt").decode())
        module, function = scripts["console_scripts"]["kiln"].split(":")
        code = f"import sys, {module}; sys.argv = ['kiln', 'version']; {module}.{function}()"
        self.assertRegex(self.run_python(code), "^kiln 1")

    def test_the_command_advises_by_its_own_name(self):
        command = os.path.join(FOLDER, "kiln")
        with open(command, "w", encoding="utf-8") as file:
            file.write(f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {SITE!r})\n"
                       "from kiln.farm.program import main\nmain()\n")
        os.chmod(command, 0o755)
        words = ["tune", "matmul", "--args", "8,8,8", "--target", "null", "--trials", "2"]
        # Bazel puts the current folder into the path of a test.
        rest = [part for part in os.environ["PATH"].split(os.pathsep) if os.path.isabs(part)]
        for name, path in (("kiln", [FOLDER, *rest]), (command, rest)):
            environment = {**os.environ, "PATH": os.pathsep.join(path)}
            said = subprocess.run([name, *words], cwd=FOLDER, env=environment,
                                  check=True, text=True, stdout=subprocess.PIPE).stdout
            self.assertIn(f"{name} show ", said)

    def test_torch_finds_the_backend(self):
        groups = configparser.ConfigParser()
        groups.read_string(read("kiln-1.dist-info/entry_points.txt").decode())
        module, name = groups["torch_dynamo_backends"]["kiln"].split(":")
        self.assertIn(f"\ndef {name}(".encode(), read(module.replace(".", "/") + ".py"))


if __name__ == "__main__":
    unittest.main()
