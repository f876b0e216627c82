"""@cuda: the CUDA toolkit of this machine, or empty targets with the same labels.

load("@cuda//:defs.bzl", "CUDA_AVAILABLE", "cuda_only")

C++ code sees HAVE_CUDA_TOOLKIT=1 or =0 through any of the targets. A target that makes no sense
without the toolkit says target_compatible_with = cuda_only(): `bazel test //...` then skips it.
"""

_HEADERS = ["cuda.h", "nvrtc.h", "nvJitLink.h"]

_BUILD = """
package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = [{headers}],
    defines = ["HAVE_CUDA_TOOLKIT=1", "CUDA_TOOLKIT_ROOT=\\\\\\"{root}\\\\\\""],
    includes = ["include"],
)

cc_library(
    name = "nvrtc",
    linkopts = ["-L{lib}", "-Wl,-rpath,{lib}", "-lnvrtc"],
    deps = [":headers"],
)

cc_library(
    name = "nvjitlink",
    linkopts = ["-L{lib}", "-Wl,-rpath,{lib}", "-lnvJitLink"],
    deps = [":headers"],
)

# A binary with this library starts only if the NVIDIA driver has installed libcuda.so.1.
cc_library(
    name = "driver",
    linkopts = ["-L{lib}/stubs", "-lcuda"],
    deps = [":headers"],
)
"""

_NO_BUILD = """
package(default_visibility = ["//visibility:public"])

constraint_setting(name = "toolkit")

constraint_value(
    name = "toolkit_found",
    constraint_setting = ":toolkit",
)

[cc_library(
    name = name,
    defines = ["HAVE_CUDA_TOOLKIT=0"],
) for name in ["headers", "nvrtc", "nvjitlink", "driver"]]
"""

_DEFS = """
CUDA_AVAILABLE = {available}

def cuda_only():
    return {constraints}
"""

def _cuda_toolkit_impl(ctx):
    candidates = [ctx.os.environ[v] for v in ["CUDA_HOME", "CUDA_PATH"] if ctx.os.environ.get(v)]
    if not candidates:
        candidates = ["/usr/local/cuda"]
    root = None
    for candidate in candidates:
        if all([ctx.path(candidate + "/include/" + h).exists for h in _HEADERS]):
            root = candidate
            break
    if root == None:
        ctx.file("BUILD.bazel", _NO_BUILD, executable = False)
        ctx.file("defs.bzl", _DEFS.format(
            available = "False",
            constraints = "[\"@cuda//:toolkit_found\"]",
        ), executable = False)
        return
    for header in _HEADERS:
        ctx.symlink(root + "/include/" + header, "include/" + header)
    lib = root + "/lib64" if ctx.path(root + "/lib64").exists else root + "/lib"
    ctx.file("BUILD.bazel", _BUILD.format(
        headers = ", ".join(["\"include/%s\"" % h for h in _HEADERS]),
        lib = lib,
        root = root,
    ), executable = False)
    ctx.file("defs.bzl", _DEFS.format(available = "True", constraints = "[]"), executable = False)

cuda_toolkit = repository_rule(
    implementation = _cuda_toolkit_impl,
    environ = ["CUDA_HOME", "CUDA_PATH"],
    local = True,
)
