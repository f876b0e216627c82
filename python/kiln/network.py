"""Compiled networks: load, call, time."""
import ctypes
import html
import os
import statistics
import time
import weakref
from dataclasses import dataclass
from typing import NamedTuple

from kiln import arrays
from kiln.errors import FailedPreconditionError, InvalidArgumentError, KilnError

try:
    from kiln._caller import Caller
# Calls go by ctypes if the module is not there.
except ImportError:
    Caller = None
from kiln.library import BenchOptions, DLTensor, KernelInfo, LoadOptions, TensorInfo, check, library
from kiln.tables import duration, table


class Tensor(NamedTuple):
    """An input or output of a network."""

    name: str
    dtype: str
    shape: tuple


class Kernel(NamedTuple):
    """A kernel of a network, in the order of their execution."""

    name: str
    workload: str
    # Source of the kernel's schedule: "tuned", "reused", "untuned".
    source: str
    record: str
    expected_s: float
    flops: float
    bytes: float

    def _repr_html_(self):
        """A row of its figures, for notebooks."""
        return table(_KERNEL_HEAD, [_kernel_row(self)])


_KERNEL_HEAD = ("kernel", "computes", "schedule", "expected", "GFLOP/s", "GB/s")


def _kernel_row(kernel):
    known = kernel.expected_s > 0
    rates = [f"{each / kernel.expected_s / 1e9:.1f}" if known and each > 0 else None
             for each in (kernel.flops, kernel.bytes)]
    return [kernel.name, kernel.workload, kernel.source, duration(kernel.expected_s or None), *rates]


@dataclass(frozen=True)
class BenchmarkResult:
    """Timings of a program, in seconds."""

    results: tuple

    @property
    def mean(self):
        """Mean of the readings."""
        return statistics.fmean(self.results)

    @property
    def median(self):
        """Median of the readings."""
        return statistics.median(self.results)

    @property
    def min(self):
        """The least reading."""
        return min(self.results)

    @property
    def max(self):
        """The largest reading."""
        return max(self.results)

    @property
    def std(self):
        """Standard deviation of the readings."""
        return statistics.pstdev(self.results)


