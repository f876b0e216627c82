"""Compiled networks: load, call, time."""
import ctypes
import html
import os
import sys
import weakref
from typing import NamedTuple

from kiln import arrays
from kiln.errors import KilnError

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

    def __call__(self, *given, out=None, **named):
        """Outputs for these inputs, in order or by name: one array, or a tuple of them.

        They are PyTorch's where an input is, on its device, else numpy's. `out`: write there instead, into an array,
        or a sequence of them, which is returned. (An input whose name is `out` goes by its place.)
        """
        if self._run_fast is not None and not named and len(given) == len(self.inputs):
            outputs = self._fast_outputs(given) if out is None else out
            outputs = tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
            if self._run_fast(*given, *outputs):
                return outputs[0] if len(outputs) == 1 else outputs
        inputs = self._in_order(given, named)
        if out is None:
            like = next((array for array in inputs if arrays.is_torch(array)), None)
            outputs = tuple(arrays.new_array(tensor, like) for tensor in self.outputs)
        else:
            outputs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        self._run(self._hold(inputs), outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def _fast_call(self, functions):
        """A function of inputs and outputs that runs the network if they fit; or None."""
        wanted = [(*arrays.buffer_type(tensor.dtype), tensor.shape) for tensor in self.inputs + self.outputs]
        if Caller is None or len(wanted) > 64 or any(len(shape) > 32 for *_, shape in wanted):
            return None
        run = ctypes.cast(functions.kiln_run_tensors, ctypes.c_void_p).value
        return Caller(self._handle, run, wanted, len(self.inputs)).run

    def _fast_outputs(self, given):
        """New arrays of numpy if all inputs are arrays of numpy; or none."""
        numpy = sys.modules.get("numpy")
        if numpy is None or any(type(array) is not numpy.ndarray for array in given):
            return ()
        return tuple(arrays.new_array(tensor, None) for tensor in self.outputs)

    def bench(self, *inputs, warmup=3, repeat=10, number=1, min_repeat_s=0.0):
        """Seconds of one run, a list of `repeat` readings. Without inputs: of random ones."""
        options = BenchOptions(ctypes.sizeof(BenchOptions), warmup, repeat, number, min_repeat_s)
        seconds = (ctypes.c_double * repeat)()
        held = self._checked(inputs)
        count = check(
            library().kiln_bench(self._handle, ctypes.byref(options), _pointers(held), len(held), seconds, repeat)
        )
        return list(seconds[:count])

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

    def _hold(self, inputs):
        return [arrays.hold(array, tensor) for array, tensor in zip(inputs, self.inputs)]

    def _run(self, held, outputs):
        if len(outputs) != len(self.outputs):
            names = ", ".join(tensor.name for tensor in self.outputs)
            raise KilnError(f"the outputs are {names}: {len(outputs)} arrays given")
        written = [arrays.hold_output(array, tensor) for array, tensor in zip(outputs, self.outputs)]
        check(
            library().kiln_run_tensors(self._handle, _tensor_list(held), len(held), _tensor_list(written), len(written))
        )

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
