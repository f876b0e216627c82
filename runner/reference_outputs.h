// The file that carries the outputs of a reference from the child that ran it to the child that
// checks a trial: the outputs for the first content of the inputs (input_values.h) one behind the
// other, then those for the other content.
//
// Used by one thread. Errors are errors of the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/file/fd.h"
#include "base/status.h"
#include "runner/input_values.h"

namespace kiln::runner {

// The file, mapped for reading.
class MappedOutputs {
 public:
  // Maps a file whose outputs have `half_bytes` for each content. Internal if there is no file, or
  // if it has another size. The file may be closed afterwards.
  static StatusOr<MappedOutputs> Map(const UniqueFd& file, int64_t half_bytes);
  MappedOutputs(MappedOutputs&& other) noexcept;
  MappedOutputs& operator=(MappedOutputs&&) = delete;
  ~MappedOutputs();

  // Returns the outputs for one content.
  std::span<const std::byte> half(Content content) const;

 private:
  explicit MappedOutputs(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

// Empties the file, which may have a part of the outputs if a child was lost.
Status ClearOutputs(const UniqueFd& file);

// Appends the bytes of one output.
Status AppendOutput(const UniqueFd& file, std::span<const std::byte> bytes);

}  // namespace kiln::runner
