// Elements of a reference's outputs that the caller has computed by itself: is the program the one
// that was asked for?
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "proto/runner.pb.h"
#include "runner/arguments.h"

namespace kiln::runner {

struct KnownOutput {
  Argument argument;
  std::span<const std::byte> bytes;  // all of it
};

// InvalidArgument: "output y: element [0, 3] is 1.5, expected 2: 12 of 40 elements differ". A few
// may: where a value lies at the edge of a step (rounding to integers), two right programs can give
// both sides of it. Refuses elements that are not there.
Status CheckKnown(const google::protobuf::RepeatedPtrField<v1::KnownElements>& known,
                  std::span<const KnownOutput> outputs, const v1::Tolerance& tolerance);

}  // namespace kiln::runner
