// Digests of bytes, in lower-case hex. SHA-256 names content (artifacts). MD5 is for keys that
// other programs computed with it. XXH3 (base/hash/xxh3.h) is for values that are stored but not
// trusted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/hash/xxh3.h"

namespace kiln {

// Feed with Update, then read once. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& Update(std::string_view bytes);
  // Returns 64 hex digits. Called once; nothing may follow.
  std::string FinishHex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Returns 64 digits.
std::string Sha256Hex(std::string_view bytes);
// Returns 32 digits.
std::string Md5Hex(std::string_view bytes);

// Returns the bytes as hex digits.
std::string ToHex(std::string_view bytes);

}  // namespace kiln
