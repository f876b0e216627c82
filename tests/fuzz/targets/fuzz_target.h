// The interface between a fuzz target and its engine. The functions are those of libFuzzer, which
// is the engine of a long run (deploy/fuzz.sh); replay.cc is the engine of the short run in CI.
//
// A target is a file with LLVMFuzzerTestOneInput. It aborts, by KILN_CHECK or a sanitizer, if an
// input breaks a promise, and depends on nothing but the input. It should take less than a
// millisecond.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" {

// The target defines this. Returns 0, or -1 for an input that must not be kept in the corpus.
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// A target may define these two. The mutator changes the `size` bytes at `data`, of which there may
// then be up to `max_size`, and returns how many there are. The other function makes one input from
// two.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2,
                                 size_t size2, uint8_t* out, size_t max_size, unsigned int seed);

// The engine defines this: it makes a change that knows nothing of the format.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

}  // extern "C"

namespace kiln::fuzz {

inline std::string_view InputText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace kiln::fuzz
