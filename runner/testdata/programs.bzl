"""test_programs: one shared object NAME.so for each of the programs in program.c."""

def test_programs(name, programs):
    for program in programs:
        native.cc_binary(
            name = program + ".so",
            testonly = True,
            srcs = ["program.c"],
            # The programs are wrong on purpose, so no check of ours may change what they do.
            copts = ["-std=c11", "-w", "-O1", "-fno-sanitize=all", "-fno-optimize-sibling-calls"],
            linkopts = ["-Wl,--allow-shlib-undefined", "-Wl,-z,lazy"],
            linkshared = True,
            local_defines = ["PROGRAM_" + program],
            deps = ["//proto:cpu_abi"],
        )
    native.filegroup(
        name = name,
        testonly = True,
        srcs = [program + ".so" for program in programs],
    )
