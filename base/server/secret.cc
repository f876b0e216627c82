#include "base/server/secret.h"

#include <openssl/crypto.h>

#include <algorithm>

#include "base/file/private_file.h"
#include "base/hash/digest.h"
#include "base/hash/unique_id.h"

namespace kiln {
namespace {

constexpr size_t kMinBytes = 16;
constexpr size_t kMaxBytes = 1024;
constexpr size_t kFileBytes = 4096;
constexpr int kRandomDigits = 64;

bool IsPrintable(char c) { return c > ' ' && c <= '~'; }

constexpr PrivateContent kContent{"secret",
                                  "make one with `(umask 77; openssl rand -hex 32 > farm.secret)`"};

Status Advise(std::string_view path, std::string_view found) {
  return FailedPrecondition(
      "the secret in {} {}; make one with `(umask 77; openssl rand -hex 32 > {})` and give every "
      "process of the farm a copy",
      path, found, path);
}

}  // namespace

StatusOr<Secret> Secret::Read(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(std::string text, ReadPrivateFile(path, kContent, kFileBytes));
  text.resize(std::min(text.size(), text.find('\n')));
  if (text.ends_with('\r')) text.pop_back();
  if (text.size() < kMinBytes || text.size() > kMaxBytes) {
    return Advise(path, fmt::format("has {} characters, expected {} to {}", text.size(), kMinBytes,
                                    kMaxBytes));
  }
  if (!std::all_of(text.begin(), text.end(), IsPrintable)) {
    return Advise(path, "has a space or a character that does not print");
  }
  return Secret(std::move(text));
}

Secret Secret::Random() { return Secret(UniqueId(kRandomDigits)); }

bool Secret::Matches(std::string_view told) const {
  // Digests have the same length, so that the time does not tell the secret's length either.
  const std::string ours = Sha256Hex(text_), theirs = Sha256Hex(told);
  return CRYPTO_memcmp(ours.data(), theirs.data(), ours.size()) == 0;
}

}  // namespace kiln
