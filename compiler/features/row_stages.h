// What the rows of a program's features are of.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/program.h"

namespace kiln::features {

struct RowStage {
  std::string kernel;
  std::string stage;   // of the schedule, whose computation the store is
  std::string buffer;  // that the store writes

  friend bool operator==(const RowStage&, const RowStage&) = default;
};

// Of each row of ExtractFeatures, in its order.
std::vector<RowStage> RowStages(const ir::Program& program);

}  // namespace kiln::features
