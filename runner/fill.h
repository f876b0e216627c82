// Random contents of inputs, and the poison that outputs and workspaces get before a run.
//
// Deterministic everywhere: element i is a function of (key, i) alone, so it does not depend on the
// machine, the standard library or the number of threads. About 1 GB/s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runner/dtype.h"

namespace kiln::runner {

// Floats: uniform in [-1, 1), so that sums of many stay small and both signs of a ReLU are met.
// Integers: uniform in [-8, 8) ([0, 16) when unsigned), or in [0, index_limit) when that is set.
// Bool: 0 or 1. With a range: uniform in it, rounded to the type, but never up to its high end.
// `key` is InputKey's.
void FillRandom(std::span<std::byte> bytes, DType dtype, int64_t index_limit, std::string_view key,
                const std::optional<ValueRange>& range = {});

// What a program must overwrite. Two patterns: kNaN shows what was never written (floats are NaN,
// integers 0xA5A5...); kStale is finite and large in every type, so that a sum added to stale
// contents differs between runs and an unwritten element whose right value is NaN is noticed.
enum class Poison { kNaN, kStale };
uint8_t PoisonByte(DType dtype, Poison poison);  // every byte of it
void FillPoison(std::span<std::byte> bytes, DType dtype, Poison poison);

}  // namespace kiln::runner
