// Winograd's variant of a convolution, for the operator that has it as another variant.
#pragma once

#include <vector>

#include "compiler/dag/ops/op.h"

namespace kiln::dag {

// Of conv2d_nhwc with these arguments: none, or the one with the tile that suits size and device.
std::vector<AlgorithmVariant> WinogradVariants(const OpArgs& args, ir::Type dtype, bool gpu);

}  // namespace kiln::dag
