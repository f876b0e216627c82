// The arguments of a launch plan. They are checked once, when they come in, so that all other code
// may trust sizes and names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/arrays/packing.h"
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
  // Range of an input's random fill.
  std::optional<ValueRange> range = {};
  // Layout of an input that the program takes packed.
  std::optional<Packing> packing = {};
  // Number of elements of the tensor.
  int64_t elements = 1;
  // Bytes that the program is given; those of the packed elements if the input is packed.
  int64_t bytes = 0;

  int64_t plain_bytes() const { return elements * DTypeBytes(dtype); }
};

// Refuses unknown dtypes, extents below 1, sizes past 2^46 bytes, alignments that are no power of
// two or above 4096, empty ranges, packings that leave elements out, and plans without an output.
// Missing names become "arg3".
StatusOr<std::vector<Argument>> ParseArguments(const v1::LaunchPlan& plan);

// Returns the arguments of one role, in order. They point into `arguments`.
std::vector<const Argument*> OfRole(const std::vector<Argument>& arguments, v1::ArgSpec::Role role);

// Returns for instance "float32[1, 512, 7, 7]".
std::string TypeText(const Argument& argument);

// Check that two programs can run on the same inputs (CheckSameInputs), and that their outputs can
// be compared as well (CheckSameInterface). Both plans must have the same arguments in the same
// order, with the same dtype and shape; for inputs also the same name, index_limit and range,
// because random fill depends on them. Workspaces may differ.
Status CheckSameInputs(const std::vector<Argument>& candidate,
                       const std::vector<Argument>& reference);
Status CheckSameInterface(const std::vector<Argument>& candidate,
                          const std::vector<Argument>& reference);

// Returns the identity of an input's content after random fill: equal keys give equal elements.
// `ordinal` counts inputs. The key does not cover how the program takes the input: equal keys and
// packings give equal bytes.
std::string InputKey(const Argument& argument, int ordinal, uint64_t seed);

}  // namespace kiln::runner
