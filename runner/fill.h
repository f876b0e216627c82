// The poison that outputs and workspaces get before a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runner/dtype.h"

namespace kiln::runner {

// Patterns that a program must overwrite. kNaN shows elements that were never written (floats are
// NaN, integers 0xA5A5...). kStale is finite and large in every type, so that a sum added to stale
// contents differs between runs, and an unwritten element whose right value is NaN is noticed.
enum class Poison { kNaN, kStale };
// Returns the value of every byte of the pattern.
uint8_t PoisonByte(DType dtype, Poison poison);
void FillPoison(std::span<std::byte> bytes, DType dtype, Poison poison);
// Fills one element.
void PoisonOne(std::span<std::byte> bytes, DType dtype, Poison poison, int64_t element);

}  // namespace kiln::runner
