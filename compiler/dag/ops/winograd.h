// Winograd's method for 3x3 convolutions: its forms, and the variant of the operator that has one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/dag/ops/op.h"

namespace kiln::dag {

// Rows and columns of an output tile, 2 or 4, and whether the transforms are written out, rows first
// (winograd.cc).
struct WinogradForm {
  int64_t tile;
  bool by_rows;
};
struct WinogradImage {
  int64_t batch, height, width, pad;
  int64_t stride = 1;
};
// The form of a 3x3 convolution of these images that is faster on a GPU or a CPU. Nothing: there is
// none.
std::optional<WinogradForm> FastWinogradForm(const WinogradImage& image, bool gpu);

// Of conv2d_nhwc with these arguments: winograd F(2,3) or F(4,3), of stride 2 F(2,3), where it may pay.
std::vector<AlgorithmVariant> WinogradVariants(const OpArgs& args, ir::Type dtype, bool gpu);

}  // namespace kiln::dag
