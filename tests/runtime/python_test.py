"""usage: python_test.py FOLDER, with the files of make_network"""
import array
import gc
import os
import sys
import threading
import unittest

import kiln
import kiln.arrays

try:
    import numpy
except ImportError:
    numpy = None

FOLDER = sys.argv.pop(1)
PATH = os.path.join(FOLDER, "net.kiln")
with open(os.path.join(FOLDER, "expected.txt"), encoding="utf-8") as file:
    X, Y, HIDDEN = [[float(word) for word in line.split()] for line in file]


def shaped(values, shape=(8, 16)):
    """Without numpy."""
    return memoryview(array.array("f", values)).cast("B").cast("f", shape)


def flat(output):
    if numpy is not None and isinstance(output, numpy.ndarray):
        return output.ravel().tolist()
    return memoryview(output).cast("B").cast("f").tolist()


class FakeDLPack:
    """A producer of DLPack capsules beside numpy."""

    def __init__(self, values, shape, device=(1, 0)):
        self.held = kiln.arrays.hold(shaped(values, shape))
        self.device = device
        self.made = 0

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.made += 1
        new = kiln.arrays.ctypes.pythonapi.PyCapsule_New
        new.restype = kiln.arrays.ctypes.py_object
        new.argtypes = [kiln.arrays.ctypes.c_void_p, kiln.arrays.ctypes.c_char_p, kiln.arrays.ctypes.c_void_p]
        return new(kiln.arrays.ctypes.addressof(self.held.tensor), b"dltensor", None)


class NetworkTest(unittest.TestCase):
    def setUp(self):
        self.net = kiln.load(PATH, threads=2, pin=False)

    def check(self, outputs):
        for got, want in zip(outputs, (Y, HIDDEN), strict=True):
            got = flat(got)
            self.assertEqual(len(got), len(want))
            for one, other in zip(got, want):
                self.assertAlmostEqual(one, other, delta=1e-4)

    def test_describes(self):
        self.assertEqual(self.net.inputs, [kiln.Tensor("x", "float32", (8, 16))])
        self.assertEqual([t.name for t in self.net.outputs], ["y", "hidden"])
        self.assertEqual(
            repr(self.net),
            "<kiln.Network (x: float32[8, 16]) -> (y: float32[8, 8], hidden: float32[8, 8]) on cpu>",
        )
        self.assertEqual([k.name for k in self.net.kernels], [f"kernel{i}" for i in range(4)])
        self.assertEqual(kiln.version(), "Kiln runtime, ABI 1, files of version 1")

    def test_calls_with_a_buffer(self):
        self.check(self.net(shaped(X)))
        self.check(self.net(x=shaped(X)))

    def test_calls_with_bytes_that_are_read_only(self):
        self.check(self.net(shaped(X).toreadonly()))

    def test_calls_with_dlpack(self):
        x = FakeDLPack(X, (8, 16))
        self.check(self.net(x))
        self.assertEqual(x.made, 1)

    def test_runs_into_arrays_of_the_callers(self):
        y, hidden = shaped([0.0] * 64, (8, 8)), shaped([0.0] * 64, (8, 8))
        self.net.run([shaped(X)], [y, hidden])
        self.check((y, hidden))

    @unittest.skipIf(numpy is None, "no numpy")
    def test_calls_with_numpy(self):
        x = numpy.array(X, dtype="float32").reshape(8, 16)
        outputs = self.net(x)
        self.assertEqual(outputs[0].shape, (8, 8))
        self.check(outputs)
        x.flags.writeable = False
        self.check(self.net(x))
        with self.assertRaisesRegex(kiln.KilnError, "not contiguous"):
            self.net(numpy.asfortranarray(x))
        with self.assertRaisesRegex(kiln.KilnError, "its dtype is float64, expected float32"):
            self.net(x.astype("float64"))

    def test_refuses_what_does_not_fit(self):
        with self.assertRaisesRegex(kiln.KilnError, r"its shape is \[16, 8\], expected \[8, 16\]"):
            self.net(shaped(X, (16, 8)))
        with self.assertRaisesRegex(kiln.KilnError, "its dtype is int32, expected float32"):
            self.net(memoryview(bytes(512)).cast("i", (8, 16)))
        with self.assertRaisesRegex(kiln.KilnError, "the inputs are x: 0 given"):
            self.net()
        with self.assertRaisesRegex(kiln.KilnError, "the inputs are x: 0 given, and by name"):
            self.net(z=shaped(X))
        with self.assertRaisesRegex(kiln.KilnError, "list is no array"):
            self.net(X)
        with self.assertRaisesRegex(kiln.KilnError, "on device 0 of DLPack type 2"):
            self.net(self.on_gpu())

    def on_gpu(self):
        x = FakeDLPack(X, (8, 16), (2, 0))
        x.held.tensor.device.device_type = 2
        return x

    def test_times(self):
        self.assertEqual(len(self.net.bench(repeat=4)), 4)
        self.assertTrue(all(0 < s < 1 for s in self.net.bench(shaped(X), number=2)))
        profile = self.net.profile(number=3)
        self.assertEqual([kernel.name for kernel, _ in profile], [f"kernel{i}" for i in range(4)])
        with self.assertRaisesRegex(kiln.KilnError, "input 'x' has shape"):
            self.net.bench(shaped(X, (16, 8)))

    def test_threads_take_turns(self):
        errors = []

        def work():
            try:
                for _ in range(20):
                    self.check(self.net(shaped(X)))
            except Exception as error:  # pylint: disable=broad-except
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])

    def test_loads_and_frees(self):
        for _ in range(20):
            net = kiln.load(PATH, threads=1, pin=False, check_weights=False)
            self.check(net(shaped(X)))
            del net
            gc.collect()

    def test_loading_fails(self):
        with self.assertRaisesRegex(kiln.KilnError, "No such file"):
            kiln.load("/nowhere/net.kiln")
        damaged = os.path.join(FOLDER, "damaged.kiln")
        with open(PATH, "rb") as whole, open(damaged, "wb") as file:
            file.write(whole.read()[:-1])
        with self.assertRaisesRegex(kiln.KilnError, "the file was written with"):
            kiln.load(damaged)


if __name__ == "__main__":
    unittest.main()
