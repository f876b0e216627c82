// Bounds of the errors of results when matrix units round more than float32 does: they round
// factors to TF32, and sums of 8-bit floats from step to step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "compiler/dag/dag.h"
#include "compiler/instructions/matrix_unit.h"

namespace kiln::dag {

// Allows |got - want| <= absolute * max|want| + relative * |want|.
struct ErrorBound {
  double relative = 0, absolute = 0;
  bool operator==(const ErrorBound&) const = default;
};

// Returns the bound for a sum of so many products, and zeros for a unit that computes as float32
// does.
//
// TF32: a factor of 10 bits of mantissa is off by at most 2^-11 of itself, and a product by 2^-10.
// The errors have either sign, as products of inputs around 0 do. The error of a sum therefore is
// to the sum as the error of a product is to the product: about 2^-12 of the largest result. The
// bound is eight times that. The unit adds 8 terms at once and rounds each sum to 24 bits. A kernel
// that leaves out 8 of n terms is off by sqrt(8/n), which is more than the bound up to a million
// terms.
//
// 8-bit floats: products are exact, but the 32 products of an instruction and the sum so far are
// added in fixed point, with the s = 14 upper bits of the largest of them (DeepSeek-V3 Technical
// Report, section 3.3.2: off by 2% in sums of 4,096 terms). Each addend may lose 2^(1-s) of the
// largest one, towards zero. If products have both signs, their errors cancel, and the loss of the
// sum so far is left: a third of the most, of a fifth of the largest result on average, for each
// instruction. If products have one sign, each of the 32 loses a half of 2^(1-s), on average of a
// sum that is half of the final one: 4 times 2^(1-s) of the sum itself for each instruction, or
// less. The bound is somewhat above both. A kernel that leaves out 32 of n terms of both signs is
// off by sqrt(32/n), which is more than the bound up to some 20,000 terms.
// terms of both signs is off by sqrt(32/n), more than the bound up to some 20,000 terms.
ErrorBound MatrixUnitBound(const instructions::MatrixUnit& unit, int64_t terms);

// Returns the bound for the outputs of a computation that uses the units for which `is_used` is
// true. A sum that reads sums adds up their bounds. A sum that combines few results with factors of
// its own (Winograd's last transform) makes errors larger than results. None: the computation has
// no sum of products that such a unit computes, or has outputs of fewer bits, whose own rounding is
// a larger error.
std::optional<ErrorBound> MatrixUnitBound(
    const Dag& dag, const std::function<bool(const instructions::MatrixUnit&)>& is_used);

}  // namespace kiln::dag
