// Winograd's method for 3x3 convolutions: its forms, and the variant of an operator that uses it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "compiler/dag/ops/op.h"

namespace kiln::dag {

// Number of rows and of columns of an output tile, 2 or 4, and whether the transforms are written
// out, rows first (winograd.cc).
struct WinogradForm {
  int64_t tile;
  bool by_rows;
};
struct WinogradImage {
  int64_t batch, height, width, pad;
  int64_t stride = 1;
};
// Returns the form that is faster than the direct one for a 3x3 convolution of these images on a
// GPU or a CPU. None: there is no such form.
std::optional<WinogradForm> FastWinogradForm(const WinogradImage& image, bool gpu);

// Returns the variants of conv2d_nhwc with these arguments that may pay: winograd F(2,3) or F(4,3),
// and F(2,3) for stride 2.
std::vector<AlgorithmVariant> WinogradVariants(const OpArgs& args, ir::Type dtype, bool gpu);

}  // namespace kiln::dag
