// Random contents of inputs. Runners fill inputs with them. Checks of a runner's or a builder's
// outputs compute from the same values.
//
// Contents are deterministic everywhere. Element i is a function of (key, i) alone, so it does not
// depend on the machine, the standard library or the number of threads. Speed: about 1 GB/s.
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

// Values in [low, high). Both ends are whole numbers for integers.
struct ValueRange {
  double low = 0;
  double high = 0;
  // 0: values are random. Otherwise, for integers only, they ascend in runs of so many equal ones:
  // low, low + 1, and so on to the last one below high, then from low again.
  int64_t run = 0;
};

// The facts that the values of an input depend on, beside the seed.
struct RandomInput {
  std::string name;
  runtime::DType dtype = runtime::DType::kFloat32;
  std::vector<int64_t> shape;
  int64_t index_limit = 0;
  std::optional<ValueRange> range = {};
};

// Returns the key of a content: equal keys give equal elements. `ordinal` counts the inputs of a
// program.
std::string RandomKey(const RandomInput& input, int ordinal, uint64_t seed);

// Writes the elements from number `first` on. `key` is RandomKey's. With a range, values are
// uniform in it and rounded to the type, but never up to the high end, or ascend in runs. Otherwise
// floats are uniform in [-1, 1), so that sums of many stay small and ReLU meets both signs;
// integers are uniform in [-8, 8) ([0, 16) if unsigned), or in [0, index_limit) if that is set; a
// bool is 0 or 1.
void FillRandom(std::span<std::byte> bytes, runtime::DType dtype, int64_t index_limit,
                std::string_view key, const std::optional<ValueRange>& range = {},
                int64_t first = 0);

}  // namespace kiln
