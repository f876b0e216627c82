// Makes a computation of some elements of another's outputs. A large program can then be checked on
// a part of its outputs in a second; the plain loops of the whole would take minutes.
//
// The elements are those of a few regular grids over each output: all corners; two grids over the
// whole output, at offsets drawn from the seed; and for each dimension a grid that has only its two
// ends in that dimension and covers the others. Strides are odd where possible, so that they differ
// from those of tiles. A grid with n elements in a dimension hits every block that is 1/n of the
// dimension long.
//
// In the body of each output, axes are replaced by offset + stride * axis. Its producers follow: a
// reduction stays an operator, whose axes are then those that occur in its reader's indices; any
// other producer is inlined. A producer of which elements are read at indices that another tensor
// holds stays whole. The order of the terms of a reduction stays.
//
// A sample takes the inputs of the whole computation and has all that is said of them: ranges and
// index limits (input_facts.h).
//
// Pure. Cost: a few milliseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"
#include "compiler/dag/text.h"

namespace kiln::dag {

// Element [a, b, ...] of it is element [offset[0] + stride[0] * a, ...] of an output.
struct OutputGrid {
  int output = 0;  // of those of the whole computation, as Dag::arguments() lists them
  std::vector<int64_t> offset;
  std::vector<int64_t> stride;  // at least 1
  std::vector<int64_t> count;   // elements along each dimension, the grid's shape

  int64_t elements() const;
};

struct SampledDag {
  DagText text;                   // of all placeholders of the whole one, in their order
  std::vector<OutputGrid> grids;  // for each of its outputs, in their order

  int64_t elements() const;
};

struct SampleOptions {
  int64_t grid_elements = 4096;  // of a grid over the whole of an output, about
  double most_flops = 2e8;       // fewer elements are taken to stay below it
  uint64_t seed = 0;             // of the grids' places
};

// Refuses a computation that it cannot make much cheaper, in which it would have to repeat parts
// too often, or whose sample would have to be given other inputs.
StatusOr<SampledDag> SampleOutputs(const DagText& whole, const SampleOptions& options);

// The time of the plain loops, roughly, where so many operations are done in a second
// (target::TargetKind::unscheduled_flops_per_s). 0: not known.
double PlainSeconds(const Dag& dag, double flops_per_s);

}  // namespace kiln::dag
