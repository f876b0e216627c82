// The secret that the processes of a farm share, so that they can tell each other from strangers.
//
// It goes with every call in the clear: everybody who can read the network can read it. A value;
// copies are cheap. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

class Secret {
 public:
  // Makes no secret: nothing is asked for, and nothing is sent.
  Secret() = default;

  // Reads the first line of a file, 16 to 1024 printable characters without spaces.
  // FailedPrecondition if the file's mode gives any right to its group or to others, and for a
  // folder, a pipe or a device. Each error says how to make a good file.
  static StatusOr<Secret> Read(const std::string& path);
  // Makes a new secret from the kernel's random numbers.
  static Secret Random();

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }

  // Returns whether `told` is this secret, in a time that does not depend on how much of it is
  // right.
  bool Matches(std::string_view told) const;

 private:
  explicit Secret(std::string text) : text_(std::move(text)) {}

  std::string text_;
};

}  // namespace kiln
