#include "base/hash/unique_id.h"

#include <sys/random.h>

#include <cerrno>

#include "base/errno_status.h"
#include "base/hash/digest.h"

namespace kiln {

std::string UniqueId(int hex_digits) {
  std::string bytes((hex_digits + 1) / 2, '\0');
  size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t n = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    KILN_CHECK(n > 0 || errno == EINTR, "getrandom: {}", ErrnoText(errno));
    if (n > 0) filled += n;
  }
  return ToHex(bytes).substr(0, hex_digits);
}

std::string UniqueId(Rng& rng, int hex_digits) {
  std::string id;
  while (static_cast<int>(id.size()) < hex_digits) id += fmt::format("{:016x}", rng());
  return id.substr(0, hex_digits);
}

}  // namespace kiln
