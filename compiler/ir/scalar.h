// Scalar values and the number formats behind the types: rounding, wrapping, bits in memory,
// conversion. Folding, the evaluator and the arrays share this definition of casts.
//
// Pure functions, any thread. Cost: a few nanoseconds.
#pragma once

#include <cstdint>

#include "base/numbers/float8.h"
#include "compiler/ir/type.h"

namespace kiln::ir {

// `i` holds ints, unsigned ints and bools (0 or 1); `f` holds floats of every width exactly. For a
// uint64, `i` holds the bits, so a number of 2^63 or more is negative there. The type is known from
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

// Returns the format of an 8-bit float, or null for other types.
const Float8Format* Float8FormatOf(Type type);

// Returns the largest finite value of a float type.
double LargestFinite(Type type);

// Returns the nearest value of a float type, ties to even. A value past the largest one becomes
// infinity, or the largest one for 8-bit floats. All NaNs become the same NaN.
double RoundToType(double value, Type type);

// Wraps to the width of the type in two's complement, modulo 2^bits for unsigned types. A bool is
// value != 0.
int64_t WrapToType(int64_t value, Type type);

// Computes kCast. A float is truncated to an int and saturates to the range of `to`; NaN gives 0.
// The conversion to bool is "!= 0", so NaN gives true. Compiled code agrees.
Value CastValue(Value value, Type from, Type to);

// Handles kReinterpret: returns the value of type `to` that is read from memory where `value` was
// written as the type `from`. Both types have the same number of bytes.
Value ReinterpretValue(Value value, Type from, Type to);

// Read and write one element in memory: little-endian, type.bytes() long, any alignment. Writing
// rounds or wraps.
Value ReadElement(const void* data, Type type);
void WriteElement(void* data, Type type, Value value);

}  // namespace kiln::ir
