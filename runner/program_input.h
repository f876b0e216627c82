// The inputs of a program on a device. Their buffers outlive the program, so that other programs of
// the workload use them as well.
//
// Used by the thread of the device. Errors are those of the device.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "runner/bench.h"
#include "runner/input_values.h"

namespace kiln::runner {

// An input, and the buffer that the program is given for it.
struct ProgramInput {
  Argument argument;
  int ordinal = 0;
  uint64_t seed = 0;
  std::shared_ptr<CachedBuffer> buffer = nullptr;
  // Buffer of the other content; null: there is no memory for it until it is wanted.
  std::shared_ptr<CachedBuffer> other = nullptr;
  // Checksum of the content that the program finds in the buffer.
  uint64_t shown = 0;

  std::string Key(Content content) const { return ContentKey(argument, ordinal, seed, content); }
};

// Returns the bytes of one content of an input.
UnsetBytes BytesOf(const Device& device, const ProgramInput& input, Content content);

// Returns the buffer with one content of an input, from the cache or filled now.
StatusOr<std::shared_ptr<CachedBuffer>> InputBuffer(const Bench& bench, const ProgramInput& input,
                                                    Content content);

// Drops both contents of an input from the cache, because a program may have changed them. The next
// trial fills its buffers anew.
void ForgetInput(const Bench& bench, const ProgramInput& input);

}  // namespace kiln::runner