class Network:
    """A compiled network, on its device. Calls from several threads wait for each other."""

    def __init__(self, handle):
        functions = library()
        self._handle = handle
        # The finalizer does not run at exit, when threads may still be in a call.
        weakref.finalize(self, functions.kiln_free, handle).atexit = False
        self._device = functions.kiln_device(handle)
        self.inputs = self._tensors(functions.kiln_num_inputs, functions.kiln_input_info)
        self.outputs = self._tensors(functions.kiln_num_outputs, functions.kiln_output_info)
        self._on_gpu = self._device.device_type != arrays.CPU
        # A type that no array has stands for that of numpy where numpy is not installed.
        self._numpy_array = arrays.numpy_array_type()
        self._new_numpy = [arrays.numpy_maker(tensor) for tensor in self.outputs]
        self._num_inputs = len(self.inputs)
        self._run_fast = self._fast_call(functions)

    def __repr__(self):
        def text(tensors):
            return ", ".join(f"{t.name}: {t.dtype}{list(t.shape)}" for t in tensors)

        return f"<kiln.Network ({text(self.inputs)}) -> ({text(self.outputs)}) on {self.device}>"

    def _repr_html_(self):
        """Inputs, outputs and kernels, for notebooks."""
        rows = [_kernel_row(kernel) for kernel in self.kernels]
        return f"<p>{html.escape(repr(self))}</p>" + table(_KERNEL_HEAD, rows)

    @property
    def device(self):
        """"cpu", "cuda:0"."""
        return "cpu" if self._device.device_type == arrays.CPU else f"cuda:{self._device.device_id}"

    def __call__(self, *given, out=None, stream=None, **named):
        """Outputs for these inputs, in order or by name: one array, or a tuple of them.

        They are of the library of the first input that is not numpy's (PyTorch, cupy, JAX, tvm-ffi), on its device,
        else numpy's. `out`: write there instead, into an array, or a sequence of them, which is returned. (An input
        whose name is `out` or `stream` goes by its place.)

        On a GPU the run is queued on `stream`, which is a stream of PyTorch or cupy, or one with __cuda_stream__; if
        it is None, on the current stream of the inputs' library. Nothing is copied and nobody waits, and a stream may
        be captured. Arrays that are not all on the GPU, and those of JAX, which has no streams, are copied as needed,
        and the call waits for its outputs. KilnError: an array does not fit, before anything runs.
        """
        if stream is None and not named and len(given) == self._num_inputs:
            if out is None:
                outputs = self._quick_outputs(given)
            else:
                outputs = out if type(out) is tuple else tuple(out) if type(out) is list else (out,)
            if self._run_fast(None, *given, *outputs):
                return outputs[0] if len(outputs) == 1 else outputs
            # Arrays that were made for the outputs are not made again.
            if out is None and outputs:
                out = outputs
        return self._call(given, out, stream, named)

    def _quick_outputs(self, given):
        """New outputs for a call that may go the fast way; an array too few if it may not."""
        for array in given:
            if type(array) is not self._numpy_array:
                like = arrays.library_array(given)
                if like is None or arrays.is_jax(like):
                    return ()
                return tuple([arrays.new_array(tensor, like) for tensor in self.outputs])
        return tuple([make() for make in self._new_numpy])

    def _call(self, given, out, stream, named):
        """A call of any arrays, which says what does not fit."""
        if named or len(given) != len(self.inputs):
            given = self._in_order(given, named)
        number = None if stream is None else self._stream_number(stream)
        like = arrays.library_array(given)
        if out is None and like is not None and arrays.is_jax(like):
            return self._call_jax(given, like, number)
        if out is None:
            outputs = self._new_outputs(like, number)
        else:
            outputs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        if number is None and self._on_gpu and like is not None:
            number = arrays.current_stream(like, self._device.device_id)
        if not self._run_fast(number, *given, *outputs):
            given_stream = None if stream is None else number
            self._run(self._hold(given, given_stream), outputs, given_stream)
        return outputs[0] if len(outputs) == 1 else outputs

    def _stream_number(self, stream):
        if not self._on_gpu:
            raise FailedPreconditionError("the network runs on the CPU, which has no streams; leave stream= away")
        return arrays.stream_number(stream)

    def _new_outputs(self, like, number):
        """Arrays beside `like`. Their memory is given out for work in the stream of this number."""
        if number is None or like is None:
            return tuple([arrays.new_array(tensor, like) for tensor in self.outputs])
        with arrays.in_stream(like, number):
            return tuple([arrays.new_array(tensor, like) for tensor in self.outputs])

    def _call_jax(self, given, like, number):
        """JAX's arrays are written once only, here; JAX must not see them before that, so the run is waited for."""
        if number is not None:
            raise InvalidArgumentError("JAX has no streams to share; leave stream= away, or give arrays of cupy")
        made = [arrays.new_jax(tensor, like) for tensor in self.outputs]
        self._run_tensors(self._hold(given), [held for _, held in made], None)
        return made[0][0] if len(made) == 1 else tuple(array for array, _ in made)

    def _fast_call(self, functions):
        """A function of a stream, inputs and outputs that runs the network if they fit, and says whether it has."""
        wanted = [(*arrays.buffer_type(tensor.dtype), tensor.shape) for tensor in self.inputs + self.outputs]
        if Caller is None or len(wanted) > 64 or any(len(shape) > 32 for *_, shape in wanted):
            return lambda *_: False
        run, on_stream = (
            ctypes.cast(function, ctypes.c_void_p).value
            for function in (functions.kiln_run_tensors, functions.kiln_run_on_stream)
        )
        device = self._device
        return Caller(
            self._handle, run, on_stream, wanted, len(self.inputs), device.device_type, device.device_id
        ).run

    def bench(self, *inputs, warmup=3, repeat=10, number=1, min_repeat_s=0.0):
        """Seconds of one run, a list of `repeat` readings. Without inputs: of random ones."""
        options = BenchOptions(ctypes.sizeof(BenchOptions), warmup, repeat, number, min_repeat_s)
        seconds = (ctypes.c_double * repeat)()
        held = self._checked(inputs)
        count = check(
            library().kiln_bench(self._handle, ctypes.byref(options), _pointers(held), len(held), seconds, repeat)
        )
        return list(seconds[:count])

    def time_evaluator(self, func_name="main", dev=None, number=10, repeat=1, min_repeat_ms=0, cooldown_interval_ms=0):
        """A function of the inputs (none: random ones) that times `repeat` readings of `number` runs each.

        A reading has more runs where it would be shorter than `min_repeat_ms`, and there is a pause of
        `cooldown_interval_ms` before each but the first. `func_name` and `dev` do nothing: a network has one of each.
        """
        del func_name, dev
        for name, value, least in (("number", number, 1), ("repeat", repeat, 1), ("min_repeat_ms", min_repeat_ms, 0),
                                   ("cooldown_interval_ms", cooldown_interval_ms, 0)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value < 2**31:
                raise InvalidArgumentError(f"{name} is {value!r}, expected a number from {least} on")

        def evaluate(*inputs):
            times = []
            for _ in range(int(repeat)):
                if times and cooldown_interval_ms:
                    time.sleep(cooldown_interval_ms / 1000)
                warmup = 0 if times else 3
                times += self.bench(
                    *inputs[: len(self.inputs)], warmup=warmup, repeat=1, number=int(number),
                    min_repeat_s=min_repeat_ms / 1000,
                )
            return BenchmarkResult(tuple(times))

        return evaluate

    def profile(self, *inputs, number=20):
        """[(Kernel, seconds), ...] in the order of execution."""
        kernels = self.kernels
        seconds = (ctypes.c_double * max(1, len(kernels)))()
        held = self._checked(inputs)
        check(library().kiln_profile(self._handle, number, _pointers(held), len(held), seconds, len(kernels)))
        return list(zip(kernels, seconds))

    @property
    def kernels(self):
        kernels = []
        for index in range(library().kiln_num_kernels(self._handle)):
            info = KernelInfo()
            check(library().kiln_kernel_info(self._handle, index, ctypes.byref(info)))
            texts = [text.decode() for text in (info.name, info.workload, info.source, info.record)]
            kernels.append(Kernel(*texts, info.expected_s, info.flops, info.bytes))
        return kernels

    def _tensors(self, count, info_of):
        tensors = []
        for index in range(count(self._handle)):
            info = TensorInfo()
            check(info_of(self._handle, index, ctypes.byref(info)))
            tensors.append(Tensor(info.name.decode(), info.dtype.decode(), tuple(info.shape[: info.ndim])))
        return tensors

    def _in_order(self, given, named):
        names = [tensor.name for tensor in self.inputs]
        unknown = [name for name in named if name not in names[len(given):]]
        if unknown or len(given) + len(named) != len(names):
            raise KilnError(f"the inputs are {', '.join(names)}: {len(given)} given, and by name {list(named)}")
        return list(given) + [named[name] for name in names[len(given):]]

    def _hold(self, inputs, stream=None):
        return [arrays.hold(array, tensor, stream) for array, tensor in zip(inputs, self.inputs)]

    def _run(self, held, outputs, stream=None):
        if len(outputs) != len(self.outputs):
            names = ", ".join(tensor.name for tensor in self.outputs)
            raise KilnError(f"the outputs are {names}: {len(outputs)} arrays given")
        written = [arrays.hold_output(array, tensor, stream) for array, tensor in zip(outputs, self.outputs)]
        self._run_tensors(held, written, stream)

    def _run_tensors(self, held, written, stream):
        functions = library()
        tensors = (_tensor_list(held), len(held), _tensor_list(written), len(written))
        if stream is None:
            check(functions.kiln_run_tensors(self._handle, *tensors))
        else:
            check(functions.kiln_run_on_stream(self._handle, *tensors, stream))

    def _checked(self, inputs):
        """Timing takes plain pointers; a run looks at what they point to."""
        if not inputs:
            return []
        held = self._hold(self._in_order(inputs, {}))
        self._run(held, [arrays.new_array(tensor, None) for tensor in self.outputs])
        return held


def _tensor_list(held):
    pointers = (ctypes.POINTER(DLTensor) * len(held))(*[ctypes.pointer(one.tensor) for one in held])
    return ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(DLTensor)))


def _pointers(held):
    addresses = [one.tensor.data + one.tensor.byte_offset for one in held]
    return (ctypes.c_void_p * len(held))(*addresses) if held else None


def load(path, *, threads=0, pin=True, gpu=0, streams=0, check_weights=True):
    """The network in this file, on the device that it was compiled for. Load files that you trust: they are code.

    threads: of a CPU, 0 = one per core. gpu: which, as CUDA counts them. streams: that branches may use on a GPU.
    check_weights=False: without their checksum.
    """
    options = LoadOptions(ctypes.sizeof(LoadOptions), threads, not pin, gpu, streams, not check_weights)
    return Network(check(library().kiln_load(os.fsencode(path), ctypes.byref(options))))
