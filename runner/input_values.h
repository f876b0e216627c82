// The values that inputs hold in a trial. There are two contents: programs are timed on the first
// and checked on the second after that, at the same addresses. A program that keeps an answer and
// gives it again is so found to be wrong.
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

// Elements at the start of an input that both contents have: an eighth of it, at most 4096.
int64_t SharedElements(const Argument& input);

// Equal keys, equal bytes. `ordinal` counts the inputs of the program.
std::string ContentKey(const Argument& input, int ordinal, uint64_t seed, Content content);

// As the program takes them: packed where its plan says so. About 1 GB/s of each thread; large ones
// are made by as many as `threads`, 0: by all CPUs of the process.
UnsetBytes InputBytes(const Argument& input, int ordinal, uint64_t seed, Content content,
                      int threads = 1);

}  // namespace kiln::runner
