// Random contents of inputs. Runners fill with them, and who checks a runner's or a builder's word
// computes from the same values.
//
// Deterministic everywhere: element i is a function of (key, i) alone, so it does not depend on the
// machine, the standard library or the number of threads. About 1 GB/s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/dtype.h"

namespace kiln {

// Values in [low, high); of integers both are whole.
struct ValueRange {
  double low = 0;
  double high = 0;
};

// What the values of an input depend on, beside the seed.
struct RandomInput {
  std::string name;
  runtime::DType dtype = runtime::DType::kFloat32;
  std::vector<int64_t> shape;
  int64_t index_limit = 0;
  std::optional<ValueRange> range = {};
};

// Identifies the content: equal keys, equal elements. `ordinal` counts the inputs of a program.
std::string RandomKey(const RandomInput& input, int ordinal, uint64_t seed);

// The elements from number `first` on. Floats: uniform in [-1, 1), so that sums of many stay small
// and both signs of a ReLU are met. Integers: uniform in [-8, 8) ([0, 16) when unsigned), or in
// [0, index_limit) when that is set. Bool: 0 or 1. With a range: uniform in it, rounded to the type,
// but never up to its high end. `key` is RandomKey's.
void FillRandom(std::span<std::byte> bytes, runtime::DType dtype, int64_t index_limit,
                std::string_view key, const std::optional<ValueRange>& range = {},
                int64_t first = 0);

}  // namespace kiln
