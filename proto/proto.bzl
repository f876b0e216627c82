"""cc_proto: a cc_library from .proto files, made by the system's protoc and grpc_cpp_plugin."""

ProtoSources = provider(fields = {"files": "depset of the .proto files, those of deps included"})

def _cc_proto_gen_impl(ctx):
    files = depset(ctx.files.srcs, transitive = [d[ProtoSources].files for d in ctx.attr.deps])
    suffixes = [".pb"] + ([".grpc.pb"] if ctx.attr.grpc else [])
    hdrs = []
    srcs = []
    for proto in ctx.files.srcs:
        stem = proto.basename[:-len(".proto")]
        hdrs += [ctx.actions.declare_file(stem + s + ".h") for s in suffixes]
        srcs += [ctx.actions.declare_file(stem + s + ".cc") for s in suffixes]

    args = ctx.actions.args()
    args.add("--proto_path=.")
    args.add("--cpp_out=" + ctx.bin_dir.path)
    tools = []
    if ctx.attr.grpc:
        args.add("--grpc_out=" + ctx.bin_dir.path)
        args.add("--plugin=protoc-gen-grpc=" + ctx.executable._plugin.path)
        tools = [ctx.executable._plugin]
    args.add_all(ctx.files.srcs)
    ctx.actions.run(
        executable = ctx.executable._protoc,
        arguments = [args],
        inputs = files,
        tools = tools,
        outputs = hdrs + srcs,
        mnemonic = "Protoc",
        progress_message = "protoc %s" % ctx.label,
    )
    return [
        DefaultInfo(files = depset(hdrs + srcs)),
        OutputGroupInfo(hdrs = depset(hdrs), srcs = depset(srcs)),
        ProtoSources(files = files),
    ]

_cc_proto_gen = rule(
    implementation = _cc_proto_gen_impl,
    attrs = {
        "deps": attr.label_list(providers = [ProtoSources]),
        "grpc": attr.bool(),
        "srcs": attr.label_list(allow_files = [".proto"], mandatory = True),
        "_plugin": attr.label(
            default = "@grpc//:grpc_cpp_plugin",
            allow_single_file = True,
            cfg = "host",
            executable = True,
        ),
        "_protoc": attr.label(
            default = "@protobuf//:protoc",
            allow_single_file = True,
            cfg = "host",
            executable = True,
        ),
    },
)

def cc_proto(name, srcs, deps = [], grpc = False, **kwargs):
    """deps: other cc_proto targets of this repository, by full label or ":name"."""
    _cc_proto_gen(
        name = name + "_gen",
        srcs = srcs,
        deps = [d + "_gen" for d in deps],
        grpc = grpc,
        visibility = ["//visibility:public"],
    )
    native.filegroup(name = name + "_gen_hdrs", srcs = [name + "_gen"], output_group = "hdrs")
    native.filegroup(name = name + "_gen_srcs", srcs = [name + "_gen"], output_group = "srcs")
    native.cc_library(
        name = name,
        srcs = [name + "_gen_srcs"],
        hdrs = [name + "_gen_hdrs"],
        copts = ["-w"],
        deps = deps + ["@grpc//:grpc++" if grpc else "@protobuf"],
        **kwargs
    )
