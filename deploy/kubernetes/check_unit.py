"""Tests of check.py: on the manifests as they are, and on copies with one mistake each."""
import pathlib
import shutil
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import check  # noqa: E402


class CheckTest(unittest.TestCase):
    def found(self, name, old, new):
        """What check.py says of a copy in which a text of a file is another one."""
        with tempfile.TemporaryDirectory() as at:
            folder = pathlib.Path(at) / "kubernetes"
            folder.mkdir()
            for path in [*HERE.glob("*.yaml"), HERE / "kiln.toml", HERE / "secrets.sh"]:
                shutil.copy(path, folder)
            text = (folder / name).read_text()
            self.assertIn(old, text)
            (folder / name).write_text(text.replace(old, new, 1))
            return check.wrong(folder)

    def test_the_manifests_are_right(self):
        self.assertEqual(check.wrong(HERE), [])

    def test_files_are_named_and_there(self):
        self.assertIn("kustomization.yaml names runer.yaml, which is not there",
                      self.found("kustomization.yaml", "- runner.yaml", "- runer.yaml"))
        self.assertIn("kustomization.yaml does not name runner.yaml",
                      self.found("kustomization.yaml", "  - runner.yaml\n", ""))

    def test_labels_fit_selectors(self):
        label = "    metadata:\n      labels:\n        app.kubernetes.io/component: tracker"
        self.assertIn("tracker.yaml: Deployment kiln-tracker: its selector does not fit its pods",
                      self.found("tracker.yaml", label, label + "s"))

    def test_names_within_pods_are_there(self):
        self.assertIn("builder.yaml: Deployment kiln-builder: builder mounts cofig, which is no volume",
                      self.found("builder.yaml", "{name: config, mountPath", "{name: cofig, mountPath"))
        self.assertIn("builder.yaml: Deployment kiln-builder: secrets.sh does not make kiln-keys-bilder",
                      self.found("builder.yaml", "kiln-keys-builder", "kiln-keys-bilder"))
        self.assertIn("builder.yaml: Deployment kiln-builder: there is no kiln-cofig",
                      self.found("builder.yaml", "{name: kiln-config}", "{name: kiln-cofig}"))
        self.assertIn("builder.yaml: Deployment kiln-builder: the startupProbe of builder is of a port that it does not have",
                      self.found("builder.yaml", "port: pages, scheme", "port: page, scheme"))

    def test_ports_are_those_of_the_configuration(self):
        self.assertIn("Service kiln-scheduler: kiln.toml gives the scheduler no port 9290",
                      self.found("kiln.toml", "0.0.0.0:9290", "0.0.0.0:9299"))


if __name__ == "__main__":
    unittest.main()
