// Element types of the tensors of networks and of programs' arguments: names and sizes.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "runtime/dtype_values.h"

namespace kiln::runtime {

// Refuses names that are not in the table ("float31"), and lists the names that are.
StatusOr<DType> ParseDType(std::string_view name);
std::string_view DTypeName(DType dtype);
int64_t DTypeBytes(DType dtype);
bool IsFloat(DType dtype);

}  // namespace kiln::runtime
