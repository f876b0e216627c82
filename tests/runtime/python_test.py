"""usage: python_test.py FOLDER, with the files of make_network"""
import array
import ctypes
import gc
import os
import subprocess
import sys
import threading
import unittest

import kiln
import numpy

try:
    import torch
except ImportError:
    torch = None

FOLDER = sys.argv.pop(1)
PATH = os.path.join(FOLDER, "net.kiln")
with open(os.path.join(FOLDER, "expected.txt"), encoding="utf-8") as file:
    X, Y, HIDDEN = [numpy.array(line.split(), dtype="float32").reshape(8, -1) for line in file]


def buffer(values):
    """The same elements as Python's own buffer."""
    return memoryview(array.array("f", values.ravel())).cast("B").cast("f", values.shape)


def aligned(shape):
    """Memory that the runtime uses where it is."""
    memory = numpy.zeros(4 * numpy.prod(shape) + 64, "uint8")
    begin = -memory.ctypes.data % 64
    return memory[begin : begin + 4 * numpy.prod(shape)].view("float32").reshape(shape)


class OnlyDLPack:
    """An array of some other package."""

    def __init__(self, values, device=(1, 0)):
        self.values, self.device, self.streams = values, device, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.values.__dlpack__()


class Lazy(OnlyDLPack):
    """As PyTorch's tensors with the negative bit: the memory holds the values with the other sign."""

    def __init__(self, memory, bit="neg"):
        super().__init__(memory)
        self.bit = bit

    def is_neg(self):
        return self.bit == "neg"

    def is_conj(self):
        return self.bit == "conj"

    def resolve_neg(self):
        return OnlyDLPack(-self.values)

    def resolve_conj(self):
        return OnlyDLPack(self.values.conj())


