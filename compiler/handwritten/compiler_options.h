// The options that a kernel's text may give its compiler: words that change code and do nothing
// else. None names a file, loads code into the compiler, starts a program or writes beside its
// output; what compilers take besides, today or in a newer version, is refused.
#pragma once

#include <string_view>

#include "base/status.h"
#include "compiler/handwritten/kernel_text.h"

namespace kiln::handwritten {

// InvalidArgument: the word is none of the list (docs/howto/tune-a-kernel.md has it), or its value
// is none of its kind.
Status CheckCompilerOption(Language language, std::string_view option);

}  // namespace kiln::handwritten
