#include "client/models.h"

#include "base/hash/digest.h"

namespace kiln::client {

std::string ContentName(const std::string& file) {
  constexpr size_t kDigits = 16;
  return "file-" + Sha256Hex(file).substr(0, kDigits);
}

}  // namespace kiln::client
