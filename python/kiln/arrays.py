"""Arrays of numpy, PyTorch and others as DLTensors, without a copy."""
import ctypes
import sys

from kiln.errors import KilnError
from kiln.library import DLDataType, DLDevice, DLTensor

CPU, CUDA = 1, 2

# dtype: code and bits of DLPack, the format of Python's buffers.
_DTYPES = {
    "float64": (2, 64, "d"),
    "float32": (2, 32, "f"),
    "float16": (2, 16, "e"),
    "bfloat16": (4, 16, "H"),
    "int64": (0, 64, "q"),
    "int32": (0, 32, "i"),
    "int16": (0, 16, "h"),
    "int8": (0, 8, "b"),
    "uint8": (1, 8, "B"),
    "bool": (6, 8, "?"),
}
_FORMATS = {format: name for name, (_, _, format) in _DTYPES.items() if name != "bfloat16"}
_FORMATS["l"] = "int64"  # of C's long, which has 64 bits here


def bits_of(dtype):
    return _DTYPES[dtype][1]


class Held:
    """A DLTensor and what keeps its memory alive."""

    def __init__(self, tensor, *owners):
        self.tensor = tensor
        self._owners = owners


def make_tensor(address, dtype, shape, *owners):
    """Contiguous elements in the memory of the host."""
    code, bits, _ = _DTYPES[dtype]
    extents = (ctypes.c_int64 * len(shape))(*shape)
    tensor = DLTensor(address, DLDevice(CPU, 0), len(shape), DLDataType(code, bits, 1), extents, None, 0)
    return Held(tensor, extents, *owners)


_capsule = ctypes.pythonapi
_capsule.PyCapsule_GetPointer.restype = ctypes.c_void_p
_capsule.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _from_dlpack(array):
    # A consumer that takes no capsule over leaves it to the capsule to free the tensor.
    device_type, _ = array.__dlpack_device__()
    # 1: what this library waits for is the legacy default stream.
    capsule = array.__dlpack__(stream=1) if device_type == CUDA else array.__dlpack__()
    address = _capsule.PyCapsule_GetPointer(capsule, b"dltensor")
    return Held(DLTensor.from_address(address), capsule, array)


def _from_buffer(array):
    view = memoryview(array)
    dtype = _FORMATS.get(view.format)
    if dtype is None:
        raise KilnError(f"elements of format '{view.format}' are none that a network has")
    if not view.c_contiguous:
        raise KilnError("the array is not contiguous: copy it first")
    # ctypes takes writable buffers only, numpy's arrays say where they are.
    interface = getattr(array, "__array_interface__", None)
    if interface is not None:
        address = interface["data"][0]
    elif view.readonly:
        array = bytearray(view)  # Python's bytes: they do not say where they are
        address = ctypes.addressof(ctypes.c_char.from_buffer(array))
    else:
        address = ctypes.addressof(ctypes.c_char.from_buffer(array))
    return make_tensor(address, dtype, view.shape, array)


def hold(array):
    """A numpy array, anything with __dlpack__, or anything with Python's buffer interface."""
    # numpy refuses DLPack for arrays that are read only.
    if hasattr(array, "__array_interface__") or not hasattr(array, "__dlpack__"):
        try:
            return _from_buffer(array)
        except TypeError as error:
            raise KilnError(f"{type(array).__name__} is no array: it has neither __dlpack__ nor a buffer") from error
    return _from_dlpack(array)


def is_torch(array):
    return type(array).__module__.split(".")[0] == "torch"


def _numpy():
    try:
        import numpy
    except ImportError:
        return None
    return numpy


def _new_torch(dtype, shape, device):
    torch = sys.modules["torch"]
    place = f"cuda:{device.device_id}" if device.device_type == CUDA else "cpu"
    return torch.empty(shape, dtype=getattr(torch, dtype), device=place)


def new_array(dtype, shape, device, like_torch):
    """An array for an output: of PyTorch on this device; of numpy; or a memoryview where there is no numpy."""
    if like_torch:
        return _new_torch(dtype, shape, device)
    numpy = _numpy()
    if numpy is not None:
        # numpy has no bfloat16: its bits.
        return numpy.empty(shape, dtype="uint16" if dtype == "bfloat16" else dtype)
    _, bits, format = _DTYPES[dtype]
    count = 1
    for extent in shape:
        count *= extent
    flat = memoryview(bytearray(count * bits // 8))
    return flat.cast(format, shape) if shape else flat.cast(format)


def hold_output(array, dtype, shape):
    """As hold, of an array made by new_array."""
    if is_torch(array):
        return hold(array)
    interface = getattr(array, "__array_interface__", None)
    if interface is not None:
        return make_tensor(interface["data"][0], dtype, shape, array)
    return make_tensor(ctypes.addressof(ctypes.c_char.from_buffer(array)), dtype, shape, array)
