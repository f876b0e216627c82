"""Runs networks that Kiln compiled.

    import kiln
    net = kiln.load("net.kiln")
    y = net(x)            # or net(x, out=y)

`x` is a numpy array, a PyTorch tensor, or anything else with __dlpack__; so is what comes back: of
PyTorch where an input is, on its device, else of numpy (bfloat16 as uint16 and 8-bit floats as uint8,
their bits). Nothing is copied that the network can use where it is.

Only libkiln_runtime.so is needed, beside this file or where KILN_RUNTIME says.
"""
from kiln.errors import KilnError
from kiln.library import version
from kiln.network import Kernel, Network, Tensor, load

__all__ = ["Kernel", "KilnError", "Network", "Tensor", "load", "version"]
