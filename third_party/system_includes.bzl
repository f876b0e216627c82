"""Header folders below /usr/include that the compiler does not search by itself."""

def _system_includes_impl(ctx):
    return [CcInfo(compilation_context = cc_common.create_compilation_context(
        system_includes = depset(ctx.attr.dirs),
    ))]

system_includes = rule(
    implementation = _system_includes_impl,
    attrs = {"dirs": attr.string_list(mandatory = True)},
)
