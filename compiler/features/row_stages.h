// The stages and buffers to which the rows of a program's features belong.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::features {

struct RowStage {
  std::string kernel;
  // The stage of the schedule that the store computes.
  std::string stage;
  // The buffer that the store writes.
  std::string buffer;

  friend bool operator==(const RowStage&, const RowStage&) = default;
};

// Returns the stage of each row of ExtractFeatures, in their order.
std::vector<RowStage> RowStages(const ir::Program& program);

}  // namespace kiln::features
