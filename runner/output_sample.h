// Elements of a program's outputs that its reference computes, where it does not compute all
// (proto/runner.proto, OutputSample): regular grids over outputs.
//
// What is compared is these elements; of the others it is known that the program wrote them.
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
  int output = 0;     // of the program's
  Argument argument;  // the elements, as the reference has them: dtype, shape of the grid; its name
                      // is for people
  std::vector<int64_t> offset, stride;
};

// Checks that both plans take the same inputs and that each grid is inside of its output: one for
// each output of the reference. Refuses as CheckSameInterface.
StatusOr<std::vector<SampledOutput>> ParseSamples(
    const google::protobuf::RepeatedPtrField<v1::OutputSample>& samples,
    const std::vector<Argument>& program, const std::vector<Argument>& reference);

int64_t ElementsOf(std::span<const SampledOutput> samples);

// The elements of a sample out of all of its output.
PrivateBytes Gather(const SampledOutput& sample, const Argument& output,
                    std::span<const std::byte> bytes);

// Elements of a poisoned output (fill.h) that still are what they were poisoned with; 0 of types of
// which that could be an answer.
int64_t CountUnwritten(const Argument& output, std::span<const std::byte> bytes, Poison poison);

}  // namespace kiln::runner
