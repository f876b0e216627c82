"""Compiled networks: load, call, time."""
import ctypes
import os
from typing import NamedTuple

from kiln import arrays
from kiln.errors import KilnError
from kiln.library import BenchOptions, DLTensor, KernelInfo, LoadOptions, TensorInfo, check, library


class Tensor(NamedTuple):
    """An input or output of a network."""

    name: str
    dtype: str
    shape: tuple


class Kernel(NamedTuple):
    """A kernel of a network, in the order of their execution."""

    name: str
    workload: str
    source: str  # of its schedule: "tuned", "reused", "untuned"
    record: str
    expected_s: float
    flops: float
    bytes: float


class Network:
    """A compiled network, on its device. Calls from several threads wait for each other."""

    def __init__(self, handle):
        self._handle = handle
        functions = library()
        self._device = functions.kiln_device(handle)
        self.inputs = self._tensors(functions.kiln_num_inputs, functions.kiln_input_info)
        self.outputs = self._tensors(functions.kiln_num_outputs, functions.kiln_output_info)

    def __del__(self):
        if getattr(self, "_handle", None):
            library().kiln_free(self._handle)

    def __repr__(self):
        def text(tensors):
            return ", ".join(f"{t.name}: {t.dtype}{list(t.shape)}" for t in tensors)

        return f"<kiln.Network ({text(self.inputs)}) -> ({text(self.outputs)}) on {self.device}>"

    @property
    def device(self):
        """"cpu", "cuda:0"."""
        return "cpu" if self._device.device_type == arrays.CPU else f"cuda:{self._device.device_id}"

    def __call__(self, *given, **named):
        """Outputs for these inputs, in order or by name: one array, or a tuple of them."""
        inputs = self._in_order(given, named)
        like_torch = any(arrays.is_torch(array) for array in inputs)
        outputs = [arrays.new_array(t.dtype, t.shape, self._device, like_torch) for t in self.outputs]
        held = [arrays.hold_output(o, t.dtype, t.shape) for o, t in zip(outputs, self.outputs)]
        self._run(self._hold(inputs), held)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(self, inputs, outputs):
        """Into arrays of the caller's."""
        self._run(self._hold(inputs), [arrays.hold(array) for array in outputs])

    def bench(self, *inputs, warmup=3, repeat=10, number=1, min_repeat_s=0.0):
        """Seconds of one run, a list of `repeat` readings. Without inputs: of random ones."""
        options = BenchOptions(ctypes.sizeof(BenchOptions), warmup, repeat, number, min_repeat_s)
        seconds = (ctypes.c_double * repeat)()
        pointers, held = self._pointers(inputs)
        count = check(
            library().kiln_bench(self._handle, ctypes.byref(options), pointers, len(held), seconds, repeat)
        )
        return list(seconds[:count])

    def profile(self, *inputs, number=20):
        """[(Kernel, seconds), ...] in the order of execution."""
        kernels = self.kernels
        seconds = (ctypes.c_double * max(1, len(kernels)))()
        pointers, held = self._pointers(inputs)
        check(library().kiln_profile(self._handle, number, pointers, len(held), seconds, len(kernels)))
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
        held = []
        for index, array in enumerate(inputs):
            # bfloat16 comes as its bits where numpy has no such type.
            bits = index < len(self.inputs) and self.inputs[index].dtype == "bfloat16"
            if bits and getattr(array, "dtype", None) == "uint16" and array.flags.c_contiguous:
                address = array.__array_interface__["data"][0]
                held.append(arrays.make_tensor(address, "bfloat16", array.shape, array))
            else:
                held.append(arrays.hold(array))
        return held

    def _pointers(self, inputs):
        held = self._hold(inputs)
        # kiln_bench takes plain pointers: what they point to is looked at here.
        for one, tensor in zip(held, self.inputs):
            shape = tuple(one.tensor.shape[: one.tensor.ndim])
            if shape != tensor.shape or one.tensor.dtype.bits != arrays.bits_of(tensor.dtype):
                raise KilnError(f"input '{tensor.name}' has shape {shape}, expected {tensor.dtype}{list(tensor.shape)}")
        addresses = [one.tensor.data + one.tensor.byte_offset for one in held]
        return (ctypes.c_void_p * len(held))(*addresses) if held else None, held

    def _run(self, inputs, outputs):
        def list_of(held):
            pointers = (ctypes.POINTER(DLTensor) * len(held))(*[ctypes.pointer(one.tensor) for one in held])
            return ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(DLTensor)))

        check(
            library().kiln_run_tensors(self._handle, list_of(inputs), len(inputs), list_of(outputs), len(outputs))
        )


def load(path, *, threads=0, pin=True, gpu=0, streams=0, check_weights=True):
    """The network in this file, on the device that it was compiled for. Load files that you trust: they are code.

    threads: of a CPU, 0 = one per core. gpu: which, as CUDA counts them. streams: that branches may use on a GPU.
    check_weights=False: without their checksum.
    """
    options = LoadOptions(ctypes.sizeof(LoadOptions), threads, not pin, gpu, streams, not check_weights)
    return Network(check(library().kiln_load(os.fsencode(path), ctypes.byref(options))))
