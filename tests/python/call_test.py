"""Calls of compiled programs by the module _caller, and beside it by ctypes: both do the same.

PyTorch and apache-tvm-ffi are tested where they are installed. With others than this machine's:
  bazel test //tests/python:call_test --test_env=KILN_PYTHON=/some/venv/bin/python
"""

import ctypes
import gc
import os
import random
import resource
import sys
import threading
import unittest

import kiln
import numpy
from kiln import network
from kiln.farm import program

try:
    import torch
except ImportError:
    torch = None
try:
    import tvm_ffi
except ImportError:
    tvm_ffi = None

FOLDER = os.environ["KILN_TEST_FOLDER"]
SUM = "input A: float32[4, 8]\ninput B: float32[8]\nC[i: 4, j: 8] = A[i, j] + B[j]\n"
ZEROS = (ctypes.c_char * 256)()


def compiled(name, text):
    """The computation, with a schedule that is chosen without measuring."""
    source, path = os.path.join(FOLDER, name + ".te"), os.path.join(FOLDER, name + ".kiln")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    environment = {"KILN_DB": os.path.join(FOLDER, "call.db")}
    program.run(["compile", source, "--target=llvm", f"--output={path}"], environment)
    return kiln.load(path, threads=1, pin=False)


def counted(net):
    """The network, and a list that tells of each fast call whether it was done."""
    done, run = [], net._run_fast

    def told(*arrays):
        done.append(run(*arrays))
        return done[-1]

    net._run_fast = told
    return done


