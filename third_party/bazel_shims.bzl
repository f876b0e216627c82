"""Stand-ins for the repositories that bazel 4.2.3's built-in WORKSPACE suffix would download.

@rules_cc              loaded by @bazel_tools//tools/cpp:BUILD and tools/jdk:BUILD
@rules_java            loaded by @bazel_tools//tools/jdk:BUILD (register_toolchains("@bazel_tools//tools/jdk:all"))
@rules_proto           only loaded by packages this project never touches; kept so that a load() works
@remote_coverage_tools every test rule has an implicit dependency on its two targets
"""

_RULES_CC = """
cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
objc_library = native.objc_library
"""

_RULES_JAVA = """
java_binary = native.java_binary
java_import = native.java_import
java_library = native.java_library
java_proto_library = native.java_proto_library
java_runtime = native.java_runtime
java_test = native.java_test
java_toolchain = native.java_toolchain
"""

_RULES_PROTO = """
proto_library = native.proto_library
proto_lang_toolchain = native.proto_lang_toolchain
"""

_COVERAGE = """
package(default_visibility = ["//visibility:public"])
sh_binary(name = "coverage_report_generator", srcs = ["none.sh"])
sh_binary(name = "lcov_merger", srcs = ["merge.sh"])
"""

# bazel's own merger is a Java program. This one turns gcc's gcov JSON files into one lcov file.
_MERGE = """#!/usr/bin/python3
import glob, gzip, json, sys
args = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith("--") and "=" in a)
lines = {}
for path in glob.glob(args["coverage_dir"] + "/**/*.gcov.json.gz", recursive = True):
    for f in json.load(gzip.open(path))["files"]:
        if f["file"].startswith(("/", "bazel-out/", "external/")):
            continue
        hits = lines.setdefault(f["file"], {})
        for l in f["lines"]:
            hits[l["line_number"]] = hits.get(l["line_number"], 0) + l["count"]
with open(args["output_file"], "w") as out:
    for name in sorted(lines):
        hits = lines[name]
        out.write("SF:%s\\n" % name)
        for number in sorted(hits):
            out.write("DA:%d,%d\\n" % (number, hits[number]))
        out.write("LH:%d\\nLF:%d\\nend_of_record\\n" % (sum(1 for h in hits.values() if h), len(hits)))
"""

def _shim_impl(ctx):
    for path, content in ctx.attr.files.items():
        ctx.file(path, content, executable = path.endswith(".sh"))

_shim = repository_rule(
    implementation = _shim_impl,
    attrs = {"files": attr.string_dict(mandatory = True)},
)

def bazel_shims():
    _shim(name = "rules_cc", files = {"cc/BUILD.bazel": "", "cc/defs.bzl": _RULES_CC})
    _shim(name = "rules_java", files = {"java/BUILD.bazel": "", "java/defs.bzl": _RULES_JAVA})
    _shim(name = "rules_proto", files = {"proto/BUILD.bazel": "", "proto/defs.bzl": _RULES_PROTO})
    _shim(name = "remote_coverage_tools", files = {
        "BUILD.bazel": _COVERAGE,
        "merge.sh": _MERGE,
        "none.sh": "#!/bin/sh\n",
    })
