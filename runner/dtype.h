// Element types of arguments, and which values they may get.
#pragma once

#include "runtime/dtype.h"

namespace kiln::runner {

using runtime::DType;
using runtime::DTypeBytes;
using runtime::DTypeName;
using runtime::IsFloat;
using runtime::ParseDType;

// Values in [low, high); of integers both are whole.
struct ValueRange {
  double low = 0;
  double high = 0;
};

}  // namespace kiln::runner
