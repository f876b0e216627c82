"""Arrays of numpy, PyTorch and others as DLTensors, without a copy."""
import contextlib
import ctypes
import functools
import math
import sys

from kiln.errors import InvalidArgumentError, KilnError

try:
    from kiln._caller import Block
# New arrays are cut out of larger ones if the module is not there.
except ImportError:
    Block = None
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


def _from_dlpack(array, wanted, stream=None):
    array = _resolved(array, wanted)
    try:
        device_type, _ = array.__dlpack_device__()
        # Without a stream it is 1, the legacy default stream, for which the library waits.
        on_gpu = device_type in (CUDA, CUDA_MANAGED)
        as_bits = _is_torch_float8(array)
        # Not every release of PyTorch exports 8-bit floats.
        handed = array.view(sys.modules["torch"].uint8) if as_bits else array
        capsule = handed.__dlpack__(stream=stream or 1) if on_gpu else handed.__dlpack__()
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


def hold(array, wanted, stream=None):
    """What to read for this input: a numpy array, anything with __dlpack__ or with Python's buffer interface.

    An array of a GPU is there before the work that follows in `stream`, a number.
    """
    try:
        return _hold(array, wanted, stream)
    except KilnError:
        raise
    # The array's own code failed.
    except Exception as error:
        raise _refusal(wanted, f"{type(array).__name__} fails: {type(error).__name__}: {error}") from error


def _hold(array, wanted, stream):
    numpy = sys.modules.get("numpy")
    # This comes before DLPack, which numpy refuses for arrays that are read only.
    if numpy is not None and isinstance(array, (numpy.ndarray, numpy.generic)):
        return _from_numpy(numpy.asarray(array), wanted)
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(array, wanted, stream)
    return _from_buffer(array, wanted)


def hold_output(array, wanted, stream=None):
    """What to write for this output."""
    held = hold(array, wanted, stream)
    for _, resolve, what in _lazy_bits(array):
        raise _refusal(
            wanted, f"it is a {what} view of its memory, where the output would go as it is; give {resolve}() of it"
        )
    if _package(array) in _JAX:
        raise _refusal(wanted, "it is an array of JAX, which nobody may write to; leave out= away")
    if _is_read_only(array):
        raise _refusal(wanted, "it is read only, and the output goes there")
    return held


_JAX = ("jax", "jaxlib")


@functools.lru_cache(maxsize=256)
def _package_of(class_):
    for base in class_.__mro__:
        if "__dlpack__" in vars(base):
            return str(base.__module__).split(".", maxsplit=1)[0]
    return ""


def _package(array):
    """The library of an array: that of the class of which it is, or which it extends."""
    return _package_of(type(array))


def is_torch(array):
    return _package(array) == "torch"


# Numbers of CUDA's default stream, the legacy one and the one of each thread.
_DEFAULT_STREAMS = (0, 1, 2)


def stream_number(stream):
    """The number of a stream: of PyTorch, cupy, or any with __cuda_stream__ (cuda.core, ...).

    A number of one's own cannot be checked, so that only those of the default streams are taken.
    """
    if isinstance(stream, int) and not isinstance(stream, bool):
        if stream in _DEFAULT_STREAMS:
            return stream
        raise InvalidArgumentError(
            f"found stream {stream}, which cannot be checked; expected an object: a stream of PyTorch or cupy, such "
            f"as torch.cuda.ExternalStream({stream}), or one with __cuda_stream__"
        )
    if hasattr(stream, "__cuda_stream__"):
        found = stream.__cuda_stream__() if callable(stream.__cuda_stream__) else None
        found = found[1] if isinstance(found, tuple) and len(found) == 2 else None
    else:
        found = getattr(stream, "cuda_stream", getattr(stream, "ptr", None))
    if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < 2**63:
        return found
    raise InvalidArgumentError(
        f"found a stream of type {type(stream).__name__}, expected a stream of PyTorch or cupy, or one with "
        "__cuda_stream__"
    )


