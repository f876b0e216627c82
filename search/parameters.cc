#include "search/parameters.h"

namespace kiln::search {

StatusOr<Parameters> MakeParameters(const std::map<std::string, double>& overrides) {
  Parameters parameters;
  const std::map<std::string_view, int*> ints = {
      {"max_innermost_split_factor", &parameters.max_innermost_split_factor},
      {"max_vectorize_size", &parameters.max_vectorize_size},
      {"max_futile_samples", &parameters.max_futile_samples},
  };
  for (const auto& [name, value] : overrides) {
    if (name == "disable_change_compute_location") {
      parameters.change_compute_location = value == 0;
      continue;
    }
    if (name == "vary_thread_counts") {
      parameters.vary_thread_counts = value != 0;
      continue;
    }
    const auto found = ints.find(name);
    if (found == ints.end()) {
      return InvalidArgument(
          "unknown search parameter '{}', expected one of disable_change_compute_location, "
          "max_futile_samples, "
          "max_innermost_split_factor, max_vectorize_size, vary_thread_counts",
          name);
    }
    if (!(value >= 1 && value <= 1e9)) {
      return InvalidArgument("search parameter {} is {}, expected a number from 1 to 1e9", name,
                             value);
    }
    *found->second = static_cast<int>(value);
  }
  return parameters;
}

}  // namespace kiln::search
