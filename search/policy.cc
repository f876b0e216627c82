#include "search/policy.h"

#include <fmt/ranges.h>

#include "search/random_policy.h"

namespace kiln::search {

std::vector<std::string> PolicyNames() { return {"sketch.random"}; }

StatusOr<std::unique_ptr<Policy>> MakePolicy(std::string_view name, const Task& task, uint64_t seed,
                                             const PolicyOptions& options) {
  KILN_ASSIGN_OR_RETURN(Parameters parameters, MakeParameters(options.parameters));
  if (name == "sketch.random")
    return std::make_unique<RandomPolicy>(task, std::move(parameters), seed);
  return InvalidArgument("unknown policy '{}', expected one of {}", name,
                         fmt::join(PolicyNames(), ", "));
}

}  // namespace kiln::search
