// Cost models by name.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "costmodel/cost_model_kind.h"

namespace kiln::costmodel {

std::span<const CostModelKind* const> CostModels();
std::vector<std::string> CostModelNames();

// Fails with the list of known ones if the name or a parameter is unknown.
StatusOr<std::unique_ptr<CostModel>> MakeCostModel(std::string_view name,
                                                   const CostModelOptions& options = {});

}  // namespace kiln::costmodel
