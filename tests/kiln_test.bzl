"""How this project declares a test in C++."""

def kiln_test(name, srcs = None, size = "small", deps = [], **kwargs):
    """A cc_test of NAME.cc with GoogleTest's main.

    A test that has its own main function is a cc_test.

    Args:
      name: ends with _test
      srcs: the sources, when they are not [NAME.cc]
      size: Bazel's; "small" ends the test after a minute, "medium" after five
      deps: of the sources, without GoogleTest
      **kwargs: every other attribute of cc_test
    """
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs or [name + ".cc"],
        deps = deps + ["@googletest//:gtest_main"],
        **kwargs
    )
