// How far results may be off where matrix units round more than float32 does: factors to TF32, sums
// of 8-bit floats from step to step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "compiler/dag/dag.h"
#include "compiler/ir/matrix_unit.h"

namespace kiln::dag {

// |got - want| <= absolute * max|want| + relative * |want|
struct ErrorBound {
  double relative = 0, absolute = 0;
  bool operator==(const ErrorBound&) const = default;
};

// Of a sum of so many products; zeros of a unit that computes as float32 does.
//
// TF32: a factor of 10 bits of mantissa is off by 2^-11 of itself at most, a product by 2^-10. These
// errors have either sign, as products of inputs around 0 do: the error of the sum is to the sum as
// that of a product to the product, about 2^-12 of the largest result; the bound is eight times that.
// What is added up, 8 terms at once, is rounded to 24 bits each time. A kernel that leaves out 8 of n
// terms is off by sqrt(8/n), more than the bound up to a million terms.
//
// 8-bit floats: products are exact, but the 32 of an instruction and the sum so far are added in fixed
// point, with the s = 14 upper bits of the largest of them (DeepSeek-V3 Technical Report, section
// 3.3.2: off by 2% in sums of 4,096 terms). Each may lose 2^(1-s) of the largest, towards zero. Of
// products of both signs these errors cancel, and what the sum so far loses is left: a third of the
// most, of a fifth of the largest result on average, for each instruction. Of products of one sign
// all 32 lose a half of it, of a sum that is half of what it becomes: 4 times 2^(1-s) of the sum itself
// for each instruction, or less. The bound is somewhat above both. A kernel that leaves out 32 of n
// terms of both signs is off by sqrt(32/n), more than the bound up to some 20,000 terms.
ErrorBound MatrixUnitBound(const ir::MatrixUnit& unit, int64_t terms);

// Of the outputs of a computation, where the units are those that `is_used` says: sums that read sums
// add up their bounds, and such that combine few results with factors of their own (Winograd's last
// transform) make errors larger than results. None: it has no sums of products that such a unit
// computes, or outputs of fewer bits, which are off by more themselves.
std::optional<ErrorBound> MatrixUnitBound(
    const Dag& dag, const std::function<bool(const ir::MatrixUnit&)>& is_used);

}  // namespace kiln::dag
