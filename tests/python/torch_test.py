"""Modules of PyTorch, by kiln.tune, torch.compile(backend="kiln") and kiln.torch.op.

Skipped where torch is older than 2.4 or not there. With one: bazel test //tests/python:torch_test
--test_env=KILN_PYTHON=/some/venv/bin/python
"""

import concurrent.futures
import contextlib
import copy
import functools
import io
import logging
import os
import re
import sys
import time
import unittest
from unittest import mock

import kiln
from kiln import auto_scheduler

try:
    import torch

    IS_THERE = tuple(int(each) for each in torch.__version__.split(".")[:2]) >= (2, 4)
except ImportError:
    IS_THERE = False
if not IS_THERE:
    print("skipped: no torch from 2.4 on", file=sys.stderr)
    sys.exit(0)

from torch import nn
from torch.nn import functional

from torch.utils.flop_counter import FlopCounterMode

from kiln.torch import measure, parameters, partition
from kiln.torch.database import has_program
from kiln.torch.network import Place

FOLDER = os.environ["KILN_TEST_FOLDER"]
PAGE = os.path.abspath("docs/pytorch.md")
# Programs that are chosen without measuring, and used whether they are fast or not.
UNTUNED = {"trials": 0, "always": True}
# Few trials.
SHORT = {"trials": 8, "always": True, "job": {"finalists": 0}}


class Block(nn.Module):
    """A residual block of ResNet."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.short = nn.Sequential()
        if stride != 1 or before != after:
            self.short = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x):
        y = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(y)) + self.short(x))


class ResNet(nn.Module):
    """ResNet-18, narrow."""

    def __init__(self, width=8, classes=10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        blocks = []
        for i in range(4):
            blocks += [Block(widths[i], widths[i + 1], 1 if i == 0 else 2)]
            blocks += [Block(widths[i + 1], widths[i + 1], 1)]
        self.blocks = nn.Sequential(*blocks)
        self.classes = nn.Linear(8 * width, classes)

    def forward(self, x):
        return self.classes(self.blocks(self.stem(x)).mean((2, 3)))


class Encoder(nn.Module):
    """Two layers of a transformer over tokens."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(100, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 2)

    def forward(self, tokens):
        return self.layers(self.words(tokens))


