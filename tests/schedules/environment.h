// Numbers from environment variables that say how much a test does.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace kiln {

inline uint64_t EnvironmentOr(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

}  // namespace kiln
