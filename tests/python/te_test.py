"""Declarations in Python: they are the computations that the same texts are."""

import math
import unittest

import kiln
from kiln import te

EXAMPLES = "examples/te/"


def matmul_tensors(n=16, m=8, k=24, dtype="float32"):
    a = te.placeholder((n, k), dtype, name="A")
    b = te.placeholder((k, m), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return a, b, c


class ExamplesTest(unittest.TestCase):
    """The examples of texts, declared with te."""

    def same(self, declared, file, **params):
        text = kiln.computation(EXAMPLES + file, **params)
        self.assertEqual(te.create(declared).workload_key, text.workload_key)

    def test_vector_add(self):
        a, b = (te.placeholder((100,), name=name) for name in "AB")
        self.same(te.compute((100,), lambda i: a[i] + b[i], name="C"), "vector_add.te", n=100)

    def test_conv2d(self):
        a = te.placeholder((1, 8, 10, 10), name="A")
        w = te.placeholder((16, 8, 3, 3), name="W")

        def padded(n, c, y, x):
            inside = te.all(y >= 1, y <= 10, x >= 1, x <= 10)
            return te.if_then_else(inside, a[n, c, y - 1, x - 1], 0.0)

        pad = te.compute((1, 8, 12, 12), padded, name="pad")
        c, ry, rx = (te.reduce_axis((0, n), name) for n, name in ((8, "c"), (3, "ry"), (3, "rx")))
        b = te.compute(
            (1, 16, 10, 10),
            lambda n, f, y, x: te.sum(
                pad[n, c, y + ry, x + rx] * w[f, c, ry, rx], axis=[c, ry, rx]
            ),
            name="B",
        )
        self.same([a, w, b], "conv2d.te")

    def test_tuples(self):
        a, b = (te.placeholder((32, 64), name=name) for name in "AB")
        p = te.compute((32, 64), lambda i, j: (a[i, j] + 2.0, b[i, j] * 3.0), name="P")
        k = te.reduce_axis((0, 64), "k")
        add = te.comm_reducer(
            lambda x, y: (x[0] + y[0], x[1] + y[1]), lambda *_: (0.0, 0.0), name="add"
        )
        s = te.compute((32,), lambda i: add((p[0][i, k], p[1][i, k]), axis=k), name="S")
        self.assertEqual([each.name for each in s], ["S.v0", "S.v1"])
        self.assertIn("combine add(a0: float32, a1: float32; b0, b1)", te.text(s))
        self.assertEqual(te.create(s).text.count("input"), 2)

    def test_a_combiner_of_an_index_and_a_value(self):
        def best(x, y):
            is_x = te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0]))
            return te.if_then_else(is_x, x[0], y[0]), te.max(x[1], y[1])

        reducer = te.comm_reducer(best, lambda *_: (-1, -math.inf), name="best")
        a = te.placeholder((24, 100), name="A")
        k = te.reduce_axis((0, 100), "k")
        t = te.compute((24,), lambda r: reducer((k, a[r, k]), axis=k), name="T")
        self.assertEqual([each.dtype for each in t], ["int64", "float32"])
        self.same(t, "argmax.te")

    def test_functions(self):
        a = te.placeholder((64, 32), name="A")

        def value(i, j):
            x = a[i, j]
            return te.if_then_else(te.isnan(x), 0.0, te.exp2(te.log2(x) * 0.5) + te.exp(-x))

        self.same(te.compute((64, 32), value, name="B"), "math.te")

    def test_conditions_over_axes(self):
        a = te.placeholder((64, 40), name="A")
        k = te.reduce_axis((0, 40), "k")
        above = te.compute((64,), lambda i: te.any(a[i, k] > 0.9, axis=k), name="above")
        within = te.compute((64,), lambda i: te.all(a[i, k] >= -0.9, axis=k), name="within")
        self.same([above, within], "any_all.te")


class TextTest(unittest.TestCase):
    def body(self, value, shape=(8,)):
        a = te.placeholder(shape, name="A")
        text = te.text(te.compute(shape, lambda *i: value(a[i], *i), name="B"))
        return text.split(" = ", 1)[1].strip()

    def test_brackets_stand_where_they_must(self):
        for value, text in (
            (lambda x, i: x - (x - 1) - 2, "A[i0] - (A[i0] - 1) - 2"),
            (lambda x, i: x * (x + 1) / 2.0, "A[i0] * (A[i0] + 1) / 2.0"),
            (lambda x, i: -(x + 1), "-(A[i0] + 1)"),
            (lambda x, i: 1 - x, "1 - A[i0]"),
            (lambda x, i: x - (-2), "A[i0] - -2"),
            (lambda x, i: te.power(x, -2.0), "pow(A[i0], -2.0)"),
            (lambda x, i: te.all(x > 0, te.any(x < 1, x > 2)),
             "A[i0] > 0 && (A[i0] < 1 || A[i0] > 2)"),
            (lambda x, i: (x.astype("int32") & 1) == 0, "(int32(A[i0]) & 1) == 0"),
            (lambda x, i: ~(x > 0), "!(A[i0] > 0)"),
            (lambda x, i: te.const(1, "float16") + x.astype("float16"),
             "float16(1) + float16(A[i0])"),
        ):
            self.assertEqual(self.body(value), text)

    def test_names_are_made_different(self):
        a = te.placeholder((8, 8), name="x")
        k, other = te.reduce_axis((0, 8), "k"), te.reduce_axis((0, 8), "k")
        b = te.compute((8,), lambda k: te.sum(a[k, other], axis=other), name="x")
        c = te.compute((8,), lambda i: te.sum(a[i, k] * b[i], axis=k), name="sum")
        text = te.text(c)
        self.assertIn("x_1[k: 8] = sum(k_1: 8) x[k, k_1]", text)
        self.assertIn("`sum`[i: 8]", text)
        te.create(c)

    def test_a_reduction_may_start_late_and_end_at_an_axis(self):
        a = te.placeholder((8,), name="A")
        k = te.reduce_axis((2, 8), "k")
        late = te.compute((1,), lambda i: te.sum(a[k], axis=k), name="late")
        self.assertIn("sum(k: 6) A[k + 2]", te.text(late))
        b = te.placeholder((8, 8), name="B")
        row = te.compute(
            (8,), lambda i: te.sum(b[i, (j := te.reduce_axis((0, i + 1), "j"))], axis=j), name="row"
        )
        self.assertIn("sum(j: i + 1) B[i, j]", te.text(row))
        te.create([late, row])

    def test_hints(self):
        a, b, _ = matmul_tensors()
        r = te.reduce_axis((0, 24), name="r")
        c = te.compute(
            (16, 8),
            lambda i, j: te.sum(a[i, r] * b[r, j], axis=r),
            name="C",
            attrs={"layout_free_placeholders": [b], "auto_scheduler_always_unroll_inner": ["r"]},
        )
        self.assertIn("@layout_free_placeholders(B)\n@always_unroll_inner(r)\nC[", te.text(c))
        te.create(c)

    def test_inputs_stand_in_the_order_that_is_given(self):
        a, b, c = matmul_tensors()
        self.assertLess(te.text([b, a, c]).index("input B"), te.text([b, a, c]).index("input A"))


