// Samples of a program's outputs, for a reference that does not compute all elements
// (proto/runner.proto, OutputSample): regular grids over outputs.
//
// Only these elements are compared. Of the other elements it is only checked that the program wrote
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/runner.pb.h"
#include "runner/arguments.h"
#include "runner/fill.h"
#include "runner/private_bytes.h"

namespace kiln::runner {

struct SampledOutput {
  // Index of the program's output.
  int output = 0;
  // The elements as the reference has them: dtype and shape of the grid. The name is for people.
  Argument argument;
  std::vector<int64_t> offset, stride;
};

// Checks that both plans take the same inputs, and that each grid is inside of its output. Each
// output of the reference has one grid. Errors are those of CheckSameInterface.
StatusOr<std::vector<SampledOutput>> ParseSamples(
    const google::protobuf::RepeatedPtrField<v1::OutputSample>& samples,
    const std::vector<Argument>& program, const std::vector<Argument>& reference);

int64_t ElementsOf(std::span<const SampledOutput> samples);

// Returns the elements of a sample from the bytes of its whole output.
PrivateBytes Gather(const SampledOutput& sample, const Argument& output,
                    std::span<const std::byte> bytes);

// Returns the number of elements of a poisoned output (fill.h) that still have the poison; 0 for
// types in which the poison could be an answer.
int64_t CountUnwritten(const Argument& output, std::span<const std::byte> bytes, Poison poison);

}  // namespace kiln::runner
