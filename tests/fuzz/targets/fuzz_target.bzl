"""A fuzz target: a libFuzzer binary for long runs, and a test of its corpus."""

def fuzz_target(name, deps, mutator, changed = 1000):
    """NAME.cc, and its corpus in corpus/NAME (without "_fuzz").

    NAME is the binary, which needs --config=fuzz (deploy/fuzz.sh); NAME_test runs the corpus and
    `changed` changed inputs.

    Args:
      name: ends with _fuzz
      deps: of the source
      mutator: what changes inputs so that they stay of their kind
      changed: so many that the test takes seconds
    """
    corpus = "corpus/" + name[:-len("_fuzz")]
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = [name + ".cc"],
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = deps + [mutator, ":fuzz_target"],
    )
    native.cc_test(
        name = name + "_test",
        size = "medium",
        srcs = [name + ".cc"],
        args = [native.package_name() + "/" + corpus, "--changed", str(changed)],
        data = native.glob([corpus + "/**"]),
        deps = deps + [mutator, ":replay"],
    )
