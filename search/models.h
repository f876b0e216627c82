// The cost models that the policies of one job share.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "costmodel/cost_model.h"

namespace kiln::search {

struct Models {
  std::shared_ptr<costmodel::CostModel> learned;         // PolicyOptions::model
  std::shared_ptr<costmodel::CostModel> analytic;        // PolicyOptions::draft_model
  std::shared_ptr<const costmodel::CostModel> half_way;  // PolicyOptions::half_way_model
};

// What the policy of that name needs; the others have none. Reads the columns of
// compiler/features.
StatusOr<Models> MakeModels(std::string_view policy, uint64_t seed);

}  // namespace kiln::search
