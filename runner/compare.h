// Element-by-element comparison of an output with the reference's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "proto/trial.pb.h"
#include "runner/arguments.h"

namespace kiln::runner {

struct Comparison {
  int64_t different = 0;  // elements outside the tolerance
  double max_error = 0;   // largest |got - want| / max|want| over finite pairs
  std::string message;    // the first different element; empty when none
};

// Zeros in `tolerance` mean the defaults of the dtype:
//   float64             relative 1e-9, absolute 1e-10
//   float32             relative 1e-3, absolute 1e-4: a reordered sum of n terms is off by about
//                       sqrt(n) to n times 6e-8 of the largest partial sum; 1e5 positive terms
//                       added in order reach 1e-3 of their sum, and terms of both signs stay far
//                       below 1e-4 of the largest element
//   float16             relative 2e-2, absolute 1e-2: one rounding is 5e-4; accumulation may be
//                       narrow
//   bfloat16            relative 5e-2, absolute 2e-2: one rounding is 4e-3
//   float8_e4m3fn       relative 0.15, absolute 3e-2: two neighbours are up to 1/8 apart
//   float8_e5m2         relative 0.3, absolute 3e-2: two neighbours are up to 1/4 apart
//   integers and bool   exact, whatever the tolerance says
v1::Tolerance DefaultTolerance(DType dtype);
v1::Tolerance EffectiveTolerance(DType dtype, const v1::Tolerance& asked);

// What is allowed whatever the tolerance says: of 8-bit floats the distance of the smallest ones,
// for answers may all be near zero, where two kernels may round to neighbours; 0 of other types.
double LeastAllowed(DType dtype);

// An element as a number; of an int64 the nearest.
double ElementValue(DType dtype, std::span<const std::byte> bytes, int64_t index);
// NaN is near NaN only, an infinity near the same one only.
bool IsNear(double got, double want, double absolute, double relative);

// One element, for people: "1.5", "nan", "-3".
std::string ElementText(DType dtype, std::span<const std::byte> element);

// "output x: element [0, 3]: got 1, expected 2; 7 of 100 elements differ by more than 0.001 of what
// the reference has there and 0.0001 of its largest value": what `message` says. `got` and `want`
// hold that one element.
std::string DescribeDifference(const Argument& argument, int64_t index,
                               std::span<const std::byte> got, std::span<const std::byte> want,
                               int64_t different, const v1::Tolerance& asked);

// Equal when |got - want| <= least + absolute * max|want| + relative * |want|, the largest over the
// finite elements of `want`, with the least that is allowed of the type. NaN equals NaN only, an infinity equals the same infinity only. Both spans
// hold argument.bytes.
Comparison Compare(const Argument& argument, std::span<const std::byte> got,
                   std::span<const std::byte> want, const v1::Tolerance& tolerance);

}  // namespace kiln::runner
