// XXH3 digests are fast (some 10 GB/s) and stable across machines and versions. They are for values
// that are stored but not trusted.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace kiln {

uint64_t Xxh3(std::string_view bytes, uint64_t seed = 0);

struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};
Hash128 Xxh3Hash128(std::string_view bytes);
// Returns 128 bits in 32 digits, as `xxh128sum` prints.
std::string Xxh3Hex(std::string_view bytes);

// Digests bytes that come in pieces. Get may be called at any time. Not thread-safe.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(Xxh3Stream&&) noexcept;
  Xxh3Stream& operator=(Xxh3Stream&&) noexcept;

  void Update(std::string_view bytes);
  Hash128 Get() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kiln
