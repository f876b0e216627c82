// A hand-written kernel with values for its parameters. It is a candidate of the search for such
// kernels, and stands in the records of its trials in place of schedule steps.
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
  // The KernelDigest, 64 hex digits.
  std::string kernel;
  // For people.
  std::string function;
  // In the order of the kernel's text.
  std::vector<NamedValue> values;
  bool operator==(const KernelPoint&) const = default;
};

// Returns true if the text of a candidate is that of a kernel. Steps of a schedule begin with '['.
bool IsKernelPoint(std::string_view text);

// Prints on one line. ParseKernelPoint(PrintKernelPoint(x)) == x.
std::string PrintKernelPoint(const KernelPoint& point);
// InvalidArgument with the text that was found and the form that was expected.
StatusOr<KernelPoint> ParseKernelPoint(std::string_view json);

// Returns the same hash for equal kernels and values.
uint64_t HashKernelPoint(const KernelPoint& point);

// Returns a text for people: "block_size_x=32 use_padding=true".
std::string ValuesText(const std::vector<NamedValue>& values);

}  // namespace kiln::handwritten
