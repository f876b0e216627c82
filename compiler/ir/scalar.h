// Scalar values and the number formats behind the types: rounding, wrapping, bits in memory,
// conversion. The one place that says what a cast does; folding, the evaluator and the arrays all
// use it.
//
// Pure functions, any thread. Cost: a few nanoseconds.
#pragma once

#include <cstdint>

#include "base/float8.h"
#include "compiler/ir/type.h"

namespace kiln::ir {

// Ints, unsigned ones too, and bools (0 or 1) in `i`; floats of every width in `f`, exactly. Of a
// uint64 `i` has the bits: a number of 2^63 or more is negative there. The type is known from
// context.
struct Value {
  union {
    int64_t i;
    double f;
  };
  static Value Int(int64_t v) {
    Value r;
    r.i = v;
    return r;
  }
  static Value Float(double v) {
    Value r;
    r.f = v;
    return r;
  }
};
static_assert(sizeof(Value) == 8);

// How an 8-bit float is made up; null for other types.
const Float8Format* Float8FormatOf(Type type);

// The largest finite value of a float type.
double LargestFinite(Type type);

// Nearest value of a float type, ties to even; past the largest: infinity, of 8-bit floats the
// largest. Every NaN becomes one NaN.
double RoundToType(double value, Type type);

// Two's complement wrap to the width, modulo 2^bits for unsigned types; bool: value != 0.
int64_t WrapToType(int64_t value, Type type);

// kCast. Float to int truncates, then saturates to the range of `to`; NaN gives 0. Anything to bool
// is "!= 0", so NaN gives true. Compiled code agrees.
Value CastValue(Value value, Type from, Type to);

// kReinterpret: what reading the type `to` gives where the type `from` was written. Both have as
// many bytes.
Value ReinterpretValue(Value value, Type from, Type to);

// One element in memory, little-endian, type.bytes() long, any alignment. Writing rounds or wraps.
Value ReadElement(const void* data, Type type);
void WriteElement(void* data, Type type, Value value);

}  // namespace kiln::ir
