// The values that inputs hold in a trial. There are two contents: a program is timed on the first,
// and then checked on the second at the same addresses. This exposes a program that keeps an answer
// and gives it again.
//
// The second content begins with the same elements as the first, so that a program which recognises
// an input by these gives its kept answer too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runner/arguments.h"
#include "runner/pieces.h"

namespace kiln::runner {

enum class Content { kTimed, kOther };

// Returns the number of elements at the start of an input that both contents share: an eighth of
// the input, at most 4096.
int64_t SharedElements(const Argument& input);

// Returns the key of a content: equal keys give equal bytes. `ordinal` counts the inputs of the
// program.
std::string ContentKey(const Argument& input, int ordinal, uint64_t seed, Content content);

// Returns the bytes as the program takes them: packed if its plan says so. Speed: about 1 GB/s for
// each thread. Large inputs are made by up to `threads` threads; 0 means all CPUs of the process.
UnsetBytes InputBytes(const Argument& input, int ordinal, uint64_t seed, Content content,
                      int threads = 1);

}  // namespace kiln::runner
