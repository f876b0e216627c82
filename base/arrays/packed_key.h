// Keys of computations whose programs take inputs packed (base/arrays/packing.h). Such a key is the
// key of the same computation with plain inputs, with a mark at the end: ["5f0c...", [1, 64], [64,
// 64]] becomes ["5f0c...", [1, 64], [64, 64], "packed"]. A log says the same by its layout rewrite
// option, beside the key (store/measure_log.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

// TVM's layout rewrite option of a program that took constant inputs that were laid out before.
inline constexpr int64_t kPreTransformed = 2;

inline constexpr std::string_view kPackedKeyEnd = ", \"packed\"]";

inline bool IsPackedKey(std::string_view key) { return key.ends_with(kPackedKeyEnd); }

// Leaves keys that are not lists as they are.
inline std::string PackedKey(std::string_view key) {
  if (!key.starts_with('[') || !key.ends_with(']') || IsPackedKey(key)) return std::string(key);
  return std::string(key.substr(0, key.size() - 1)).append(kPackedKeyEnd);
}

inline std::string PlainKey(std::string_view key) {
  if (!IsPackedKey(key)) return std::string(key);
  return std::string(key.substr(0, key.size() - kPackedKeyEnd.size())) + "]";
}

// Returns whether a program was measured with inputs in an order that its computation does not say.
// `option` is the record's, `key` the computation's.
inline bool HasUnsaidLayouts(int64_t option, std::string_view key) {
  return option != 0 && !(option == kPreTransformed && IsPackedKey(key));
}

}  // namespace kiln