def make_capsule(name):
    """A capsule that holds the address of 256 zeros."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(ZEROS), name, None)


def strange(chance):
    """An object of a class whose attributes are not what they should be."""
    values = [None, 3, -1, 2**70, "x", (), (1, 0), (2, 0), (1, "x"), (1, 2, 3), [1, 0], object(), ZEROS,
              make_capsule(b"dltensor_gone"), make_capsule(None), numpy.zeros(8, "float32").__dlpack__()]

    def attribute():
        value = chance.choice(values)
        kind = chance.randrange(4)
        if kind == 0:
            return value
        if kind == 1:
            return lambda *_, **__: value
        if kind == 2:
            return property(lambda self: value)

        def fails(*_, **__):
            raise chance.choice([ValueError, KeyError, AttributeError, MemoryError])("no")

        return fails

    names = ["__dlpack__", "__dlpack_device__", "__dlpack_c_exchange_api__", "is_neg", "is_conj", "resolve_neg",
             "requires_grad", "__cuda_stream__", "cuda_stream", "ptr", "flags", "device", "dtype", "shape"]
    members = {name: attribute() for name in chance.sample(names, chance.randrange(len(names)))}
    if chance.random() < 0.3:
        members["__module__"] = chance.choice(["numpy", "x.torch", 3, None, "jaxy"])
    return type("Strange", (), members)()


class CallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.net = compiled("sum", SUM)

    def setUp(self):
        self.a = numpy.arange(32, dtype="float32").reshape(4, 8)
        self.b = numpy.ones(8, "float32")

    def test_the_module_is_there(self):
        self.assertIsNotNone(network.Caller)

    def test_outputs_are_made_once_where_the_fast_way_is_not_gone(self):
        net = kiln.load(os.path.join(FOLDER, "sum.kiln"), threads=1, pin=False)
        net._run_fast = lambda *_: False
        made, (make,) = [], net._new_numpy
        net._new_numpy = [lambda: made.append(make()) or made[-1]]
        found = net(self.a, self.b)
        numpy.testing.assert_array_equal(found, self.a + 1)
        self.assertEqual(len(made), 1)
        self.assertIs(found, made[0])

    def test_arrays_of_numpy_go_the_fast_way(self):
        net = kiln.load(os.path.join(FOLDER, "sum.kiln"), threads=1, pin=False)
        done = counted(net)
        numpy.testing.assert_array_equal(net(self.a, self.b), self.a + 1)
        out = numpy.empty((4, 8), "float32")
        self.assertIs(net(self.a, self.b, out=out), out)
        numpy.testing.assert_array_equal(out, self.a + 1)
        net(self.a, self.b, out=[out])
        net(A=self.a, B=self.b)
        net(self.a, memoryview(self.b))
        self.assertEqual(done[:4], [True] * 4)
        del done[:]
        # A call with arrays that do not fit goes the other way.
        with self.assertRaisesRegex(kiln.KilnError, "'A': its dtype is float64"):
            net(self.a.astype("float64"), self.b)
        self.assertNotIn(True, done)

    def test_arrays_with_dlpack_go_the_fast_way(self):
        class Other:
            """An array of a library that has __dlpack__ and nothing else."""

            def __init__(self, values):
                self.values = values

            def __dlpack_device__(self):
                return self.values.__dlpack_device__()

            def __dlpack__(self):
                return self.values.__dlpack__()

        net = kiln.load(os.path.join(FOLDER, "sum.kiln"), threads=1, pin=False)
        done = counted(net)
        out = numpy.empty((4, 8), "float32")
        net(Other(self.a), Other(self.b), out=Other(out))
        numpy.testing.assert_array_equal(out, self.a + 1)
        self.assertEqual(done, [True])
        references = sys.getrefcount(self.a)
        for _ in range(10):
            net(Other(self.a), Other(self.b), out=Other(out))
        self.assertEqual(sys.getrefcount(self.a), references)

    @unittest.skipIf(torch is None, "there is no PyTorch here")
    def test_tensors_of_torch_go_the_fast_way(self):
        net = kiln.load(os.path.join(FOLDER, "sum.kiln"), threads=1, pin=False)
        done = counted(net)
        a, b, out = torch.tensor(self.a), torch.tensor(self.b), torch.empty(4, 8)
        self.assertIs(net(a, b, out=out), out)
        self.assertTrue(torch.equal(out, a + 1))
        made = net(a, b)
        self.assertIsInstance(made, torch.Tensor)
        self.assertTrue(torch.equal(made, a + 1))
        self.assertEqual(done, [True, True])
        # The memory of a negated view has other values than the view.
        negated = torch._neg_view(-a)
        self.assertTrue(torch.equal(net(negated, b), a + 1))
        with self.assertRaisesRegex(kiln.KilnError, "'A': .*gradient"):
            net(a.clone().requires_grad_(), b)

    @unittest.skipIf(tvm_ffi is None, "there is no tvm-ffi here")
    def test_tensors_of_tvm_ffi_go_the_fast_way(self):
        net = kiln.load(os.path.join(FOLDER, "sum.kiln"), threads=1, pin=False)
        done = counted(net)
        a, b = tvm_ffi.from_dlpack(self.a), tvm_ffi.from_dlpack(self.b)
        made = net(a, b)
        self.assertIsInstance(made, tvm_ffi.Tensor)
        numpy.testing.assert_array_equal(numpy.from_dlpack(made), self.a + 1)
        self.assertEqual(done, [True])

    @unittest.skipIf(tvm_ffi is None, "there is no tvm-ffi here")
    def test_tvm_ffi_calls_an_exported_library(self):
        path = os.path.join(FOLDER, "sum.so")
        kiln.export(kiln.computation(SUM), path, target="llvm", db=os.path.join(FOLDER, "none.db"))
        main = tvm_ffi.load_module(path).get_function("main")
        out = numpy.empty((4, 8), "float32")
        main(*map(tvm_ffi.from_dlpack, (self.a, self.b, out)))
        numpy.testing.assert_array_equal(out, self.a + 1)
        for error, why, given in (
            (ValueError, "'B': its shape is", (self.a, self.a, out)),
            (ValueError, "'A': its dtype is float64", (self.a.astype("float64"), self.b, out)),
            (ValueError, "overlaps input 'A'", (self.a, self.b, self.a)),
            (TypeError, r"1 tensors are given, expected 2, or 3 with the outputs: main\(A: float32", (self.a,)),
        ):
            with self.assertRaisesRegex(error, why):
                main(*map(tvm_ffi.from_dlpack, given))
        with self.assertRaisesRegex(TypeError, "argument 0 is no tensor"):
            main(3)

    def test_a_class_that_hands_on_functions_of_others_is_not_believed(self):
        capsule = make_capsule(b"dlpack_exchange_api")
        for value in (capsule, 3, None, make_capsule(b"other")):
            class Liar:
                __dlpack_c_exchange_api__ = value

            with self.assertRaisesRegex(kiln.KilnError, "'A': Liar is no array"):
                self.net(Liar(), self.b)

    def test_a_cpu_has_no_streams(self):
        for stream in (0, 1, 77, "x", object()):
            with self.assertRaisesRegex(kiln.FailedPreconditionError, "which has no streams"):
                self.net(self.a, self.b, stream=stream)

    def test_streams_are_objects(self):
        class Stream:
            def __init__(self, found):
                self.found = found

            def __cuda_stream__(self):
                return self.found

        class Torch:
            cuda_stream = 78

        class Cupy:
            ptr = 79

        for stream, number in ((0, 0), (1, 1), (2, 2), (Stream((0, 77)), 77), (Torch(), 78), (Cupy(), 79)):
            self.assertEqual(kiln.arrays.stream_number(stream), number)
        for stream in (3, -1, True, 1.0, "x", object(), Stream(None), Stream((0, "x")), Stream((0, -1)), Stream(3)):
            with self.assertRaises(kiln.InvalidArgumentError):
                kiln.arrays.stream_number(stream)

    def test_times_calls(self):
        timed = self.net.time_evaluator(number=5, repeat=3, min_repeat_ms=1, cooldown_interval_ms=1)
        for given in ((self.a, self.b), ()):
            result = timed(*given)
            self.assertEqual(len(result.results), 3)
            self.assertTrue(0 < result.min <= result.median <= result.max < 0.1)
        with self.assertRaisesRegex(kiln.KilnError, "'A': its shape is"):
            timed(self.b, self.b)
        for wrong in ({"number": 0}, {"repeat": 0}, {"min_repeat_ms": -1}, {"number": "x"}, {"number": True}):
            with self.assertRaisesRegex(kiln.InvalidArgumentError, f"{next(iter(wrong))} is .*, expected a number"):
                self.net.time_evaluator(**wrong)

    def test_compiles_without_a_farm(self):
        path = os.path.join(FOLDER, "again.kiln")
        none = os.path.join(FOLDER, "none.db")
        net = kiln.compile(kiln.computation(SUM), path, target="llvm", db=none)
        numpy.testing.assert_array_equal(net(self.a, self.b), self.a + 1)
        numpy.testing.assert_array_equal(kiln.load(path)(self.a, self.b), self.a + 1)
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "kiln.export"):
            kiln.compile(kiln.computation(SUM), form="tvm-ffi", db=none)
        with self.assertRaisesRegex(kiln.KilnError, "--form"):
            kiln.export(kiln.computation(SUM), path, form="other", db=none)

    def test_the_other_way_says_what_is_wrong(self):
        out = numpy.empty((4, 8), "float32")
        read_only = out.copy()
        read_only.flags.writeable = False
        for why, given, outputs in (
            ("'A': its shape is", (self.a.T.copy(), self.b), None),
            ("'A': it is not contiguous", (numpy.asfortranarray(self.a), self.b), None),
            ("'B': its dtype is >f4", (self.a, self.b.astype(">f4")), None),
            ("the inputs are A, B: 1 given", (self.a,), None),
            ("the inputs are A, B: 3 given", (self.a, self.b, self.b), None),
            ("the inputs are A, B: 1 given", (self.a,), (self.b, out)),
            ("'A': list is no array", (self.a.tolist(), self.b), None),
            ("'A': NoneType is no array", (None, self.b), None),
            ("'C': it is read only", (self.a, self.b), read_only),
            ("the outputs are C: 2 arrays given", (self.a, self.b), (out, out)),
            ("output 'C' overlaps input 'A'", (self.a, self.b), self.a),
        ):
            with self.subTest(why), self.assertRaisesRegex(kiln.KilnError, why):
                self.net(*given, out=outputs)

    def test_types_and_ranks(self):
        for dtype in ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8",
                      "uint16", "uint32", "uint64"):
            net = compiled(dtype, f"input A: {dtype}[3]\nB[i: 3] = A[i] + A[i]\n")
            done = counted(net) if net._run_fast else [True]
            x = numpy.arange(3).astype(dtype)
            got = net(x)
            self.assertEqual((got.dtype, got.tolist(), done), (x.dtype, [0, 2, 4], [True]))
        net = compiled("truth", "input A: bool[3]\nB[i: 3] = !A[i]\n")
        self.assertEqual(net(numpy.array([True, False, True])).tolist(), [False, True, False])
        net = compiled("scalar", "input A: float32[]\ninput B: float32[2]\nC[i: 2] = A[] * B[i]\n")
        given = {"A": numpy.array(3, "float32"), "B": numpy.ones(2, "float32")}
        got = net(*(given[tensor.name] for tensor in net.inputs))
        self.assertEqual(got.tolist(), [3, 3])

    def test_new_outputs_are_aligned(self):
        outputs = [self.net(self.a, self.b) for _ in range(20)]
        self.assertEqual({output.ctypes.data % 64 for output in outputs}, {0})

    def test_a_caller_that_is_made_wrong_is_an_error(self):
        for wanted, inputs in (([], 1), ([()], 1), ([(2, 32, "f", (1,))], -1),
                               ([(2, 32, "fffff", (1,))], 0), ([(2, 32, "f", ("x",))], 0),
                               ([(2, 32, "f", (1,) * 33)], 0), ([None] * 65, 0), ({}, 0)):
            with self.assertRaises((TypeError, ValueError)):
                network.Caller(1, 2, 3, wanted, inputs, 1, 0)
        for given in ((), ("a", 2, 3, [], 0, 1, 0)):
            with self.assertRaises((TypeError, ValueError)):
                network.Caller(*given)

    def test_blocks_are_memory(self):
        for size in (0, 1, 63, 64, 1000):
            view = memoryview(kiln.arrays.Block(size))
            self.assertEqual((view.nbytes, view.readonly), (size, False))
        view[999] = 7
        self.assertEqual(view[999], 7)
        for wrong in (-1, "x", None, 2**63 - 1, 2**64):
            with self.assertRaises((TypeError, ValueError, OverflowError, MemoryError)):
                kiln.arrays.Block(wrong)

    def test_dlpack_that_is_none(self):
        class Liar:
            def __init__(self, device, capsule):
                self.device, self.capsule = device, capsule

            def __dlpack_device__(self):
                return self.device

            def __dlpack__(self, stream=None):
                return self.capsule

        for device, capsule in ((1, 0), None), ((1, 0), 3), (None, None), ((1,), self.a), (3, ""):
            with self.assertRaisesRegex(kiln.KilnError, "tensor 'A': "):
                self.net(Liar(device, capsule), self.b)

    def test_whatever_is_given_is_no_crash(self):
        seed = int(os.environ.get("KILN_FUZZ_SEED", "1"))
        print(f"KILN_FUZZ_SEED={seed}", file=sys.stderr)
        chance = random.Random(seed)
        pool = [None, 1, 1.5, "text", b"bytes", bytearray(32), [], (), {}, object(), self.a, self.b,
                self.a.T, self.b[::2], self.a[:0], numpy.float32(1), numpy.array("x"),
                numpy.zeros(8), numpy.zeros((4, 8), "complex64"), numpy.zeros(8, [("x", "f4")]),
                type, self.net,
                memoryview(bytes(32)), memoryview(b"").cast("B"), numpy.zeros((1,) * 30, "float32")]
        pool += [strange(chance) for _ in range(40)]
        if torch is not None:
            pool += [torch.tensor(self.a), torch.tensor(self.b), torch.zeros(8, requires_grad=True), torch.zeros(0),
                     torch.zeros(16)[::2], torch.zeros(4, 8).to_sparse(), torch.zeros(8, dtype=torch.complex64),
                     torch.zeros(4, 8, device="meta"), torch._neg_view(torch.zeros(8)), torch.zeros, torch.Tensor,
                     torch.nn.Parameter(torch.zeros(8)), torch.nn.Parameter(torch.zeros(8), requires_grad=False)]
        if tvm_ffi is not None:
            pool += [tvm_ffi.from_dlpack(self.a), tvm_ffi.from_dlpack(self.b), tvm_ffi.Tensor,
                     tvm_ffi.from_dlpack(numpy.zeros((4, 9), "float32")[:, :8])]
        streams = [None] * 6 + [0, 1, 2**62, -1, "x", object(), self.a]
        refused = 0
        for _ in range(3000):
            given = [chance.choice(pool) for _ in range(chance.randrange(4))]
            outputs = tuple(chance.choice(pool) for _ in range(chance.randrange(3)))
            out = chance.choice([None, outputs, *outputs[:1]])
            named = {chance.choice("ABC"): chance.choice(pool)} if chance.random() < 0.1 else {}
            if chance.random() < 0.1:
                self.net._run_fast(chance.choice(streams), *given, *outputs)
            try:
                self.net(*given, out=out, stream=chance.choice(streams), **named)
            except (kiln.KilnError, TypeError, ValueError):
                refused += 1
        self.assertGreater(refused, 2000)

    def test_memory_does_not_grow(self):
        out = numpy.empty((4, 8), "float32")
        a, b = numpy.array(self.a), numpy.array(self.b)
        references = [sys.getrefcount(each) for each in (a, b, out)]
        for _ in range(2000):
            self.net(a, b, out=out)
            self.net(a, b)
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(20_000):
            self.net(a, b, out=out)
            self.net(a, b)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 2000)
        self.assertEqual([sys.getrefcount(each) for each in (a, b, out)], references)

    def test_networks_come_and_go(self):
        for _ in range(50):
            net = kiln.load(os.path.join(FOLDER, "sum.kiln"), threads=1, pin=False)
            numpy.testing.assert_array_equal(net(self.a, self.b), self.a + 1)

    def test_threads_take_turns(self):
        wrong = []

        def work(value):
            b = numpy.full(8, value, "float32")
            for _ in range(300):
                if not numpy.array_equal(self.net(self.a, b), self.a + value):
                    wrong.append(value)

        threads = [threading.Thread(target=work, args=(value,)) for value in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()
