// Digests of bytes, in lower-case hex.
// SHA-256 names content (artifacts); MD5 is there for keys that other programs computed with it;
// XXH3 is fast and stable across machines and versions, for values that are stored but not trusted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kiln {

// Feed with Update, then read once. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& Update(std::string_view bytes);
  // 64 hex digits. Call once; nothing may follow.
  std::string FinishHex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string Sha256Hex(std::string_view bytes);  // 64 digits
std::string Md5Hex(std::string_view bytes);     // 32 digits

uint64_t Xxh3(std::string_view bytes, uint64_t seed = 0);

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};
Hash128 Xxh3Hash128(std::string_view bytes);
std::string Xxh3Hex(std::string_view bytes);  // 128 bits, 32 digits, as `xxh128sum` prints

// Bytes as hex digits.
std::string ToHex(std::string_view bytes);

}  // namespace kiln
