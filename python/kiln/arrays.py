"""Arrays of numpy, PyTorch and others as DLTensors, without a copy."""
import ctypes
import math
import sys

from kiln.errors import KilnError
from kiln.library import DLDataType, DLDevice, DLTensor

CPU, CUDA, CUDA_MANAGED = 1, 2, 13

# For each dtype: code and bits of DLPack, and the format of Python's buffers.
_DTYPES = {
    "float64": (2, 64, "d"),
    "float32": (2, 32, "f"),
    "float16": (2, 16, "e"),
    "bfloat16": (4, 16, "H"),
    "float8_e4m3fn": (10, 8, "B"),
    "float8_e5m2": (12, 8, "B"),
    "int64": (0, 64, "q"),
    "int32": (0, 32, "i"),
    "int16": (0, 16, "h"),
    "int8": (0, 8, "b"),
    "uint64": (1, 64, "Q"),
    "uint32": (1, 32, "I"),
    "uint16": (1, 16, "H"),
    "uint8": (1, 8, "B"),
    "bool": (6, 8, "?"),
}
# Types that numpy and Python's buffers lack, with the types that hold their bits.
_BITS = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
_FORMATS = {format: name for name, (_, _, format) in _DTYPES.items() if name not in _BITS}
# C's long has 64 bits here.
_FORMATS.update(l="int64", L="uint64")

# Alignment that the kernels want. Memory with less is copied.
_ALIGNMENT = 64


class Held:
    """A DLTensor and what keeps its memory alive."""

    def __init__(self, tensor, *owners):
        self.tensor = tensor
        self._owners = owners


def _refusal(wanted, why):
    return KilnError(f"tensor '{wanted.name}': {why}")


def _contiguous(address, dtype, shape, wanted, *owners):
    """Row-major elements in the memory of the host."""
    if dtype not in _DTYPES:
        raise _refusal(wanted, f"its dtype is {dtype}, expected {wanted.dtype}")
    if dtype == _BITS.get(wanted.dtype):
        dtype = wanted.dtype
    code, bits, _ = _DTYPES[dtype]
    extents = (ctypes.c_int64 * len(shape))(*shape)
    tensor = DLTensor(address, DLDevice(CPU, 0), len(shape), DLDataType(code, bits, 1), extents, None, 0)
    return Held(tensor, extents, *owners)


def _from_numpy(array, wanted):
    if not array.flags.c_contiguous:
        raise _refusal(wanted, "it is not contiguous; copy it first (numpy.ascontiguousarray)")
    dtype = array.dtype.name if array.dtype.isnative else str(array.dtype)
    return _contiguous(array.ctypes.data, dtype, array.shape, wanted, array)


_capsule = ctypes.pythonapi
_capsule.PyCapsule_GetPointer.restype = ctypes.c_void_p
_capsule.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


# Lazy bits of PyTorch. The memory of a tensor with such a bit holds other values than the tensor.
# Each entry says how the bit is read, how it is resolved, and what the tensor is called.
_LAZY = (("is_neg", "resolve_neg", "negated"), ("is_conj", "resolve_conj", "conjugated"))


def _lazy_bits(array):
    """What is done to the memory of the array when it is read: the entries of _LAZY."""
    return [bit for bit in _LAZY if callable(getattr(array, bit[0], None)) and getattr(array, bit[0])()]


def _resolved(array, wanted):
    """The array, or a copy of it whose memory holds its values."""
    for _, resolve, what in _lazy_bits(array):
        if not callable(getattr(array, resolve, None)):
            raise _refusal(wanted, f"it is a {what} view of its memory; copy it first ({resolve}())")
        array = getattr(array, resolve)()
    return array


