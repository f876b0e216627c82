// Every operator of the library on small shapes: what tests that run over the whole library use.
#pragma once

#include <span>
#include <string>

#include "compiler/dag/dag.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::dag {

struct OpCase {
  const char* op;
  const char* args;
  const char* epilogue = "";
  ir::Type dtype = ir::kFloat32;

  std::string Name() const;  // "conv2d_nchw 1,5,7,3,2,3,3,1,1 bias,relu"
  DagPtr Build() const;      // checks that it can be built
};

// At least one case for each operator. Odd extents, primes and 1 on purpose; a few hundred to some
// thousand operations each.
std::span<const OpCase> SmallOpCases();

}  // namespace kiln::dag
