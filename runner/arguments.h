// The arguments of a launch plan, checked once at the door: everything behind it may trust sizes
// and names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/packing.h"
#include "base/status.h"
#include "proto/trial.pb.h"
#include "rpc/random_fill.h"
#include "runner/dtype.h"

namespace kiln::runner {

struct Argument {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  v1::ArgSpec::Role role = v1::ArgSpec::INPUT;
  int64_t alignment_bytes = 64;
  int64_t index_limit = 0;
  std::optional<ValueRange> range = {};  // of an input's random fill
  std::optional<Packing> packing = {};   // of an input that the program takes packed
  int64_t elements = 1;                  // of the tensor
  int64_t bytes = 0;                     // that the program is given: of the packed elements

  int64_t plain_bytes() const { return elements * DTypeBytes(dtype); }
};

// Refuses unknown dtypes, extents below 1, sizes past 2^46 bytes, alignments that are no power of
// two or above 4096, empty ranges, packings that leave elements out, and plans without an output.
// Missing names become "arg3".
StatusOr<std::vector<Argument>> ParseArguments(const v1::LaunchPlan& plan);

// Those of one role, in order; they point into `arguments`.
std::vector<const Argument*> OfRole(const std::vector<Argument>& arguments, v1::ArgSpec::Role role);

// "float32[1, 512, 7, 7]"
std::string TypeText(const Argument& argument);

// What two plans must have in common to be fed the same inputs and compared by their outputs:
// inputs and outputs in the same order with the same dtype and shape (and, for inputs, name,
// index_limit and range: random fill depends on them). Workspaces are free.
Status CheckSameInputs(const std::vector<Argument>& candidate,
                       const std::vector<Argument>& reference);
Status CheckSameInterface(const std::vector<Argument>& candidate,
                          const std::vector<Argument>& reference);

// Identifies the content of an input after random fill: equal keys, equal elements. `ordinal` counts
// inputs. How the program takes it is not in it: equal keys and packings, equal bytes.
std::string InputKey(const Argument& argument, int ordinal, uint64_t seed);

}  // namespace kiln::runner
