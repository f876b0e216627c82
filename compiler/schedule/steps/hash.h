// The hash of one step: its tag and fields, in order.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln::schedule {

class StepHash {
 public:
  explicit StepHash(std::string_view tag) { Add(tag); }

  StepHash& Add(int64_t value) {
    hash_ = (hash_ ^ static_cast<uint64_t>(value)) * 0x9fb21c651e98df25u;
    hash_ ^= hash_ >> 29;
    return *this;
  }
  StepHash& Add(std::string_view text) {
    Add(static_cast<int64_t>(text.size()));
    for (char c : text) Add(static_cast<int64_t>(c));
    return *this;
  }
  template <typename T>
  StepHash& AddAll(const T& values) {
    Add(static_cast<int64_t>(values.size()));
    for (auto value : values) Add(static_cast<int64_t>(value));
    return *this;
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0x2545f4914f6cdd1d;
};

}  // namespace kiln::schedule
