// The keys that a computation has in logs of older versions of TVM.
//
//   until 2021-01     ["<md5>"]: of the bodies, shapes and types of all operators
//   until 2021-08     ["<md5>", 1, 1000, 1, 1000]: shapes in one list; the hash text has no shapes
//   until 2022-09     ["<md5>", [1, 1000], [1, 1000]]
//
// In all of them inputs are called `placeholder`, and some operators have other names than today:
// sums of convolutions and products (`Conv2dOutput`, `compute`, `T_dense`), the padding before them
// (`PaddedInput`). The names in logs of the docs and benchmarks of that time are known, so those
// keys are among these. Keys with yet other names are not found; for these, `kiln records bind`
// tells the computation that a key stands for.
#pragma once

#include <string>
#include <vector>

#include "compiler/dag/dag.h"

namespace kiln::dag {

// Returns each key once, without the keys of WorkloadKeys. Pure function; cost: some hash texts.
std::vector<std::string> OldWorkloadKeys(const Dag& dag);

}  // namespace kiln::dag
