// A computation that makes some elements of another's outputs, and only what these need: to check a
// program whose plain loops would take minutes on a part of its outputs, in a second.
//
// The elements are those of a few regular grids over each output: all corners; two grids over the
// whole, at places drawn from the seed; and for each dimension one that has its two ends and runs
// over the others. Strides are odd where they can be, so that a grid is not in step with tiles. A
// grid of the whole with n elements in a dimension hits every block that is 1/n of the dimension
// long.
//
// How: each output's body with its axes replaced by offset + stride * axis, and so on through what
// it reads: a reduction becomes one over the axes that its reader's indices have in them, all else
// is put into its reader. The order of the terms of a reduction stays.
//
// Pure. Cost: a few milliseconds.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "compiler/dag/dag.h"

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
  DagPtr dag;                     // of all placeholders of the whole one, in their order
  std::vector<OutputGrid> grids;  // for each of its outputs, in their order

  int64_t elements() const;
};

struct SampleOptions {
  int64_t grid_elements = 4096;  // of a grid over the whole of an output, about
  double most_flops = 2e8;       // fewer elements are taken to stay below it
  uint64_t seed = 0;             // of the grids' places
};

// Refuses what it cannot make much cheaper than the whole, and what it would have to repeat too
// often.
StatusOr<SampledDag> SampleOutputs(const Dag& dag, const SampleOptions& options);

// What the plain loops take, roughly: a nanosecond for each operation on a CPU, and a thousandth of
// that on a GPU, where they run in many threads. 0: not known.
double PlainSeconds(const Dag& dag, bool gpu);

}  // namespace kiln::dag
