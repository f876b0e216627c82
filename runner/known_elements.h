// Checks a reference by elements of its outputs that the caller has computed by itself: a reference
// that gives others is not the program that the caller asked for.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "proto/runner.pb.h"
#include "runner/arguments.h"

namespace kiln::runner {

struct KnownOutput {
  Argument argument;
  // Bytes of the whole output.
  std::span<const std::byte> bytes;
};

// InvalidArgument: "output y: element [0, 3] is 1.5, expected 2: 12 of 40 elements differ". A few
// may differ, because a value at the edge of a step (rounding to integers) may fall on either side
// in two right programs. Refuses elements that are not there.
Status CheckKnown(const google::protobuf::RepeatedPtrField<v1::KnownElements>& known,
                  std::span<const KnownOutput> outputs, const v1::Tolerance& tolerance);

}  // namespace kiln::runner
