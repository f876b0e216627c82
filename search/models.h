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
  std::shared_ptr<const costmodel::CostModel> draft = {};
  // Between the two: ranks every other round while there are few results of a task, so that what
  // looks slow for no reason but its neighbours' sake is tried. May be null.
  std::shared_ptr<const costmodel::CostModel> half_way = {};
};

// What the policy of that name needs; the others have none. The analytic model is one of a device
// with these constants. Reads the columns of compiler/features. Once `stop` is requested, trainings
// end soon and teach nothing.
StatusOr<Models> MakeModels(std::string_view policy, uint64_t seed,
                            const device::Calibration& device = {},
                            const std::stop_token& stop = {});

}  // namespace kiln::search
