#include "base/hash/mac.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/hash/digest.h"
#include "base/status.h"

namespace kiln {

std::string MacHex(std::string_view key, std::string_view text) {
  unsigned char mac[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  const unsigned char* made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes, text.size(), mac, &size);
  KILN_CHECK(made != nullptr, "no HMAC-SHA256");
  return ToHex({reinterpret_cast<const char*>(mac), size});
}

}  // namespace kiln