def _from_dlpack(array, wanted):
    array = _resolved(array, wanted)
    try:
        device_type, _ = array.__dlpack_device__()
        # Stream 1 is the legacy default stream, for which the library waits.
        on_gpu = device_type in (CUDA, CUDA_MANAGED)
        as_bits = _is_torch_float8(array)
        # Not every release of PyTorch exports 8-bit floats.
        handed = array.view(sys.modules["torch"].uint8) if as_bits else array
        capsule = handed.__dlpack__(stream=1) if on_gpu else handed.__dlpack__()
    # The array requires gradients, is sparse, ...
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        raise _refusal(wanted, str(error)) from error
    # If a consumer does not take a capsule over, the capsule frees the tensor.
    try:
        address = _capsule.PyCapsule_GetPointer(capsule, b"dltensor")
    except (ValueError, ctypes.ArgumentError) as error:
        raise _refusal(wanted, f"its __dlpack__ gives no tensor of DLPack: {error}") from error
    tensor = DLTensor.from_address(address)
    if as_bits:
        tensor = DLTensor.from_buffer_copy(tensor)
        tensor.dtype = DLDataType(*_DTYPES[_torch_dtype(array)][:2], 1)
    return Held(tensor, capsule, array)


def _from_buffer(array, wanted):
    try:
        view = memoryview(array)
    except TypeError as error:
        why = f"{type(array).__name__} is no array: it has neither __dlpack__ nor a buffer"
        raise _refusal(wanted, why) from error
    if not view.c_contiguous:
        raise _refusal(wanted, "it is not contiguous; copy it first")
    # Python does not say where the bytes of a read-only buffer are, so they are copied.
    elements = ctypes.c_char.from_buffer(bytearray(view) if view.readonly else view)
    dtype = _FORMATS.get(view.format.lstrip("<=@"), f"'{view.format}'")
    return _contiguous(ctypes.addressof(elements), dtype, view.shape, wanted, elements)


def _is_read_only(array):
    # The array is numpy's.
    if hasattr(array, "flags") and hasattr(array.flags, "writeable"):
        return not array.flags.writeable
    return not hasattr(array, "__dlpack__") and memoryview(array).readonly


def hold(array, wanted):
    """What to read for this input: a numpy array, anything with __dlpack__ or with Python's buffer interface."""
    numpy = sys.modules.get("numpy")
    # This comes before DLPack, which numpy refuses for arrays that are read only.
    if numpy is not None and isinstance(array, (numpy.ndarray, numpy.generic)):
        return _from_numpy(numpy.asarray(array), wanted)
    return (_from_dlpack if hasattr(array, "__dlpack__") else _from_buffer)(array, wanted)


def hold_output(array, wanted):
    """What to write for this output."""
    for _, resolve, what in _lazy_bits(array):
        raise _refusal(
            wanted, f"it is a {what} view of its memory, where the output would go as it is; give {resolve}() of it"
        )
    held = hold(array, wanted)
    if _is_read_only(array):
        raise _refusal(wanted, "it is read only, and the output goes there")
    return held


def is_torch(array):
    return type(array).__module__.split(".")[0] == "torch"


def _torch_dtype(array):
    return str(array.dtype).removeprefix("torch.")


def _is_torch_float8(array):
    return is_torch(array) and _BITS.get(_torch_dtype(array)) == "uint8"


def buffer_type(dtype):
    """Code and bits of DLPack, and the formats of buffers that have the type."""
    code, bits, format_ = _DTYPES[dtype]
    return code, bits, {"q": "ql", "Q": "QL"}.get(format_, format_)


def _new_numpy(numpy, dtype, shape):
    dtype = numpy.dtype(_BITS.get(dtype, dtype))
    bytes_ = math.prod(shape) * dtype.itemsize
    memory = numpy.empty(bytes_ + _ALIGNMENT, numpy.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    return memory[begin : begin + bytes_].view(dtype).reshape(shape)


def new_array(wanted, like):
    """An array for an output: of PyTorch beside `like`, which may be None; else of numpy, or without it a memoryview."""
    if like is not None:
        torch = sys.modules["torch"]
        return torch.empty(wanted.shape, dtype=getattr(torch, wanted.dtype), device=like.device)
    try:
        import numpy
    except ImportError:
        _, bits, format_ = _DTYPES[wanted.dtype]
        flat = memoryview(bytearray(math.prod(wanted.shape) * bits // 8))
        return flat.cast(format_, wanted.shape) if wanted.shape else flat.cast(format_)
    return _new_numpy(numpy, wanted.dtype, wanted.shape)
