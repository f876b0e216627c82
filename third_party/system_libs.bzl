"""Debian packages as bazel repositories: @grpc, @protobuf, @absl, @llvm, @googletest, ...

A repository made by system_repo holds
  BUILD.bazel   third_party/NAME.BUILD with %{stamp} replaced (below)
  links         symbolic links into the file system, where a BUILD file needs files as labels
  aliases       packages whose targets all stand for the one library of the repository

%{stamp} is a -D definition with the versions of the Debian packages. Headers under /usr/include
are not inputs that bazel hashes, so without it an upgraded package would leave stale objects
behind, in the output tree and in the disk cache.
"""

def _system_repo_impl(ctx):
    missing = [p for p in ctx.attr.probes if not ctx.path(p).exists]
    if missing:
        fail("@%s: %s not found. Run: apt-get install -y %s" % (
            ctx.name,
            ", ".join(missing),
            " ".join(ctx.attr.packages),
        ))
    for link, target in ctx.attr.links.items():
        ctx.symlink(target, link)

    query = ctx.execute(["dpkg-query", "-W", "-f", "${Version}\\n"] + ctx.attr.packages)
    versions = "_".join(query.stdout.splitlines()) if query.return_code == 0 else "unknown"
    stamp = "SYSTEM_%s_VERSIONS=%s" % (ctx.name.upper(), versions)
    ctx.template("BUILD.bazel", ctx.attr.build_file, {"%{stamp}": stamp}, executable = False)

    for package, targets in ctx.attr.aliases.items():
        lines = ["package(default_visibility = [\"//visibility:public\"])"]
        lines += ["alias(name = \"%s\", actual = \"//:%s\")" % (t, ctx.name) for t in targets]
        ctx.file(package + "/BUILD.bazel", "\n".join(lines) + "\n", executable = False)

system_repo = repository_rule(
    implementation = _system_repo_impl,
    local = True,  # looked at again by each new bazel server
    attrs = {
        "aliases": attr.string_list_dict(),
        "build_file": attr.label(mandatory = True, allow_single_file = True),
        "links": attr.string_dict(),
        "packages": attr.string_list(mandatory = True),
        "probes": attr.string_list(mandatory = True),
    },
)

_LIB = "/usr/lib/x86_64-linux-gnu/"