class RefusalTest(unittest.TestCase):
    def refuses(self, why, function, *given, **named):
        with self.assertRaisesRegex(kiln.InvalidArgumentError, why):
            function(*given, **named)

    def test_python_says_what_is_wrong_at_once(self):
        a, b, c = matmul_tensors()
        self.refuses("A is read with 1 indices, expected 2", lambda: a[0])
        self.refuses("found a tensor in an expression", lambda: a[0, 0] + b)
        self.refuses("found a str", lambda: a[0, 0] + "1")
        self.refuses("found nan", lambda: a[0, 0] + float("nan"))
        self.refuses("the truth of an expression", lambda: 1 if a[0, 0] > 0 else 2)
        self.refuses("found the shape", te.placeholder, (0, 1))
        self.refuses("found the shape", te.placeholder, ("n",))
        self.refuses("found type 'float31'", te.placeholder, (1,), "float31")
        self.refuses("takes 1 axes, expected 2", te.compute, (1, 2), lambda i: 0.0)
        self.refuses("expected axes of te.reduce_axis", te.sum, a[0, 0], axis=3)
        self.refuses("either a second value or axis", te.max, a[0, 0])
        self.refuses("no tensor is given", te.create, [])
        self.refuses("found a int", te.create, [c, 3])
        self.refuses("cannot be listed", list, a)

    def test_deep_expressions_are_no_crash(self):
        a = te.placeholder((8,), name="A")
        value = a[0]
        for _ in range(20_000):
            value = value + 1.0
        b = te.compute((8,), lambda i: value, name="B")
        self.refuses("too deep", te.text, b)

    def test_the_program_says_the_rest(self):
        a, b, c = matmul_tensors()
        unread = te.placeholder((2,), name="U")
        self.refuses(r"C.te:\d+:\d+: input U is not used", te.create, [a, b, unread, c])
        beyond = te.compute((8,), lambda i: a[i + 9, 0], name="D")
        self.refuses("D.te:2:.*reaches 16", te.create, beyond)
        mixed = te.compute((8,), lambda i: a[i, 0] + a[i, 0].astype("int32"), name="E")
        self.refuses("E.te:2:", te.create, mixed)

    def test_operators_and_texts(self):
        self.refuses("unknown operator 'nosuch'", kiln.op, "nosuch", 1)
        self.refuses("'--help' is no name", kiln.op, "--help")
        self.refuses("expected a number or a text", kiln.op, "matmul", object(), 1, 1)
        self.refuses("K", kiln.op, "matmul", 1, 1)
        self.refuses("x.te:1:", kiln.computation, "nonsense", name="x")
        self.refuses("cannot read /nowhere/a.te", kiln.computation, "/nowhere/a.te")
        self.refuses("has no param M", kiln.computation, "input A: float32[4]\n", M=3)
        self.refuses("has a NUL", kiln.op, "matmul", "1\0", 1, 1)


class OperatorTest(unittest.TestCase):
    def test_by_place_and_by_name(self):
        matmul = kiln.op("matmul", 64, 32, 16)
        self.assertEqual(matmul.name, "matmul 64,32,16")
        self.assertEqual(matmul.flop_count, 2 * 64 * 32 * 16)
        self.assertEqual(kiln.op("matmul", M=64, N=32, K=16).workload_key, matmul.workload_key)
        self.assertIn("float16[64, 16]", str(kiln.op("matmul", 64, 32, 16, dtype="float16")))
        self.assertIn("max(", str(kiln.op("matmul", 64, 32, 16, epilogue="bias,relu")))
        names = [each["name"] for each in kiln.operators()]
        self.assertIn("conv2d_nhwc", names)

    def test_params(self):
        text = "param N\nparam M = 4\ninput A: float32[N, M]\nB[i: N, j: M] = A[i, j] * 2.0\n"
        self.assertIn("float32[3, 4]", kiln.computation(text, N=3).text)
        self.assertIn("float32[3, 5]", kiln.computation(text, N=3, M=5).text)


if __name__ == "__main__":
    unittest.main()
