// Element types of arguments.
#pragma once

#include "runtime/dtype.h"

namespace kiln::runner {

using runtime::DType;
using runtime::DTypeBytes;
using runtime::DTypeName;
using runtime::IsFloat;
using runtime::ParseDType;

}  // namespace kiln::runner
