// The options that a kernel's text may give its compiler: words that change code and do nothing
// else. No such option names a file, loads code into the compiler, starts a program or writes
// beside the compiler's output. All other options of compilers, today's and future ones, are
// refused.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/handwritten/kernel_text.h"

namespace kiln::handwritten {

// InvalidArgument: the word is not in the list (docs/howto/tune-a-kernel.md has it), or its value
// is not of the right kind.
Status CheckCompilerOption(Language language, std::string_view option);

}  // namespace kiln::handwritten
