// Files and folders that only their owner may read: secrets and private keys.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

// Names the content of a private file in messages.
struct PrivateContent {
  // "secret"
  std::string_view noun;
  // The command that makes a good file: "make one with `...`".
  std::string_view remedy;
};

// Returns the file, or its first `max_bytes`. FailedPrecondition if the file's mode gives any right
// to its group or to others, and for a folder, a pipe or a device; a pipe is refused without
// waiting for its other end. Each error says how to make a good file. The mode is that of the open
// file, because another file may stand at its path a moment later.
StatusOr<std::string> ReadPrivateFile(const std::string& path, const PrivateContent& content,
                                      size_t max_bytes);

// Makes the folder for its owner alone, mode 0700, and its parents as MakeDirs does. OK if the
// folder exists.
Status MakePrivateDir(const std::string& path);

// FailedPrecondition if the folder's mode gives any right to its group or to others.
Status CheckPrivateDir(const std::string& path);

}  // namespace kiln
