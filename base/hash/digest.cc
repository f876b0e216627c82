#include "base/hash/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/status.h"

namespace kiln {

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

namespace {

std::string Finish(EVP_MD_CTX* evp) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  KILN_CHECK(EVP_DigestFinal_ex(evp, digest, &size) == 1, "digest read twice?");
  return ToHex({reinterpret_cast<const char*>(digest), size});
}

}  // namespace

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  KILN_CHECK(EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::Update(std::string_view bytes) {
  KILN_CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1);
  return *this;
}

std::string Sha256::FinishHex() { return Finish(context_->evp); }

std::string Sha256Hex(std::string_view bytes) { return Sha256().Update(bytes).FinishHex(); }

std::string Md5Hex(std::string_view bytes) {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  KILN_CHECK(EVP_DigestInit_ex(evp, EVP_md5(), nullptr) == 1, "libcrypto refuses MD5");
  KILN_CHECK(EVP_DigestUpdate(evp, bytes.data(), bytes.size()) == 1);
  std::string hex = Finish(evp);
  EVP_MD_CTX_free(evp);
  return hex;
}

std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (unsigned char byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace kiln
