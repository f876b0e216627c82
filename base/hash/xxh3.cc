#include "base/hash/xxh3.h"

#include <fmt/format.h>

// The library is compiled into this file, so that programs need not link it.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace kiln {

uint64_t Xxh3(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

Hash128 Xxh3Hash128(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

std::string Xxh3Hex(std::string_view bytes) {
  const Hash128 hash = Xxh3Hash128(bytes);
  return fmt::format("{:016x}{:016x}", hash.high, hash.low);
}

struct Xxh3Stream::State {
  XXH3_state_t xxh3;
};

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh3); }
Xxh3Stream::~Xxh3Stream() = default;
Xxh3Stream::Xxh3Stream(Xxh3Stream&&) noexcept = default;
Xxh3Stream& Xxh3Stream::operator=(Xxh3Stream&&) noexcept = default;

void Xxh3Stream::Update(std::string_view bytes) {
  XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

Hash128 Xxh3Stream::Get() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh3);
  return {hash.high64, hash.low64};
}

}  // namespace kiln