class Bessel(nn.Module):
    """Products around a function that ONNX lacks."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x):
        return self.after(torch.special.bessel_j0(functional.relu(self.before(x))))


def randomized(module, seed=1):
    """The module for inference, with statistics that are not those of a new one."""
    torch.manual_seed(seed)
    for each in module.modules():
        if isinstance(each, nn.BatchNorm2d):
            nn.init.uniform_(each.running_mean, -0.5, 0.5)
            nn.init.uniform_(each.running_var, 0.5, 2.0)
    return module.eval()


class TorchTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        logging.getLogger("kiln.torch").setLevel(logging.CRITICAL)
        os.chdir(FOLDER)
        cls.client = kiln.local(os.path.join(FOLDER, "torch.db"), device="cpu")
        auto_scheduler.use(cls.client)

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def setUp(self):
        torch._dynamo.reset()
        self.was = len(kiln.torch.reports())

    def assert_close(self, found, expected, tolerance=1e-4):
        self.assertEqual(found.shape, expected.shape)
        self.assertEqual(found.dtype, expected.dtype)
        torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance)

    def report(self):
        """The report of the one graph since setUp."""
        reports = kiln.torch.reports()[self.was :]
        self.assertEqual(len(reports), 1, reports)
        return reports[0]

    def compiled(self, module, options=None, **named):
        return torch.compile(module, backend="kiln", options=options or UNTUNED, **named)


class TuneTest(TorchTest):
    def test_a_convolutional_network(self):
        model, x = randomized(ResNet()), torch.rand(1, 3, 64, 64)
        tuned = kiln.tune(model, (x,), **UNTUNED)
        with torch.inference_mode():
            self.assert_close(tuned(x), model(x))
            self.assert_close(tuned(2 * x), model(2 * x))
        part = tuned.report.parts[0]
        self.assertTrue(part.is_used)
        self.assertEqual(tuned.report.left, [])
        self.assertLess(part.error, 1e-4)

    def test_the_second_time_finds_programs(self):
        model, x = randomized(
            nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        ), torch.rand(4, 8)
        jobs = []
        for options in (SHORT, SHORT, {**SHORT, "again": True}):
            tuned = kiln.tune(model, (x,), **options)
            jobs.append(tuned.report.parts[0].job)
            with torch.no_grad():
                self.assert_close(tuned(x), model(x))
        self.assertEqual(len(jobs[0]), len(jobs[2]))
        self.assertNotEqual(jobs[0], jobs[2])
        self.assertIsNone(jobs[1])

    def test_parts_share_the_budget_by_the_work_that_is_to_be_tuned(self):
        model, x = randomized(Bessel()), torch.rand(4, 16)
        for known, again, expected in (
            ([False, False], False, [2 / 3, 1 / 3]),
            ([True, False], False, [1.0]),
            ([False, True], False, [1.0]),
            ([True, True], False, []),
            ([True, False], True, [2 / 3, 1 / 3]),
        ):
            shares = []

            def tune(_, path, share, shares=shares):
                self.assertTrue(os.path.exists(path))
                shares.append(share)
                return "none"

            with (
                mock.patch.object(Place, "has_programs", side_effect=known),
                mock.patch.object(Place, "tune", tune),
            ):
                tuned = kiln.tune(model, (x,), trials=9, always=True, again=again)
            self.assertEqual(shares, expected)
            self.assertEqual([part.is_known for part in tuned.report.parts], known)
            with torch.no_grad():
                self.assert_close(tuned(x), model(x))

    def test_parts_that_repeat_are_tuned_once(self):
        class Layers(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
                self.last = nn.Linear(16, 32)

            def forward(self, x):
                for each in (*self.layers, self.last):
                    x = each(torch.special.bessel_j0(x))
                return x

        model, x, shares = randomized(Layers()), torch.rand(4, 16), []

        def tune(_, path, share):
            del path
            shares.append(share)
            return f"job{len(shares)}"

        with (
            mock.patch.object(Place, "has_programs", return_value=False),
            mock.patch.object(Place, "tune", tune),
        ):
            tuned = kiln.tune(model, (x,), trials=9, always=True)
        self.assertEqual(shares, [3 / 5, 2 / 5])
        self.assertEqual([part.job for part in tuned.report.parts], ["job1"] * 3 + ["job2"])
        with torch.no_grad():
            self.assert_close(tuned(x), model(x))

    def test_a_program_is_looked_for_among_all_targets(self):
        line = (
            '{{"i": [["[\\"matmul_of_a_log\\", 16, 16, 16]", "cuda -keys=cuda,gpu -arch=sm_{} '
            '-max_num_threads=1024 -thread_warp_size=32", [-1, 16, 64, 49152, 2147483647, 1024, 8, '
            '32], "", 0, []], [[], []]], "r": [[{}], 0, 1.0, {}], "v": "v0.6"}}\n'
        )
        path = os.path.join(FOLDER, "others.json")
        with open(path, "w", encoding="utf-8") as file:
            for index in range(80):
                file.write(line.format(86, f"{index + 1}e-6", 1700000000 + index))
            file.write(line.format(90, "1e-3", 1700000100))
        imported = self.client.import_records(path)
        self.assertEqual((imported.imported, imported.errors), (81, ()))
        key = '["matmul_of_a_log", 16, 16, 16]'
        self.assertEqual(len(self.client.best_of_targets(key)), 2)
        for target, is_there in (("cuda -arch=sm_90", True), ("cuda -arch=sm_86", True),
                                 ("cuda -arch=sm_80", False), ("llvm", False)):  # fmt: skip
            self.assertEqual(has_program(self.client, key, target), is_there, target)
        self.assertFalse(has_program(self.client, '["matmul_of_a_log", 8, 8, 8]', "cuda"))

    def test_parameters_are_those_of_the_module(self):
        model, x = randomized(
            nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
        ), torch.rand(2, 8)
        tuned = kiln.tune(model, (x,), **UNTUNED)
        with torch.no_grad():
            before = tuned(x)
            for change in (
                lambda: model[0].weight.mul_(2),
                lambda: model.load_state_dict({k: v + 1 for k, v in model.state_dict().items()}),
                lambda: setattr(model[2], "bias", nn.Parameter(torch.ones(4))),
                lambda: setattr(model[2].weight, "data", torch.rand(4, 16)),
            ):
                change()
                self.assert_close(tuned(x), model(x))
                self.assertFalse(torch.allclose(tuned(x), before))
        self.assertEqual(
            {id(each) for each in tuned.parameters()}, {id(each) for each in model.parameters()}
        )

    def test_the_same_signature(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(8, 4)

            def forward(self, x, *, scale, names=("a", "b")):
                y = self.layer(x["x"]) * scale
                return {names[0]: y, names[1]: (y + 1, x["x"])}

        model, x = Model().eval(), {"x": torch.rand(3, 8)}
        tuned = kiln.tune(model, (x,), {"scale": 2.0}, **UNTUNED)
        with torch.inference_mode():
            found, expected = tuned(x, scale=2.0), model(x, scale=2.0)
            self.assertEqual(list(found), ["a", "b"])
            self.assert_close(found["a"], expected["a"])
            self.assert_close(found["b"][0], expected["b"][0])
            self.assert_close(found["b"][1], x["x"])
            with self.assertLogs("kiln.torch", "WARNING") as said:
                self.assert_close(tuned(x, scale=3.0)["a"], model(x, scale=3.0)["a"])
            self.assertIn("the module itself computes a call", said.output[0])

    def test_what_the_module_itself_computes(self):
        model, x = randomized(nn.Sequential(nn.Linear(8, 4))), torch.rand(2, 8)
        tuned = kiln.tune(model, (x,), **UNTUNED)
        with self.assertLogs("kiln.torch", "WARNING") as said:
            tuned(x).sum().backward()
            self.assertIsNotNone(model[0].weight.grad)
            with torch.no_grad():
                self.assertEqual(tuned(torch.rand(5, 8)).shape, (5, 4))
                self.assertEqual(tuned(torch.rand(7, 8)).shape, (7, 4))
                tuned(torch.rand(5, 8))
                wanted = x.clone().requires_grad_()
                self.assert_close(tuned(wanted), model(wanted))
        self.assertIn("gradients are on", said.output[0])
        self.assertIn(
            "float32[5, 8] on cpu, and the programs are for float32[2, 8] on cpu", said.output[1]
        )
        self.assertEqual(len(said.output), 3)

    def test_other_strides_are_copied(self):
        model, x = randomized(Bessel()), torch.rand(16, 16)
        tuned = kiln.tune(model, (x,), **UNTUNED)
        self.assertEqual([part.is_used for part in tuned.report.parts], [True, True])
        wide = torch.rand(16, 40)
        with torch.no_grad(), self.assertNoLogs("kiln.torch", "WARNING"):
            for given in (x.T, wide[:, 3:19], wide[:, ::2][:, :16], x[:1].expand(16, 16)):
                self.assert_close(tuned(given), model(given))

    def test_examples_with_gaps_and_overlaps(self):
        model, x = randomized(nn.Sequential(nn.Linear(8, 4))), torch.rand(6, 8)
        tuned = kiln.tune(model, (torch.rand(6, 12)[:, :8],), **UNTUNED)
        with torch.no_grad(), self.assertNoLogs("kiln.torch", "WARNING"):
            self.assert_close(tuned(x), model(x))
        tuned = kiln.tune(model, (x[:1].expand(6, 8),), **UNTUNED)
        with torch.no_grad(), self.assertLogs("kiln.torch", "WARNING") as said:
            self.assert_close(tuned(x), model(x))
        self.assertIn("argument 0 has the strides [8, 1]", said.output[0])
        self.assertIn("the programs are for [0, 1], where elements share memory", said.output[0])

    def test_kinds_of_numbers(self):
        class Model(nn.Module):
            def forward(self, x, n):
                return x @ x if n is True else x @ x + n / 2 if isinstance(n, int) else x @ x * n

        model, x = Model().eval(), torch.rand(8, 8)
        for example in (1, 1.0, True, 0.0):
            tuned = kiln.tune(model, (x, example), **UNTUNED)
            self.assertTrue(tuned.report.is_used)
            for given in (1, 1.0, True, 0.0, -0.0):
                found, expected = tuned(x, given), model(x, given)
                self.assert_close(found, expected)
                self.assertTrue(torch.equal(found.signbit(), expected.signbit()))

    def test_threads_with_other_parameters(self):
        layers = randomized(nn.Sequential(*(nn.Linear(8, 8) for _ in range(4))))
        fast, x = copy.deepcopy(layers), torch.rand(2, 8)
        made = []

        def make(values):
            made.append(1)
            time.sleep(0.01)
            weight = values[0].clone()
            return lambda inputs: [inputs[1] @ weight.T]

        followed = parameters.Followed(make, [0], "test")
        followed.start(make([fast[0].weight, x]), [fast[0].weight, x])
        wrong = []

        def calls():
            for _ in range(200):
                for layer in fast:
                    with torch.no_grad():
                        (found,) = followed([layer.weight, x])
                        if not torch.equal(found, x @ layer.weight.T):
                            wrong.append(found)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for each in [pool.submit(calls) for _ in range(8)]:
                each.result()
        self.assertEqual(wrong, [])
        self.assertEqual(len(made), 4)

    def test_parameters_that_change_while_kiln_compiles(self):
        weight, x = torch.ones(3), torch.ones(3)

        def make(values):
            held = values[0].clone()
            weight.add_(1)
            return lambda inputs: [inputs[1] * held]

        followed = parameters.Followed(make, [0], "test")
        followed.start(lambda inputs: [inputs[1] * 5], [torch.zeros(3), x])
        for held in (1, 2, 3):
            self.assert_close(followed([weight, x])[0], held * x)

    def test_what_is_refused(self):
        x = torch.rand(2, 8)
        refuse = self.assertRaisesRegex
        with refuse(kiln.FailedPreconditionError, "in training mode.*module.eval"):
            kiln.tune(nn.Linear(8, 4), (x,))
        with refuse(kiln.InvalidArgumentError, "no option is called speed, expected minutes"):
            kiln.tune(nn.Linear(8, 4).eval(), (x,), speed=1)
        with refuse(kiln.InvalidArgumentError, "found a function, expected a torch.nn.Module"):
            kiln.tune(lambda x: x, (x,))
        with refuse(kiln.InvalidArgumentError, "minutes is -1"):
            kiln.tune(nn.Linear(8, 4).eval(), (x,), minutes=-1)

        class Counts(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("calls", torch.zeros(()))

            def forward(self, x):
                self.calls.add_(1)
                return x @ x.T

        with refuse(kiln.FailedPreconditionError, "Counts writes to calls.*only read"):
            kiln.tune(Counts().eval(), (x,))

    def test_a_slow_program_is_not_used(self):
        model, x = randomized(nn.Sequential(nn.Linear(8, 4))), torch.rand(2, 8)
        tuned = kiln.tune(model, (x,), trials=0)
        part = tuned.report.parts[0]
        others = [each for each in (part.eager_s, part.inductor_s) if each is not None]
        self.assertEqual(part.is_used, part.kiln_s <= min(others))
        self.assertEqual(bool(part.why_not), not part.is_used)
        with torch.no_grad():
            self.assert_close(tuned(x), model(x))

    def test_a_wrong_program_is_not_used(self):
        model, x = randomized(nn.Sequential(nn.Linear(64, 64))), torch.rand(2, 64)
        tuned = kiln.tune(model, (x,), tolerance=-1.0, **UNTUNED)
        self.assertFalse(tuned.report.is_used)
        self.assertIn("differs from eager by", tuned.report.parts[0].why_not)
        with torch.no_grad():
            self.assert_close(tuned(x), model(x))


class BackendTest(TorchTest):
    def test_a_convolutional_network(self):
        model, x = randomized(ResNet()), torch.rand(2, 3, 64, 64)
        fast = self.compiled(model)
        with torch.inference_mode():
            self.assert_close(fast(x), model(x))
        self.assertEqual([part.is_used for part in self.report().parts], [True])
        self.assertEqual(self.report().left, [])

    def test_channels_last(self):
        model = randomized(nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()))
        model = model.to(memory_format=torch.channels_last)
        x = torch.rand(2, 3, 12, 12).to(memory_format=torch.channels_last)
        with torch.inference_mode():
            found, expected = self.compiled(model)(x), model(x)
        self.assert_close(found, expected)
        self.assertEqual(found.stride(), expected.stride())
        self.assertTrue(self.report().is_used)

    def test_a_transformer(self):
        model, tokens = randomized(Encoder()), torch.randint(100, (2, 12))
        fast = self.compiled(model)
        with torch.inference_mode():
            self.assert_close(fast(tokens), model(tokens))
        self.assertEqual([part.is_used for part in self.report().parts], [True])
        self.assertEqual(self.report().left, [])

    def test_an_operator_that_kiln_lacks(self):
        model, x = randomized(Bessel()), torch.rand(4, 16)
        fast = self.compiled(model)
        with torch.no_grad():
            self.assert_close(fast(x), model(x))
            self.assert_close(fast(3 * x), model(3 * x))
        report = self.report()
        self.assertEqual([part.is_used for part in report.parts], [True, True])
        self.assertEqual([each.operator for each in report.left][:1], ["aten.special_bessel_j0"])
        self.assertIn("left to PyTorch: Kiln's converter has no rule for it", str(report))

    def test_shapes_and_training_are_left_to_inductor(self):
        model = randomized(nn.Sequential(nn.Linear(8, 4)))
        fast = self.compiled(model)
        fast(torch.rand(2, 8)).sum().backward()
        self.assertIsNotNone(model[0].weight.grad)
        self.assertIn("traced for training", str(self.report()))
        torch._dynamo.reset()
        with torch.no_grad():
            fast = self.compiled(model, dynamic=True)
            self.assert_close(
                fast(torch.rand(3, 8)), fast(torch.rand(3, 8)) * 0 + fast(torch.rand(3, 8)), 10
            )
        self.assertIn("dynamic", str(kiln.torch.reports()[-1]))

    def test_layers_with_one_graph_have_their_own_parameters(self):
        layers = randomized(nn.Sequential(*(nn.Linear(8, 8) for _ in range(3))))
        fast = copy.deepcopy(layers)
        for layer in fast:
            layer.compile(backend="kiln", options=UNTUNED)
        x = torch.rand(2, 8)
        with torch.inference_mode():
            self.assert_close(fast(x), layers(x))
            self.assert_close(fast(x), layers(x))

    def test_inputs_that_are_written_to(self):
        def step(x, w, seen):
            seen.add_(1)
            return x @ w + seen

        x, w, seen = torch.rand(3, 4), torch.rand(4, 5), torch.zeros(5)
        with torch.no_grad():
            found = self.compiled(step)(x, w, seen)
        self.assert_close(found, x @ w + 1)
        self.assert_close(seen, torch.ones(5))

    def test_statistics_are_written_once(self):
        model = randomized(nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4))).train()
        other, x = copy.deepcopy(model), torch.rand(2, 3, 8, 8)
        fast = self.compiled(model)
        with torch.no_grad():
            self.assert_close(fast(x), other(x))
            with self.assertNoLogs("kiln.torch", "WARNING"):
                self.assert_close(fast(x), other(x))
        self.assert_close(model[1].running_mean, other[1].running_mean)
        self.assert_close(model[1].running_var, other[1].running_var)
        self.assertEqual(model[1].num_batches_tracked, other[1].num_batches_tracked)
        self.assertTrue(self.report().is_used, str(self.report()))
        self.assertIn("for training; model.eval() ends that", str(self.report()))

    def test_without_inductor(self):
        model, x = randomized(Bessel()), torch.rand(4, 16)
        broken = mock.patch(
            "torch._inductor.compile_fx.compile_fx", side_effect=RuntimeError("no C++ compiler")
        )
        with broken:
            fast = self.compiled(model)
            with torch.no_grad():
                self.assert_close(fast(x), model(x))
            self.assertEqual([part.is_used for part in self.report().parts], [True, True])
            why = "Inductor does not run here, and eager computes the {}: RuntimeError: no C++ comp"
            self.assertIn(why.format("rest"), str(self.report()))
            torch._dynamo.reset()
            self.assert_close(fast(x), model(x))
            fast(x).sum().backward()
            self.assertIsNotNone(model.after.weight.grad)
            report = kiln.torch.reports()[-1]
            self.assertIn("traced for training", str(report))
            self.assertIn(why.format("graph"), str(report))

    def test_a_part_is_timed_beside_the_mode_of_the_user(self):
        modes = []

        def compiled(module, values, mode=None):
            del module, values
            modes.append(mode)
            return None, "it is not asked"

        model, x = randomized(nn.Sequential(nn.Linear(8, 4))), torch.rand(2, 8)
        with mock.patch("kiln.torch.inductor.compiled", compiled), torch.no_grad():
            torch.compile(
                model, backend=functools.partial(kiln.torch.backend, mode="max-autotune"),
                options={"trials": 0},
            )(x)  # fmt: skip
        self.assertEqual(modes[:1], ["max-autotune"])

    def test_a_name_of_an_option(self):
        with self.assertRaisesRegex(Exception, "no option is called speed"):
            self.compiled(lambda x: x @ x, {"speed": 1})(torch.rand(4, 4))


class RulesTest(TorchTest):
    """The rules of operators: many in one graph, beside eager."""

    def check(self, function, *inputs, tolerance=1e-4):
        with torch.inference_mode():
            found = self.compiled(function, fullgraph=True)(*inputs)
            expected = function(*inputs)
        for a, b in zip(found, expected):
            self.assert_close(a, b, tolerance)
        self.assertTrue(self.report().is_used, str(self.report()))
        self.assertEqual([str(each) for each in self.report().left], [])

    def test_elementwise(self):
        f = functional

        def all_of(x, w, i):
            y = x @ w
            p = y.abs() + 0.5
            return (
                y.relu(), y.sigmoid(), y.tanh(), y.exp(), p.log(), p.sqrt(), p.rsqrt(),
                p.reciprocal(),
                y.sin(), y.cos(), torch.erf(y), y.floor(), y.ceil(), y.round(), y.trunc(), y.sign(),
                -y,
                f.gelu(y), f.gelu(y, approximate="tanh"), f.silu(y), f.hardswish(y),
                f.hardsigmoid(y),
                f.relu6(y), f.hardtanh(y), f.leaky_relu(y, 0.2), f.elu(y), f.softplus(y, 2, 1),
                f.mish(y),
                p.log2(), p.log10(), y.exp2(), y.square(), y**3, p**y, 2.0**y, y.clamp(-0.5, 0.5),
                y.clamp(min=0.1), y + 2 * y, torch.add(y, p, alpha=3), torch.sub(1, y), 1 - y,
                y / p,
                y / 3, i / 4, i + 1.5, i * 2, i + y.int(), torch.div(y, 0.3, rounding_mode="floor"),
                torch.remainder(y, 0.7), torch.fmod(y, 0.7), torch.maximum(y, x @ w * 2), i % 3,
                y > 0, y >= p, y < 0.1, y <= 0, y == y, y != 0.5, (y > 0) & (p > 1),
                (y > 0) | (p > 1),
                ~(y > 0), torch.where(y > 0, y, 0.5), y.masked_fill(y > 0, -1.0),
                torch.logical_not(y),
                i & 3, i | 4, i ^ 1, y.isnan(), y.to(torch.float64), y.to(torch.int32),
                y.half().float(),
            )  # fmt: skip

        torch.manual_seed(1)
        self.check(
            all_of,
            torch.randn(4, 6),
            torch.randn(6, 5),
            torch.arange(20).view(4, 5) - 7,
            tolerance=2e-3,
        )

    def test_movement(self):
        f = functional

        def all_of(x, w, i):
            y = (x @ w).view(2, 3, 4, 6)
            a, b = y.chunk(2, dim=-1)
            c, d, e = y.split([1, 2, 3], dim=3)
            return (
                y.permute(3, 0, 2, 1), y.transpose(1, 2), y.flatten(1), y.unsqueeze(1),
                y[:, :1].squeeze(1),
                y[:, 1], y[:, :, 1:4:2], y[..., -2:], a, b, c, d, e,
                torch.cat([y, y.float() + 1], 1),
                torch.stack([y, -y], -1), y[:1].expand(5, 3, 4, 6), y.repeat(2, 1, 1, 2),
                y.flip(1, 3),
                y.roll((1, -2), (2, 3)), f.pad(y, (1, 2, 0, 1)),
                f.pad(y, (1, 2, 1, 0), mode="reflect"),
                f.pad(y, (1, 2, 1, 0), mode="replicate"), y.tril(), y.triu(1),
                f.pixel_shuffle(y.view(1, 24, 2, 3), 2),
                y[:, i[:2] % 3, i[2:]], y[:, :, i[:2, None] % 4, i[2:]], y[i[:1] % 2, :, i[1:] % 4],
                *y.unbind(1), y.reshape(6, 24)[i], y.view(-1).index_select(0, i),
                y.view(6, 24).gather(1, i.view(2, 2)),
                y.view(6, 24).topk(3)[0], torch.zeros_like(y) + y, y + torch.arange(6),
                y * torch.full((6,), 2.0),
                f.embedding(i, y.view(6, 24)), torch.eye(6) + y.view(24, 6)[:6],
            )  # fmt: skip

        torch.manual_seed(1)
        self.check(all_of, torch.randn(6, 5), torch.randn(5, 24), torch.tensor([1, 5, 2, 0]))

    def test_reductions_and_normalizations(self):
        f = functional

        def all_of(x, w, scale, shift):
            y = (x @ w).view(2, 4, 3, 6)
            return (
                y.sum(), y.sum(1), y.sum((1, 3), keepdim=True), y.mean(), y.mean(-1), y.amax(2),
                y.amin((0, 1)),
                y.max(), y.min(), *y.max(1), *y.min(2, keepdim=True), y.argmax(1), y.argmin(),
                y.prod(1),
                y.var(1), y.std((2, 3)), *torch.var_mean(y, 3), y.logsumexp(1), y.norm(dim=1),
                y.norm(1, dim=2),
                (y > 0).any(1), (y > 0).all(), y.cumsum(2), y.softmax(-1), y.log_softmax(1),
                f.layer_norm(y, (6,), scale, shift), f.layer_norm(y, (3, 6)), f.group_norm(y, 2),
                f.group_norm(y, 2, scale[:4], shift[:4]), f.rms_norm(y, (6,), scale, 1e-5),
                f.batch_norm(y, shift[:4], scale[:4].abs() + 1, scale[:4], shift[:4]),
            )  # fmt: skip

        torch.manual_seed(1)
        self.check(
            all_of,
            torch.randn(6, 5),
            torch.randn(5, 24),
            torch.randn(6),
            torch.randn(6),
            tolerance=1e-3,
        )

    def test_products_and_images(self):
        f = functional

        def all_of(x, w, v, t, bias):
            y = f.conv2d(x, w, bias, stride=2, padding=1)
            z = f.conv_transpose2d(y, t, stride=2, padding=1, output_padding=1)
            rows = y.flatten(2)
            return (
                y, z, f.conv2d(x, v, padding=2, dilation=2, groups=4),
                f.conv1d(rows, w[:, :, 0], padding=1),
                f.max_pool2d(x, 3, 2, 1), f.max_pool2d(x, 2, ceil_mode=True),
                f.avg_pool2d(x, 3, 2, 1),
                f.avg_pool2d(x, 3, 2, 1, count_include_pad=False), f.adaptive_avg_pool2d(x, 1),
                f.adaptive_avg_pool2d(x, 3), f.adaptive_max_pool2d(x, 3),
                f.interpolate(x, scale_factor=2),
                f.interpolate(x, size=(12, 18), mode="bilinear"), rows @ rows.transpose(1, 2),
                f.interpolate(x, size=(12, 18), mode="bilinear", align_corners=True),
                torch.addmm(bias, rows[0].T, w[:, :, 0, 0], beta=0.5, alpha=2.0),
                rows[0] @ rows[0, 1],
                torch.baddbmm(rows, rows, rows.new_ones(2, 25, 25)),
                torch.einsum("bci,bdi->bcd", rows, rows),
                f.linear(rows, rows[0, :3], None), f.linear(rows, rows[0, :4], bias),
            )  # fmt: skip

        torch.manual_seed(1)
        self.check(
            all_of, torch.randn(2, 4, 9, 9), torch.randn(4, 4, 3, 3), torch.randn(8, 1, 3, 3),
            torch.randn(4, 5, 3, 3), torch.randn(4), tolerance=1e-3,
        )  # fmt: skip

    def test_a_factor_that_is_not_that_of_the_extents(self):
        class Resized(nn.Conv2d):
            def forward(self, x):
                y = super().forward(x)
                return (
                    functional.interpolate(y, scale_factor=1.7),
                    functional.interpolate(y, scale_factor=1.7, mode="bilinear"),
                    functional.interpolate(y, scale_factor=1.7, mode="bilinear", align_corners=True),
                    functional.interpolate(y, scale_factor=(2, 1 / 3)),
                )

        module, x = randomized(Resized(2, 3, 3)), torch.rand(1, 2, 11, 11)
        tuned = kiln.tune(module, (x,), **UNTUNED)
        with torch.inference_mode():
            for found, expected in zip(tuned(x), module(x)):
                self.assert_close(found, expected)
        self.assertEqual([part.is_used for part in tuned.report.parts], [True])
        self.assertEqual(
            sorted(str(each) for each in tuned.report.left),
            [
                f"aten.upsample_{name}2d.vec is left to PyTorch: its factor is 1.7, and it makes "
                "15 of 9 pixels"
                for name in ("bilinear", "nearest")
            ],
        )

    def test_elu_with_a_scale(self):
        def selu(x, w):
            elu = torch.ops.aten.elu.default
            return elu(x @ w, 1.5, scale=2.0), elu(x @ w, alpha=0.5)

        x, w = torch.randn(4, 4), torch.randn(4, 4)
        with torch.inference_mode():
            for found, expected in zip(self.compiled(selu)(x, w), selu(x, w)):
                self.assert_close(found, expected)
        self.assertIn("aten.elu is left to PyTorch: its scales are not 1", str(self.report()))

    def test_a_constant_of_the_graph(self):
        def shifted(x, w):
            return x @ w + torch.tensor([1.0, 2.0, 3.0, 4.0])

        x, w = torch.randn(4, 4), torch.randn(4, 4)
        with torch.inference_mode():
            self.assert_close(self.compiled(shifted)(x, w), shifted(x, w))
        self.assertTrue(self.report().is_used, str(self.report()))

    def test_the_work_of_products(self):
        f = functional
        products = {
            lambda a, b: a @ b: ((6, 40), (40, 3)),
            lambda a, b: f.linear(a, b): ((2, 5, 7), (3, 7)),
            lambda a, b: torch.baddbmm(a, a, b): ((2, 6, 6), (2, 6, 6)),
            lambda a, b: torch.addmm(a[0, :4], a, b): ((3, 50), (50, 4)),
            lambda a, b: f.conv2d(a, b, groups=2, stride=2): ((2, 6, 9, 9), (8, 3, 3, 3)),
            lambda a, b: f.conv_transpose2d(a, b, groups=2, stride=2): ((1, 6, 5, 5), (6, 4, 3, 3)),
        }
        for product, shapes in products.items():
            inputs = [torch.rand(shape) for shape in shapes]
            with FlopCounterMode(display=False) as counter:
                product(*inputs)
            self.assertEqual(self.work(product, inputs), counter.get_total_flops(), shapes)
        q, k, v = (torch.rand(2, 4, *shape) for shape in ((6, 8), (10, 8), (10, 8)))
        found = self.work(f.scaled_dot_product_attention, (q, k, v))
        self.assertEqual(found, 2 * (2 * 4 * 6 * 10) * (8 + 8))

    def work(self, function, inputs):
        """The work of the one part of a function, as the tuner counts it."""
        found = []

        def parts_of(module, frozen):
            parts, left = partition.parts_of(module, frozen)
            found.extend(part.flops() for part in parts)
            return parts, left

        torch._dynamo.reset()
        with torch.inference_mode(), mock.patch("kiln.torch.graph_program.parts_of", parts_of):
            self.compiled(lambda *given: function(*given))(*inputs)
        self.assertEqual(len(found), 1)
        return found[0]

    def test_products_of_rows(self):
        f = functional

        def all_of(x, w, v, bias):
            y = f.linear(x, w, bias)
            return (
                f.gelu(y),
                x + f.linear(f.relu(x), v),
                f.linear(x.view(6, 8), w, bias).view(3, 2, 12),
                (x.view(6, 8) @ v).view(2, 3, 8),
                torch.addmm(bias, x.view(6, 8), w.T.contiguous()).view(2, 3, 12).relu(),
                torch.addmm(bias, x.view(6, 8), w.T, alpha=2).view(2, 3, 12),
                f.linear(x, w, bias).view(2, 36),
                x @ v,
            )

        torch.manual_seed(1)
        self.check(all_of, *(torch.randn(size) for size in ((2, 3, 8), (12, 8), (8, 8), (12,))))

    def test_a_linear_layer_and_what_follows_it_are_one_task(self):
        model = randomized(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)))
        x = torch.rand(2, 3, 8)
        with torch.inference_mode():
            self.assert_close(self.compiled(model)(x), model(x))
        names = [name for name, _ in self.report().parts[0].tasks]
        self.assertEqual(len(names), 2, names)
        self.assertIn("add + gelu", names[0].replace("erf", "gelu"), names)

    def test_attention(self):
        f = functional

        def all_of(x, mask, bias):
            q, k, v = x.unbind(0)
            return (
                f.scaled_dot_product_attention(q, k, v),
                f.scaled_dot_product_attention(q, k, v, is_causal=True),
                f.scaled_dot_product_attention(q, k, v, attn_mask=mask),
                f.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.3),
            )

        torch.manual_seed(1)
        mask = torch.rand(12, 12) > 0.3
        self.check(
            all_of,
            torch.randn(3, 2, 4, 12, 8),
            mask | torch.eye(12, dtype=torch.bool),
            torch.randn(12, 12),
        )


class OpTest(TorchTest):
    def test_a_tuned_product(self):
        product = kiln.torch.op(
            "kilntest::product", kiln.op("matmul", 16, 24, 32), device="cpu", **SHORT
        )
        a, b = torch.rand(16, 32), torch.rand(32, 24)
        self.assert_close(product(a, b), a @ b)
        self.assert_close(torch.ops.kilntest.product(a.T.contiguous().T, b), a @ b)
        torch.library.opcheck(
            product,
            (a, b),
            test_utils=("test_schema", "test_faketensor", "test_autograd_registration"),
        )
        compiled = torch.compile(lambda a, b: product(a, b).relu() + 1, fullgraph=True)
        self.assert_close(compiled(a, b), a @ b + 1)
        with self.assertRaisesRegex(
            kiln.FailedPreconditionError, "kilntest::product has no gradient"
        ):
            product(a.requires_grad_(), b).sum().backward()
        for wrong in (torch.rand(16, 31), torch.rand(16, 32).double()):
            with self.assertRaisesRegex(
                kiln.InvalidArgumentError, "kilntest::product has no program for float"
            ):
                product(wrong, b)

    def test_a_compiled_file(self):
        path = os.path.join(FOLDER, "sum.kiln")
        text = (
            "input A: float32[4, 6]\nB[i: 4] = sum(k: 6) A[i, k]\nC[i: 4, k: 6] = A[i, k] * 2.0\n"
        )
        self.client.compile(kiln.computation(text), path, target="llvm")
        both = kiln.torch.op("kilntest::both", path)
        a = torch.rand(4, 6)
        found = both(a)
        self.assertEqual(len(found), 2)
        for each in found:
            self.assert_close(each, a.sum(1) if each.ndim == 1 else a * 2)

    def test_torch_compile_chooses(self):
        shapes = [kiln.op("matmul", n, 24, 32) for n in (8, 16)]
        either = kiln.torch.op(
            "kilntest::either", shapes, device="cpu", reference=lambda a, b: a @ b, **UNTUNED
        )
        compiled = torch.compile(lambda a, b: either(a, b) + 1, fullgraph=True, dynamic=False)
        for rows in (8, 16, 5):
            a, b = torch.rand(rows, 32), torch.rand(32, 24)
            self.assert_close(either(a, b), a @ b)
            self.assert_close(compiled(a, b), a @ b + 1)

    def test_several_shapes_under_plain_compile(self):
        shapes = [kiln.op("matmul", n, 24, 32) for n in (6, 10, 12)]
        for reference in (None, lambda a, b: a @ b):
            several = kiln.torch.op(
                f"kilntest::several{reference is None}", shapes, device="cpu", reference=reference,
                **UNTUNED,
            )  # fmt: skip
            compiled = torch.compile(lambda a, b, op=several: op(a, b) + 1, fullgraph=True)
            for rows in (6, 10, 12) if reference is None else (6, 10, 12, 5):
                a, b = torch.rand(rows, 32), torch.rand(32, 24)
                self.assert_close(compiled(a, b), a @ b + 1)

    def test_what_is_refused(self):
        refuse = self.assertRaisesRegex
        with refuse(
            kiln.InvalidArgumentError, "found the name 'product', expected NAMESPACE::NAME"
        ):
            kiln.torch.op("product", kiln.op("matmul", 8, 8, 8))
        with refuse(kiln.InvalidArgumentError, "found a int, expected a kiln.Computation"):
            kiln.torch.op("kilntest::number", 3)
        with refuse(kiln.InvalidArgumentError, "expected the same inputs and outputs"):
            kinds = [kiln.op("matmul", 8, 8, 8), kiln.op("matmul", 8, 8, 8, dtype="float64")]
            kiln.torch.op("kilntest::kinds", kinds, device="cpu", **UNTUNED)


class MeasureTest(unittest.TestCase):
    def test_values_that_are_not_finite(self):
        inf, nan = float("inf"), float("nan")
        expected = torch.tensor([1.0, nan, inf, -inf])
        self.assertEqual(measure.difference(expected.clone(), expected), 0.0)
        largest = torch.finfo(torch.float32).max
        for index, wrong in ((1, 0.0), (1, inf), (2, largest), (2, nan), (3, -largest), (3, inf)):
            found = expected.clone()
            found[index] = wrong
            self.assertEqual(measure.difference(found, expected), inf, (index, wrong))
        self.assertEqual(measure.difference(torch.tensor([nan]), torch.tensor([1.0])), inf)

    def test_floats_of_8_bits(self):
        expected = torch.tensor([1.0, -2.0, float("nan")])
        for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
            found = torch.tensor([1.0, -1.0, float("nan")]).to(dtype)
            self.assertEqual(measure.difference(found, expected.to(dtype)), 0.5)


class DocsTest(TorchTest):
    """The blocks of Python on the page, with small budgets."""

    def test_the_page(self):
        with open(PAGE, encoding="utf-8") as file:
            blocks = re.findall(r"^```python\n(.*?)^```", file.read(), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), 3)
        names = {}
        for block in blocks:
            for pattern, small in (
                (r"minutes=3", "trials=0, always=True"),
                (r'"minutes": 3', '"trials": 0, "always": True'),
                (r"trials=64", "trials=2, device='cpu', job={'finalists': 0}"),
                (r"\b512\b", "16"),
            ):
                block = re.sub(pattern, small, block)
            with contextlib.redirect_stdout(io.StringIO()) as said:
                exec(compile(block, PAGE, "exec"), names)  # pylint: disable=exec-used
            if "reports" in block or "report)" in block:
                self.assertIn("are computed by Kiln", said.getvalue())
            if "y" in names:
                with torch.no_grad():
                    self.assert_close(names["y"].clone(), names["model"](names["x"]))
        self.assert_close(names["c"], names["a"] @ names["b"])


class TasksTest(TorchTest):
    def test_tasks_of_a_module(self):
        tasks, weights = auto_scheduler.extract_tasks(
            randomized(ResNet()), target="llvm", example_inputs=(torch.rand(1, 3, 64, 64),)
        )
        self.assertEqual(len(tasks), len(weights))
        self.assertGreater(sum(weights), len(tasks))
        self.assertTrue(
            any("conv 1,16,16,8" in task.desc for task in tasks), [task.desc for task in tasks]
        )

    def test_parts_share_tasks(self):
        class Twice(Bessel):
            def forward(self, x):
                return self.before(torch.special.bessel_j0(self.before(x)[:, :16]))

        tasks, weights = auto_scheduler.extract_tasks(
            randomized(Twice()), target="llvm", example_inputs=(torch.rand(4, 16),)
        )
        self.assertEqual(weights.count(2.0) + len(tasks), 2, weights)

    def test_a_model_of_onnx(self):
        try:
            import onnx
            from onnx import TensorProto, helper
        except ImportError:
            self.skipTest("no package onnx")
        if not hasattr(onnx, "ModelProto"):
            self.skipTest("no package onnx")
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])
        w = helper.make_tensor_value_info("w", TensorProto.FLOAT, [8, 6])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 6])
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x, w], [y])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        tasks, weights = auto_scheduler.extract_tasks(model, target="llvm")
        self.assertEqual((len(tasks), weights), (1, [1.0]))

    def test_what_is_refused(self):
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "needs example_inputs"):
            auto_scheduler.extract_tasks(nn.Linear(2, 2).eval(), target="llvm")
        with self.assertRaisesRegex(
            kiln.InvalidArgumentError, "found a int, expected 'network:NAME'"
        ):
            auto_scheduler.extract_tasks(3, target="llvm")
        with self.assertRaisesRegex(kiln.InvalidArgumentError, "no part with a product.*bessel"):

            class Only(nn.Module):
                def forward(self, x):
                    return torch.special.bessel_j0(x)

            auto_scheduler.extract_tasks(
                Only().eval(), target="llvm", example_inputs=(torch.rand(3),)
            )


if __name__ == "__main__":
    unittest.main()
