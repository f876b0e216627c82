"""Models of ONNX that Python writes, as the program reads them."""

import os
import tempfile
import unittest

import kiln
import numpy
from kiln.onnx.model_file import OnnxModel


def model(weights):
    """y = relu(x @ w + 0.5), and what is where in x."""
    made = OnnxModel()
    made.input("x", "float32", (2, 3))
    made.constant("w", "float32", weights.shape, weights)
    made.constant("half", "float32", (), numpy.float32(0.5).tobytes())
    made.node("MatMul", ["x", "w"], ["product"], "product")
    made.node("Add", ["product", "half"], ["sum"], "sum")
    made.node("Relu", ["sum"], ["y"], "y")
    made.node("Transpose", ["x"], ["t"], "t", perm=[1, 0])
    made.node("LeakyRelu", ["t"], ["z"], "z", alpha=0.25)
    made.output("y", "float32", (2, weights.shape[1]))
    made.output("z", "float32", (3, 2))
    return made


class OnnxTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.client = kiln.local(os.path.join(self.folder, "onnx.db"), device="cpu")
        self.addCleanup(self.client.close)

    def check(self, weights):
        path = model(weights).write(self.folder)
        net = self.client.compile(path, target="llvm")
        x = numpy.array([[1, -2, 3], [-4, 5, -6]], "float32")
        y, z = net(x)
        numpy.testing.assert_allclose(y, numpy.maximum(x @ weights + 0.5, 0), rtol=1e-5, atol=1e-5)
        numpy.testing.assert_allclose(z, numpy.where(x.T < 0, 0.25 * x.T, x.T))

    def test_weights_in_the_model(self):
        self.check(numpy.arange(12, dtype="float32").reshape(3, 4) - 5)
        self.assertEqual(os.path.getsize(os.path.join(self.folder, "model.weights")), 0)

    def test_weights_beside_the_model(self):
        self.check(numpy.sin(numpy.arange(3 * 400, dtype="float32")).reshape(3, 400))
        self.assertEqual(os.path.getsize(os.path.join(self.folder, "model.weights")), 4800)

    def test_a_digest_names_what_is_computed(self):
        zeros = numpy.zeros((3, 4), "float32")
        self.assertEqual(model(zeros).digest(), model(zeros + 1).digest())
        self.assertNotEqual(model(zeros).digest(), model(zeros[:, :3]).digest())

    def test_what_the_reader_says_of_a_wrong_model(self):
        made = OnnxModel()
        made.input("x", "float32", (2, 3))
        made.node("Nothing", ["x"], ["y"], "odd")
        made.output("y", "float32", (2, 3))
        with self.assertRaisesRegex(kiln.KilnError, "Nothing"):
            self.client.compile(made.write(self.folder), target="llvm")


if __name__ == "__main__":
    unittest.main()
