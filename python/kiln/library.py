"""libkiln_runtime.so by ctypes: the structs and functions of kiln_runtime.h."""
import ctypes
import functools
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_void_p

from kiln.errors import FailedPreconditionError, KilnError

_ABI = 2


class LoadOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("threads", c_int32), ("no_pinning", c_int32), ("gpu", c_int32), ("streams", c_int32),
        ("skip_checksum", c_int32),
    ]


class TensorInfo(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p), ("dtype", c_char_p), ("ndim", c_int32), ("shape", POINTER(c_int64)), ("bytes", c_int64),
    ]


class DLDevice(ctypes.Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DLDataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p), ("device", DLDevice), ("ndim", c_int32), ("dtype", DLDataType), ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)), ("byte_offset", ctypes.c_uint64),
    ]


class BenchOptions(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t), ("warmup", c_int32), ("repeat", c_int32), ("number", c_int64), ("min_repeat_s", c_double),
    ]


class KernelInfo(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p), ("workload", c_char_p), ("source", c_char_p), ("record", c_char_p),
        ("expected_s", c_double), ("flops", c_double), ("bytes", c_double),
    ]


_TENSORS = POINTER(POINTER(DLTensor))
_FUNCTIONS = {
    "kiln_abi_version": (c_int, []),
    "kiln_version": (c_char_p, []),
    "kiln_last_error": (c_char_p, []),
    "kiln_load": (c_void_p, [c_char_p, POINTER(LoadOptions)]),
    "kiln_free": (None, [c_void_p]),
    "kiln_num_inputs": (c_int32, [c_void_p]),
    "kiln_num_outputs": (c_int32, [c_void_p]),
    "kiln_input_info": (c_int, [c_void_p, c_int32, POINTER(TensorInfo)]),
    "kiln_output_info": (c_int, [c_void_p, c_int32, POINTER(TensorInfo)]),
    "kiln_run_tensors": (c_int, [c_void_p, _TENSORS, c_int32, _TENSORS, c_int32]),
    "kiln_run_on_stream": (c_int, [c_void_p, _TENSORS, c_int32, _TENSORS, c_int32, c_void_p]),
    "kiln_device": (DLDevice, [c_void_p]),
    "kiln_bench": (
        c_int32, [c_void_p, POINTER(BenchOptions), POINTER(c_void_p), c_int32, POINTER(c_double), c_int32]
    ),
    "kiln_num_kernels": (c_int32, [c_void_p]),
    "kiln_kernel_info": (c_int, [c_void_p, c_int32, POINTER(KernelInfo)]),
    "kiln_profile": (c_int32, [c_void_p, c_int64, POINTER(c_void_p), c_int32, POINTER(c_double), c_int32]),
}


_FILE = "libkiln_runtime.so"


def _open():
    if os.environ.get("KILN_RUNTIME"):
        candidates = [os.environ["KILN_RUNTIME"]]
    else:
        candidates = [os.path.join(os.path.dirname(os.path.abspath(__file__)), _FILE), _FILE]
    reasons = []
    for path in candidates:
        try:
            return path, ctypes.CDLL(path)
        except OSError as error:
            reasons.append(str(error))
    raise KilnError(
        f"cannot load {_FILE}: {'; '.join(reasons)}. Put it beside {os.path.dirname(__file__)}/__init__.py, or name it "
        "in the environment: KILN_RUNTIME=FILE"
    )


@functools.lru_cache(maxsize=None)
def library():
    """The library, loaded once."""
    path, loaded = _open()
    abi = loaded.kiln_abi_version() if hasattr(loaded, "kiln_abi_version") else 0
    if abi < _ABI:
        raise FailedPreconditionError(
            f"{path} has version {abi} of Kiln's interface, expected at least {_ABI}: take a newer {_FILE}"
        )
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype = result
        function.argtypes = arguments
    return loaded


def check(result):
    """The result, unless it says that the call failed."""
    if result is None or (isinstance(result, int) and result < 0):
        raise KilnError(library().kiln_last_error().decode())
    return result


def version():
    """"Kiln runtime, ABI 2, files of version 3"."""
    return library().kiln_version().decode()
