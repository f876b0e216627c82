#include "costmodel/make_cost_model.h"

#include <fmt/ranges.h>

#include "base/text/closest_names.h"
#include "costmodel/random_model.h"
#include "costmodel/xgb_kind.h"

namespace kiln::costmodel {

// The table has a line for each model.
std::span<const CostModelKind* const> CostModels() {
  static constexpr const CostModelKind* kModels[] = {
      &kXgb,
      &kRandom,
  };
  return kModels;
}

std::vector<std::string> CostModelNames() {
  std::vector<std::string> names;
  for (const CostModelKind* kind : CostModels()) names.emplace_back(kind->name);
  return names;
}

StatusOr<std::unique_ptr<CostModel>> MakeCostModel(std::string_view name,
                                                   const CostModelOptions& options) {
  for (const CostModelKind* kind : CostModels()) {
    if (kind->name == name) return kind->make(options);
  }
  return InvalidArgument("unknown cost model '{}', expected one of {}{}", name,
                         fmt::join(CostModelNames(), ", "), DidYouMean(name, CostModelNames()));
}

}  // namespace kiln::costmodel