def system_libs():
    system_repo(
        name = "absl",
        build_file = "//third_party:absl.BUILD",
        packages = ["libabsl-dev"],
        probes = ["/usr/include/absl/status/status.h"],
        # All are shared and linked --as-needed, so one library is behind every label.
        aliases = {
            "absl/base": ["base", "core_headers", "config"],
            "absl/cleanup": ["cleanup"],
            "absl/container": ["btree", "fixed_array", "flat_hash_map", "flat_hash_set", "inlined_vector", "node_hash_map"],
            "absl/flags": ["flag", "parse", "usage"],
            "absl/functional": ["any_invocable", "function_ref"],
            "absl/hash": ["hash"],
            "absl/memory": ["memory"],
            "absl/numeric": ["bits", "int128"],
            "absl/random": ["random"],
            "absl/status": ["status", "statusor"],
            "absl/strings": ["cord", "str_format", "strings"],
            "absl/synchronization": ["synchronization"],
            "absl/time": ["time"],
            "absl/types": ["any", "optional", "span", "variant"],
        },
    )
    system_repo(
        name = "benchmark",
        build_file = "//third_party:benchmark.BUILD",
        packages = ["libbenchmark-dev"],
        probes = ["/usr/include/benchmark/benchmark.h"],
    )
    system_repo(
        name = "googletest",
        build_file = "//third_party:googletest.BUILD",
        packages = ["libgtest-dev", "libgmock-dev"],
        probes = ["/usr/include/gtest/gtest.h", "/usr/include/gmock/gmock.h"],
        links = {n: _LIB + n for n in ["libgtest.a", "libgtest_main.a", "libgmock.a", "libgmock_main.a"]},
    )
    system_repo(
        name = "grpc",
        build_file = "//third_party:grpc.BUILD",
        packages = ["libgrpc++-dev", "libgrpc-dev", "protobuf-compiler-grpc"],
        probes = ["/usr/include/grpcpp/grpcpp.h", "/usr/bin/grpc_cpp_plugin"],
        links = {"grpc_cpp_plugin": "/usr/bin/grpc_cpp_plugin"},
    )
    system_repo(
        name = "llvm",
        build_file = "//third_party:llvm.BUILD",
        packages = ["llvm-19-dev", "liblld-19-dev"],
        probes = ["/usr/include/llvm-19/llvm/IR/Module.h", _LIB + "libLLVM-19.so", "/usr/lib/llvm-19/lib/liblldELF.a"],
        links = {"include/lld": "/usr/lib/llvm-19/include/lld"},
    )
    system_repo(
        name = "nlohmann_json",
        build_file = "//third_party:nlohmann_json.BUILD",
        packages = ["nlohmann-json3-dev"],
        probes = ["/usr/include/nlohmann/json.hpp"],
    )
    system_repo(
        name = "onnx",
        build_file = "//third_party:onnx.BUILD",
        packages = ["libonnx-dev"],
        probes = ["/usr/include/onnx/onnx.proto"],
        links = {"onnx.proto": "/usr/include/onnx/onnx.proto"},
    )
    system_repo(
        name = "protobuf",
        build_file = "//third_party:protobuf.BUILD",
        packages = ["libprotobuf-dev", "protobuf-compiler"],
        probes = ["/usr/include/google/protobuf/message.h", "/usr/bin/protoc"],
        links = {"protoc": "/usr/bin/protoc"},
    )
    system_repo(
        name = "sqlite3",
        build_file = "//third_party:sqlite3.BUILD",
        packages = ["libsqlite3-dev"],
        probes = ["/usr/include/sqlite3.h"],
    )
    system_repo(
        name = "tomlplusplus",
        build_file = "//third_party:tomlplusplus.BUILD",
        packages = ["libtomlplusplus-dev"],
        probes = ["/usr/include/toml++/toml.h"],
    )
    system_repo(
        name = "xgboost",
        build_file = "//third_party:xgboost.BUILD",
        packages = ["libxgboost-dev", "libxgboost0", "libdmlc0", "libgomp1", "libstdc++6", "libgcc-s1"],
        probes = ["/usr/include/xgboost/c_api.h"],
        links = {n: _LIB + n for n in ["libgcc_s.so.1", "libstdc++.so.6", "libgomp.so.1", "libdmlc.so.0", "libxgboost.so.0"]},
    )
    system_repo(
        name = "fmt",
        build_file = "//third_party:fmt.BUILD",
        packages = ["libfmt-dev"],
        probes = ["/usr/include/fmt/core.h"],
    )
    system_repo(
        name = "spdlog",
        build_file = "//third_party:spdlog.BUILD",
        packages = ["libspdlog-dev"],
        probes = ["/usr/include/spdlog/spdlog.h"],
    )
    system_repo(
        name = "xxhash",
        build_file = "//third_party:xxhash.BUILD",
        packages = ["libxxhash-dev"],
        probes = ["/usr/include/xxhash.h"],
    )
    system_repo(
        name = "crypto",
        build_file = "//third_party:crypto.BUILD",
        packages = ["libssl-dev"],
        probes = ["/usr/include/openssl/evp.h"],
    )
    system_repo(
        name = "cli11",
        build_file = "//third_party:cli11.BUILD",
        packages = ["libcli11-dev"],
        probes = ["/usr/include/CLI/CLI.hpp"],
    )
    system_repo(
        name = "dnnl",
        build_file = "//third_party:dnnl.BUILD",
        packages = ["libdnnl-dev"],
        probes = ["/usr/include/dnnl.hpp"],
    )
    system_repo(
        name = "openblas",
        build_file = "//third_party:openblas.BUILD",
        packages = ["libopenblas-dev"],
        probes = ["/usr/include/x86_64-linux-gnu/cblas.h"],
    )
    system_repo(
        name = "seccomp",
        build_file = "//third_party:seccomp.BUILD",
        packages = ["libseccomp-dev"],
        probes = ["/usr/include/seccomp.h", _LIB + "libseccomp.a"],
    )
    system_repo(
        name = "jemalloc",
        build_file = "//third_party:jemalloc.BUILD",
        packages = ["libjemalloc-dev"],
        probes = ["/usr/include/jemalloc/jemalloc.h", _LIB + "libjemalloc_pic.a"],
    )
    system_repo(
        name = "zstd",
        build_file = "//third_party:zstd.BUILD",
        packages = ["libzstd-dev"],
        probes = ["/usr/include/zstd.h"],
    )