class NetworkTest(unittest.TestCase):
    def setUp(self):
        self.net = kiln.load(PATH, threads=2, pin=False)

    def check(self, outputs):
        self.assertEqual(len(outputs), 2)
        for got, want in zip(outputs, (Y, HIDDEN)):
            numpy.testing.assert_allclose(numpy.asarray(got), want, atol=1e-4)

    def refuses(self, why, *given, **named):
        with self.assertRaisesRegex(kiln.KilnError, why):
            self.net(*given, **named)

    def test_describes(self):
        self.assertEqual(self.net.inputs, [kiln.Tensor("x", "float32", (8, 16))])
        self.assertEqual([t.name for t in self.net.outputs], ["y", "hidden"])
        self.assertEqual(
            repr(self.net),
            "<kiln.Network (x: float32[8, 16]) -> (y: float32[8, 8], hidden: float32[8, 8]) on cpu>",
        )
        self.assertEqual([k.name for k in self.net.kernels], [f"kernel{i}" for i in range(4)])
        self.assertEqual(kiln.version(), "Kiln runtime, ABI 2, files of version 3")

    def test_calls_with_numpy(self):
        outputs = self.net(X)
        self.check(outputs)
        self.check(self.net(x=X))
        for output in outputs:
            self.assertIsInstance(output, numpy.ndarray)
            self.assertEqual(output.ctypes.data % 64, 0)
        read_only = X.copy()
        read_only.flags.writeable = False
        self.check(self.net(read_only))
        self.check(self.net(numpy.concatenate([X, X])[8:]))

    def test_refuses_numpy_that_does_not_fit(self):
        self.refuses("'x': its dtype is float64, expected float32", X.astype("float64"))
        self.refuses("'x': its dtype is >f4, expected float32", X.astype(">f4"))
        self.refuses("'x': its dtype is complex64, expected float32", X.astype("complex64"))
        self.refuses(r"'x': its shape is \[16, 8\], expected \[8, 16\]", X.reshape(16, 8))
        self.refuses(r"'x': its shape is \[\], expected \[8, 16\]", X[0, 0])
        self.refuses("'x': it is not contiguous; copy it first", numpy.asfortranarray(X))
        self.refuses("'x': it is not contiguous; copy it first", numpy.zeros((8, 32), "float32")[:, ::2])

    def test_calls_with_dlpack(self):
        x = OnlyDLPack(X)
        self.check(self.net(x))
        self.assertEqual(x.streams, [None])
        y, hidden = aligned((8, 8)), aligned((8, 8))
        self.net(x, out=(OnlyDLPack(y), OnlyDLPack(hidden)))
        self.check((y, hidden))

    def test_refuses_dlpack_that_does_not_fit(self):
        self.refuses("'x': its dtype is float64, expected float32", OnlyDLPack(X.astype("float64")))
        self.refuses("'x': it is not contiguous: its stride along axis 1 is 8, expected 1", OnlyDLPack(numpy.asfortranarray(X)))
        read_only = X.copy()
        read_only.flags.writeable = False
        self.refuses("'x': .*readonly", OnlyDLPack(read_only))

    def test_takes_the_values_of_lazy_views(self):
        self.check(self.net(Lazy(-X)))
        self.check(self.net(Lazy(X, "conj")))
        self.check(self.net(Lazy(X, "none")))
        y, hidden = aligned((8, 8)), aligned((8, 8))
        self.refuses("'hidden': it is a negated view .* give resolve_neg", X, out=(y, Lazy(hidden)))
        self.refuses("'y': it is a conjugated view", X, out=(Lazy(y, "conj"), hidden))

    def test_lazy_views_that_nobody_resolves_are_refused(self):
        view = OnlyDLPack(-X)
        view.is_neg = lambda: True
        self.refuses("'x': it is a negated view of its memory; copy it first", view)

    @unittest.skipIf(torch is None, "there is no PyTorch here")
    def test_takes_the_values_of_negative_and_conjugate_views_of_torch(self):
        x = torch.tensor(X)
        negative = torch._neg_view(-x)
        self.assertTrue(negative.is_neg() and negative.is_contiguous())
        self.check(self.net(negative))
        imaginary = torch.complex(torch.zeros_like(x), -x).conj().imag
        self.check(self.net(imaginary.contiguous()))
        y, hidden = torch.zeros(8, 8), torch.zeros(8, 8)
        self.refuses("'y': it is a negated view", x, out=(torch._neg_view(y), hidden))

    def test_dlpack_of_a_gpu_is_ordered_before_the_legacy_stream(self):
        x = OnlyDLPack(X, (2, 0))
        self.net(x)
        self.assertEqual(x.streams, [1])

    def test_frees_what_dlpack_lends(self):
        x = X.copy()
        before = sys.getrefcount(x)
        self.net(OnlyDLPack(x))
        self.assertEqual(sys.getrefcount(x), before)

    def test_calls_with_buffers(self):
        self.check(self.net(buffer(X)))
        self.check(self.net(buffer(X).toreadonly()))
        self.check(self.net(((ctypes.c_float * 16) * 8).from_buffer(X.copy())))
        y, hidden = buffer(numpy.zeros((8, 8))), buffer(numpy.zeros((8, 8)))
        self.net(X, out=[y, hidden])
        self.check((y, hidden))
        self.refuses("'x': its dtype is int32, expected float32", memoryview(bytes(512)).cast("i", (8, 16)))
        self.refuses("'x': its dtype is uint8, expected float32", bytes(512))
        self.refuses("'x': list is no array", X.tolist())

    def test_types_that_numpy_lacks_are_their_bits(self):
        for dtype, held_as, code, bits in (
            ("bfloat16", "uint16", 4, 16), ("float8_e4m3fn", "uint8", 10, 8), ("float8_e5m2", "uint8", 12, 8),
        ):
            wanted = kiln.network.Tensor("x", dtype, (2, 3))
            values = kiln.arrays.new_array(wanted, None)
            self.assertEqual((values.dtype.name, values.shape), (held_as, (2, 3)))
            for given in (values, memoryview(values)):
                got = kiln.arrays.hold(given, wanted).tensor.dtype
                self.assertEqual((got.code, got.bits, got.lanes), (code, bits, 1))
        # For other networks the bytes of uint8 keep their own type.
        wanted = kiln.network.Tensor("x", "float32", (2, 3))
        self.assertEqual(kiln.arrays.hold(numpy.zeros((2, 3), "uint8"), wanted).tensor.dtype.code, 1)

    def test_writes_outputs_where_the_caller_says(self):
        y, hidden = aligned((8, 8)), aligned((8, 8))
        outputs = self.net(X, out=(y, hidden))
        self.assertIs(outputs[0], y)
        self.assertIs(outputs[1], hidden)
        self.check((y, hidden))
        self.refuses("the outputs are y, hidden: 1 arrays given", X, out=y)
        self.refuses("'y': its dtype is float64, expected float32", X, out=(y.astype("float64"), hidden))
        self.refuses("'hidden': its shape is", X, out=(y, numpy.zeros(64, "float32")))
        self.refuses("output 'hidden' overlaps output 'y' in memory", X, out=(y, y))
        x = X.copy()
        self.refuses("output 'y' overlaps input 'x' in memory", x, out=(x[:4].reshape(8, 8), hidden))
        y.flags.writeable = False
        self.refuses("'y': it is read only", X, out=(y, hidden))
        self.refuses("'hidden': it is read only", X, out=(numpy.zeros((8, 8), "float32"), buffer(Y).toreadonly()))

    def test_refuses_inputs_that_are_not_the_networks(self):
        self.refuses("the inputs are x: 0 given")
        self.refuses("the inputs are x: 0 given, and by name", z=X)
        self.refuses("the inputs are x: 2 given", X, X)

    @unittest.skipIf(torch is None, "no PyTorch")
    def test_calls_with_pytorch(self):
        outputs = self.net(torch.from_numpy(X))
        self.check(outputs)
        self.assertTrue(all(isinstance(output, torch.Tensor) for output in outputs))
        y, hidden = torch.empty(8, 8), torch.empty(8, 8)
        self.net(X, out=(y, hidden))
        self.check((y, hidden))
        self.refuses("'x': .*gradient", torch.from_numpy(X).requires_grad_())
        self.refuses("'x': it is not contiguous", torch.zeros(16, 8).T)
        self.refuses("'x': its dtype is bfloat16, expected float32", torch.zeros(8, 16, dtype=torch.bfloat16))

    @unittest.skipIf(torch is None or not torch.cuda.is_available(), "no PyTorch with a GPU")
    def test_a_network_of_the_cpu_refuses_memory_of_a_gpu(self):
        x = torch.from_numpy(X).cuda()
        self.refuses("'x': it is on GPU 0, and the network runs on the CPU", x)
        with self.assertRaisesRegex(kiln.KilnError, "it is on GPU 0"):
            self.net.bench(x)

    def test_times(self):
        self.assertEqual(len(self.net.bench(repeat=4)), 4)
        self.assertTrue(all(0 < s < 1 for s in self.net.bench(X, number=2)))
        profile = self.net.profile(number=3)
        self.assertEqual([kernel.name for kernel, _ in profile], [f"kernel{i}" for i in range(4)])
        for timed in (self.net.bench, self.net.profile):
            with self.assertRaisesRegex(kiln.KilnError, "'x': its shape is"):
                timed(X.reshape(16, 8))
            with self.assertRaisesRegex(kiln.KilnError, "'x': its dtype is int32"):
                timed(X.astype("int32"))

    def test_threads_take_turns(self):
        errors = []

        def work():
            try:
                for _ in range(20):
                    self.check(self.net(X))
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
            self.check(net(X))
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


class PackageTest(unittest.TestCase):
    def run_python(self, code, **environment):
        done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.stdout

    def test_says_that_the_library_is_missing(self):
        load = "import kiln; kiln.load('net.kiln')"
        self.assertRegex(self.run_python(load, KILN_RUNTIME="/nowhere/lib.so"),
                         "KilnError: cannot load libkiln_runtime.so: /nowhere/lib.so: .*KILN_RUNTIME=FILE")
        self.assertRegex(self.run_python(load, KILN_RUNTIME="libc.so.6"), "libc.so.6 has version 0 of Kiln's interface")

    def test_needs_no_numpy(self):
        code = f"""
import sys
sys.modules["numpy"] = None
import kiln
y, hidden = kiln.load({PATH!r})(memoryview(bytes(512)).cast("f", (8, 16)))
print(type(y).__name__, y.shape, y.format, hidden.tolist()[0][0])
"""
        self.assertEqual(self.run_python(code), "memoryview (8, 8) f 0.0\n")

    def test_a_network_that_is_left_at_exit_is_no_trouble(self):
        self.assertEqual(self.run_python(f"import kiln; net = kiln.load({PATH!r}); print(1)"), "1\n")


if __name__ == "__main__":
    unittest.main()
