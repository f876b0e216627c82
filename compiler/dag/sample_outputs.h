// Makes a computation of some elements of another computation's outputs. A large program can then
// be checked on a part of its outputs in a second; the plain loops of the whole would take minutes.
//
// The elements are those of a few regular grids over each output: all corners; two grids over the
// whole output, at offsets drawn from the seed; and for each dimension a grid that has only its two
// ends in that dimension and covers the others. Strides are odd where possible, so that they differ
// from the strides of tiles. A grid with n elements in a dimension hits every block that is 1/n of
// the dimension long.
//
// In the body of each output, axes are replaced by offset + stride * axis. The producers of the
// output follow: a reduction stays an operator, and its axes are then those that occur in its
// reader's indices; any other producer is inlined. A producer whose elements are read at indices
// that another tensor holds stays whole. The order of the terms of a reduction stays.
//
// A sample takes the inputs of the whole computation, with the same ranges and index limits
// (input_facts.h).
//
// Pure. Cost: a few milliseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/dag/text.h"

namespace kiln::dag {

// Element [a, b, ...] of the grid is element [offset[0] + stride[0] * a, ...] of an output.
struct OutputGrid {
  // Number among the outputs of the whole computation, as Dag::arguments() lists them.
  int output = 0;
  std::vector<int64_t> offset;
  // At least 1.
  std::vector<int64_t> stride;
  // Number of elements along each dimension: the grid's shape.
  std::vector<int64_t> count;

  int64_t elements() const;
};

struct SampledDag {
  // Has all placeholders of the whole computation, in their order.
  DagText text;
  // One grid for each of its outputs, in their order.
  std::vector<OutputGrid> grids;

  int64_t elements() const;
};

struct SampleOptions {
  // Approximate number of elements of a grid over the whole of an output.
  int64_t grid_elements = 4096;
  // Fewer elements are taken to stay below this number of operations.
  double most_flops = 2e8;
  // Determines the places of the grids.
  uint64_t seed = 0;
};

// Refuses a computation that it cannot make much cheaper, in which it would have to repeat parts
// too often, or whose sample would need other inputs.
StatusOr<SampledDag> SampleOutputs(const DagText& whole, const SampleOptions& options);

// Returns the rough time of the plain loops on a device that does so many operations in a second
// (target::TargetKind::unscheduled_flops_per_s). 0: not known.
double PlainSeconds(const Dag& dag, double flops_per_s);

}  // namespace kiln::dag
