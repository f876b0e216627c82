"""Calls of compiled programs by the module _caller, and beside it by ctypes: both do the same."""

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

FOLDER = os.environ["KILN_TEST_FOLDER"]


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


class CallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.net = compiled("sum", "input A: float32[4, 8]\ninput B: float32[8]\n"
                           "C[i: 4, j: 8] = A[i, j] + B[j]\n")

    def setUp(self):
        self.a = numpy.arange(32, dtype="float32").reshape(4, 8)
        self.b = numpy.ones(8, "float32")

    def test_the_module_is_there(self):
        self.assertIsNotNone(network.Caller)

    def test_arrays_of_numpy_go_the_fast_way(self):
        net = kiln.load(os.path.join(FOLDER, "sum.kiln"), threads=1, pin=False)
        done = counted(net)
        numpy.testing.assert_array_equal(net(self.a, self.b), self.a + 1)
        out = numpy.empty((4, 8), "float32")
        self.assertIs(net(self.a, self.b, out=out), out)
        numpy.testing.assert_array_equal(out, self.a + 1)
        net(self.a, self.b, out=[out])
        self.assertEqual(done, [True, True, True])
        # A call by name, or with arrays that do not fit, goes the other way.
        net(A=self.a, B=self.b)
        net(self.a, memoryview(self.b))
        with self.assertRaisesRegex(kiln.KilnError, "'A': its dtype is float64"):
            net(self.a.astype("float64"), self.b)
        self.assertEqual(done, [True, True, True, False, False])

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
        for given in ((), (1, 2, [], 1), (1, 2, [()], 1), (1, 2, [(2, 32, "f", (1,))], -1),
                      (1, 2, [(2, 32, "fffff", (1,))], 0), (1, 2, [(2, 32, "f", ("x",))], 0),
                      (1, 2, [(2, 32, "f", (1,) * 33)], 0), (1, 2, [None] * 65, 0),
                      ("a", 2, [], 0)):
            with self.assertRaises((TypeError, ValueError)):
                network.Caller(*given)

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
        chance = random.Random(1)
        pool = [None, 1, 1.5, "text", b"bytes", bytearray(32), [], (), {}, object(), self.a, self.b,
                self.a.T, self.b[::2], self.a[:0], numpy.float32(1), numpy.array("x"),
                numpy.zeros(8), numpy.zeros((4, 8), "complex64"), numpy.zeros(8, [("x", "f4")]),
                type, self.net,
                memoryview(bytes(32)), memoryview(b"").cast("B"), numpy.zeros((1,) * 30, "float32")]
        refused = 0
        for _ in range(3000):
            given = [chance.choice(pool) for _ in range(chance.randrange(4))]
            outputs = tuple(chance.choice(pool) for _ in range(chance.randrange(3)))
            out = chance.choice([None, outputs])
            try:
                self.net(*given, out=out)
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
