// A hand-written kernel with values for its parameters: what a candidate of such a search is, and
// what the records of its trials keep in the place of schedule steps.
//
//   {"kernel":"3f2a...","function":"matmul","parameters":{"block_size_x":32,"use_padding":true}}
//
// Immutable values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/handwritten/kernel_text.h"

namespace kiln::handwritten {

struct KernelPoint {
  std::string kernel;              // KernelDigest, 64 hex digits
  std::string function;            // for people
  std::vector<NamedValue> values;  // in the order of the kernel's text
  bool operator==(const KernelPoint&) const = default;
};

// Is a text that stands for a candidate that of a kernel? Steps of a schedule begin with '['.
bool IsKernelPoint(std::string_view text);

// On one line; ParseKernelPoint(PrintKernelPoint(x)) == x.
std::string PrintKernelPoint(const KernelPoint& point);
// InvalidArgument: what was found, and what was expected.
StatusOr<KernelPoint> ParseKernelPoint(std::string_view json);

// The same for equal kernels and values.
uint64_t HashKernelPoint(const KernelPoint& point);

// For people: "block_size_x=32 use_padding=true".
std::string ValuesText(const std::vector<NamedValue>& values);

}  // namespace kiln::handwritten
