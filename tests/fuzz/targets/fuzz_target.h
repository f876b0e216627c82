// What a fuzz target and its engine have in common. The functions are those of libFuzzer, which is
// the engine of a long run (deploy/fuzz.sh); of the short one in CI it is replay.cc.
//
// A target is a file with LLVMFuzzerTestOneInput. It aborts, by KILN_CHECK or a sanitizer, where an
// input breaks a promise, and depends on nothing but the input. It should take less than a
// millisecond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" {

// Of the target. Returns 0; -1: not to be kept in the corpus.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// Of the target, if it has them: change the `size` bytes at `data`, of which there may become
// `max_size`, and return how many there are; make an input of two.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                 size_t size2, uint8_t* out, size_t max_size, unsigned int seed);

// Of the engine: a change that knows nothing of the format.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

}  // extern "C"

namespace kiln::fuzz {

inline std::string_view InputText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace kiln::fuzz
