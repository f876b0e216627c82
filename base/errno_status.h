// A failed system call as a Status: "cannot open /x/y: No such file or directory". The code follows
// errno: ENOENT is kNotFound, EEXIST is kAlreadyExists, ENOSPC is kResourceExhausted, ...
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln {

// Returns the text of an errno value; safe from any thread.
std::string ErrnoText(int error_number);

// Callers save errno at once: `int error = errno; ... ErrnoStatus(error, "cannot open {}", path)`.
Status ErrnoStatusText(int error_number, std::string_view what);
template <typename... Args>
Status ErrnoStatus(int error_number, fmt::format_string<Args...> format, Args&&... args) {
  return ErrnoStatusText(error_number, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace kiln