def current_stream(array, gpu):
    """The number of the stream on which the array's library works on this GPU; None: it tells of none here."""
    package = _package(array)
    # The module _caller asks a library with functions of C itself.
    if package == "torch" and not hasattr(type(array), "__dlpack_c_exchange_api__"):
        return sys.modules["torch"].cuda.current_stream(gpu).cuda_stream
    if package == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream(gpu).ptr
    return None


def _torch_dtype(array):
    return str(array.dtype).removeprefix("torch.")


def _is_torch_float8(array):
    return is_torch(array) and _BITS.get(_torch_dtype(array)) == "uint8"


def buffer_type(dtype):
    """Code and bits of DLPack, and the formats of buffers that have the type."""
    code, bits, format_ = _DTYPES[dtype]
    return code, bits, {"q": "ql", "Q": "QL"}.get(format_, format_)


def numpy_maker(wanted):
    """A function that makes an array for an output, of numpy, or without it a memoryview."""
    try:
        import numpy
    except ImportError:
        return functools.partial(_new_view, wanted)
    dtype = numpy.dtype(_BITS.get(wanted.dtype, wanted.dtype))
    bytes_ = math.prod(wanted.shape) * dtype.itemsize
    if Block is not None:
        return lambda: numpy.ndarray(wanted.shape, dtype, Block(bytes_))

    def cut():
        memory = numpy.empty(bytes_ + _ALIGNMENT, numpy.uint8)
        begin = -memory.ctypes.data % _ALIGNMENT
        return memory[begin : begin + bytes_].view(dtype).reshape(wanted.shape)

    return cut


def _new_view(wanted):
    _, bits, format_ = _DTYPES[wanted.dtype]
    flat = memoryview(bytearray(math.prod(wanted.shape) * bits // 8))
    return flat.cast(format_, wanted.shape) if wanted.shape else flat.cast(format_)


def _new_torch(wanted, like):
    return like.new_empty(wanted.shape, dtype=getattr(sys.modules["torch"], wanted.dtype))


def _new_cupy(wanted, like):
    cupy = sys.modules["cupy"]
    with like.device:
        return cupy.empty(wanted.shape, dtype=_BITS.get(wanted.dtype, wanted.dtype))


def _new_tvm_ffi(wanted, like):
    from_dlpack = sys.modules["tvm_ffi"].from_dlpack
    if like.__dlpack_device__()[0] == CPU:
        return from_dlpack(new_array(wanted, None))
    try:
        import torch
    except ImportError as error:
        raise _refusal(
            wanted, "tvm-ffi allocates no tensors, and there is no PyTorch that could; give it by out="
        ) from error
    made = torch.empty(wanted.shape, dtype=getattr(torch, wanted.dtype), device=f"cuda:{like.__dlpack_device__()[1]}")
    return from_dlpack(made)


def in_stream(like, number):
    """A block in which the library of `like` works, and gives out memory, for the stream of this number."""
    package = _package(like)
    if package == "torch":
        cuda = sys.modules["torch"].cuda
        return cuda.stream(cuda.ExternalStream(number, device=like.device))
    if package == "cupy":
        return sys.modules["cupy"].cuda.ExternalStream(number)
    return contextlib.nullcontext()


def numpy_array_type():
    """The class of numpy's arrays, or a class of none if numpy is not installed."""
    try:
        import numpy
    except ImportError:
        return Held
    return numpy.ndarray


_NEW = {"torch": _new_torch, "cupy": _new_cupy, "tvm_ffi": _new_tvm_ffi}


def library_array(given):
    """The first array of a library that makes the outputs, where that is not numpy; None: there is none."""
    return next((array for array in given if _package(array) in _NEW or is_jax(array)), None)


def is_jax(array):
    return _package(array) in _JAX


def new_jax(wanted, like):
    """An array of JAX that nobody else knows, and what to write for it: a copy of nothing."""
    numpy = sys.modules["jax"].numpy
    made = numpy.zeros(wanted.shape, dtype=wanted.dtype, device=like.device).block_until_ready()
    return made, hold(made, wanted)


def new_array(wanted, like):
    """An array for an output: of the library of `like`, beside it; if that is None of numpy, or a memoryview."""
    if like is not None:
        return _NEW[_package(like)](wanted, like)
    return numpy_maker(wanted)()
