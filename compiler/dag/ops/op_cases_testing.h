// Every operator of the library on small shapes, for tests that run over the whole library.
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

  // Returns "conv2d_nchw 1,5,7,3,2,3,3,1,1 bias,relu".
  std::string Name() const;
  // Checks that the operator can be built.
  DagPtr Build() const;
};

// Has at least one case for each operator. Extents are odd, primes and 1 on purpose. Each case
// takes a few hundred to some thousand operations.
std::span<const OpCase> SmallOpCases();

}  // namespace kiln::dag
