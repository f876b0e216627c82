// The cost models that the policies of one job share, and call one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string_view>

#include "base/status.h"
#include "costmodel/cost_model.h"
#include "device/calibration.h"

namespace kiln::search {

struct Models {
  // What sketch.xgb learns with and ranks by.
  std::shared_ptr<costmodel::CostModel> learned = {};
  // Ranks while `learned` is not trained, and always for sketch.analytic. Without one, candidates
  // are random until `learned` is trained.
  std::shared_ptr<const costmodel::CostModel> prior = {};
  // The mean of the two. It ranks every other round while a task has few results: the learned model
  // alone would reject schedules only because similar ones were slow. May be null.
  std::shared_ptr<const costmodel::CostModel> blended = {};
};

// What the policy of that name needs (PolicyKind); InvalidArgument where there is none. The
// analytic model is one of a device with these constants. Reads the columns of compiler/features.
// Once `stop` is requested, trainings end soon and teach nothing.
StatusOr<Models> MakeModels(std::string_view policy, uint64_t seed,
                            const device::Calibration& device = {},
                            const std::stop_token& stop = {});

}  // namespace kiln::search
