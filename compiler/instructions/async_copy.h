// Asynchronous copies of sm_80 (cp.async): copies from global to shared memory that need no
// registers and go on beside the thread. On older architectures the same functions copy at once.
//
// PTX ISA, "cp.async".
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::instructions {

// The sizes of a copy are 4, 8 and 16 bytes.
inline constexpr int64_t kLeastAsyncCopyBytes = 4;
bool IsAsyncCopySize(int64_t bytes);

// Returns the device functions by which kernels copy asynchronously.
std::string_view AsyncCopyDefinitions();

}  // namespace kiln::instructions
