// Links an object file to a shared object, with LLVM's linker inside this process. Needs no start
// files and no libraries on disk.
//
// The linker keeps global state: one call at a time per process. Costs about a millisecond.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::codegen {

// `object` is an ELF relocatable file, and `empty_object` one without code for the same machine.
// Symbols that the object does not define stay open; the result names libm.so.6 as needed. The same
// input bytes give the same output bytes.
StatusOr<std::string> LinkSharedObject(std::string_view object, std::string_view empty_object);

}  // namespace kiln::codegen
