// The functions that an expression may call.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace kiln::ir {

enum class Intrinsic : int32_t {
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kTanh,
  kSigmoid,
  kErf,
  kPow,
  kAbs,
  kFloor,
  kCeil,
  // Rounds half to even.
  kRound,
  kSin,
  kCos,
  kExp2,
  kLog2,
};

// Returns "exp", ...
std::string_view IntrinsicName(Intrinsic intrinsic);
StatusOr<Intrinsic> ParseIntrinsic(std::string_view name);
int IntrinsicArity(Intrinsic intrinsic);

}  // namespace kiln::ir
