#include "base/errno_status.h"

#include <cstring>

namespace kiln {

std::string ErrnoText(int error_number) {
  char buffer[128];
  // This is the GNU form: it returns the text, which may or may not stand in `buffer`.
  return strerror_r(error_number, buffer, sizeof(buffer));
}

Status ErrnoStatusText(int error_number, std::string_view what) {
  return Status(absl::ErrnoToStatusCode(error_number),
                fmt::format("{}: {}", what, ErrnoText(error_number)));
}

}  // namespace kiln
