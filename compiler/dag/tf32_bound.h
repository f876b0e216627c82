// How far results may be off where matrix units round float32 factors to TF32.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/dag/dag.h"

namespace kiln::dag {

// |got - want| <= absolute * max|want| + relative * |want|
struct ErrorBound {
  double relative = 0, absolute = 0;
  bool operator==(const ErrorBound&) const = default;
};

// Of a sum of so many products. A factor of 10 bits of mantissa is off by 2^-11 of itself at most, a
// product by 2^-10. These errors have either sign, as products of inputs around 0 do: the error of
// the sum is to the sum as that of a product to the product, about 2^-12 of the largest result; the
// bound is eight times that. What is added up, 8 terms at once, is rounded to 24 bits each time. A
// kernel that leaves out 8 of n terms is off by sqrt(8/n), more than the bound up to a million terms.
ErrorBound Tf32Bound(int64_t terms);

// Of the outputs of a computation: sums that read sums add up their bounds, and such that combine
// few results with factors of their own (Winograd's last transform) make errors larger than
// results. None: it has no sums of products that are rounded, or outputs of fewer bits, which are
// off by more themselves.
std::optional<ErrorBound> Tf32Bound(const Dag& dag);

}  // namespace kiln::dag
