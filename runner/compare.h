// Element-by-element comparison of an output with the reference's output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "proto/trial.pb.h"
#include "runner/arguments.h"

namespace kiln::runner {

struct Comparison {
  // Number of elements outside the tolerance.
  int64_t different = 0;
  // Largest |got - want| / max|want| over finite pairs.
  double max_error = 0;
  // Text about the first different element; empty if there is none.
  std::string message;
};

// Zeros in `tolerance` mean the defaults of the dtype:
//   float64             relative 1e-9, absolute 1e-10
//   float32             relative 1e-3, absolute 1e-4: a reordered sum of n terms is off by about
//                       sqrt(n) to n times 6e-8 of the largest partial sum. The sum of 1e5 positive
//                       terms in order can be off by 1e-3 of itself; sums of terms of both signs
//                       stay far below 1e-4 of the largest element
//   float16             relative 2e-2, absolute 1e-2: one rounding is 5e-4; accumulation may be
//                       narrow
//   bfloat16            relative 5e-2, absolute 2e-2: one rounding is 4e-3
//   float8_e4m3fn       relative 0.15, absolute 3e-2: two neighbours are up to 1/8 apart
//   float8_e5m2         relative 0.3, absolute 3e-2: two neighbours are up to 1/4 apart
//   integers and bool   exact, whatever the tolerance says
v1::Tolerance DefaultTolerance(DType dtype);
v1::Tolerance EffectiveTolerance(DType dtype, const v1::Tolerance& asked);

// Returns the difference that is allowed whatever the tolerance says. For 8-bit floats it is the
// distance of the smallest numbers: if all outputs are near zero, two right kernels may round to
// neighbours. For other types it is 0.
double MinTolerance(DType dtype);

// Returns an element as a number; for an int64 the nearest double.
double ElementValue(DType dtype, std::span<const std::byte> bytes, int64_t index);
// Returns whether two values are near each other. NaN is near NaN only, and an infinity near the
// same infinity only.
bool IsNear(double got, double want, double absolute, double relative);

// Returns one element's text for people: "1.5", "nan", "-3".
std::string ElementText(DType dtype, std::span<const std::byte> element);

// Returns the text for Comparison::message: "output x: element [0, 3]: got 1, expected 2; 7 of 100
// elements differ by more than 0.001 of what the reference has there and 0.0001 of its largest
// value". `got` and `want` hold that one element.
std::string DescribeDifference(const Argument& argument, int64_t index,
                               std::span<const std::byte> got, std::span<const std::byte> want,
                               int64_t different, const v1::Tolerance& asked);

// Compares an output. Elements are equal if |got - want| <= least + absolute * max|want| + relative
// * |want|. The maximum is over the finite elements of `want`; `least` is MinTolerance of the type.
// NaN equals NaN only, and an infinity equals the same infinity only. Both spans hold
// argument.bytes.
Comparison Compare(const Argument& argument, std::span<const std::byte> got,
                   std::span<const std::byte> want, const v1::Tolerance& tolerance);

}  // namespace kiln::runner
