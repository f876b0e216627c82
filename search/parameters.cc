#include "search/parameters.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <variant>
#include <vector>

#include "compiler/schedule/steps/steps.h"
#include "search/stage_hints.h"

namespace kiln::search {
namespace {

struct Named {
  std::string_view name;
  std::variant<int*, double*, bool*> value;
  double least, most;
};

std::vector<Named> AllParameters(Parameters& p) {
  std::vector<Named> all = {
      {"async_copies", &p.async_copies, 0, 1},
      {"cluster_splits", &p.cluster_splits, 0, 1},
      {"copy_tiles", &p.copy_tiles, 0, 1},
      {"crossover_prob", &p.crossover_prob, 0, 1},
      {"draft_eps_greedy", &p.draft_eps_greedy, 0, 1},
      {"eps_greedy", &p.eps_greedy, 0, 1},
      {"evolutionary_search_mutation_prob", &p.evolutionary_search_mutation_prob, 0, 1},
      {"evolutionary_search_num_iters", &p.evolutionary_search_num_iters, 0, 1000},
      {"evolutionary_search_population", &p.evolutionary_search_population, 1, 1e6},
      {"fetch_ahead", &p.fetch_ahead, 0, 1},
      {"least_sketch_share", &p.least_sketch_share, 0, 1},
      {"max_fetch_depth", &p.max_fetch_depth, 2, schedule::BufferingStep::kMaxDepth},
      {"max_futile_samples", &p.max_futile_samples, 1, 1e9},
      {"max_innermost_split_factor", &p.max_innermost_split_factor, 1, 1e9},
      {"max_same_outer_tiles", &p.max_same_outer_tiles, 0, 1},
      {"max_same_tile_shapes", &p.max_same_tile_shapes, 1, 1e9},
      {"max_same_tiles", &p.max_same_tiles, 1, 1e9},
      {"max_vectorize_size", &p.max_vectorize_size, 1, 1e9},
      {"measured_parent_prob", &p.measured_parent_prob, 0, 1},
      {"neighbour_share", &p.neighbour_share, 0, 1},
      {"reduction_splits", &p.reduction_splits, 0, 1},
      {"sample_init_min_population", &p.sample_init_min_population, 1, 1e6},
      {"sample_init_population", &p.sample_init_population, 1, 1e6},
      {"sample_init_use_measured_ratio", &p.sample_init_use_measured_ratio, 0, 1},
      {"shared_layouts", &p.shared_layouts, 0, 1},
      {"uneven_tiles", &p.uneven_tiles, 0, 1},
      {"vary_thread_counts", &p.vary_thread_counts, 0, 1},
  };
  for (const HintChoice& choice : HintChoices()) {
    if (!choice.parameter.empty())
      all.push_back({choice.parameter, &p.hints[static_cast<size_t>(choice.hint)], 0, 1});
  }
  std::ranges::sort(all, {}, &Named::name);
  return all;
}

void Set(const Named& parameter, double value) {
  std::visit(
      [value](auto* to) {
        using T = std::remove_pointer_t<decltype(to)>;
        if constexpr (std::is_same_v<T, bool>) {
          *to = value != 0;
        } else {
          *to = static_cast<T>(value);
        }
      },
      parameter.value);
}

}  // namespace

StatusOr<Parameters> MakeParameters(const std::map<std::string, double>& overrides) {
  Parameters parameters;
  const std::vector<Named> all = AllParameters(parameters);
  for (const auto& [name, value] : overrides) {
    if (name == "disable_change_compute_location") {
      if (!(value >= 0 && value <= 1)) {
        return InvalidArgument("search parameter {} is {}, expected 0 or 1", name, value);
      }
      parameters.change_compute_location = value == 0;
      continue;
    }
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Named& p) { return p.name == name; });
    if (found == all.end()) {
      std::vector<std::string_view> names = {"disable_change_compute_location"};
      for (const Named& p : all) names.push_back(p.name);
      return InvalidArgument("unknown search parameter '{}', expected one of {}", name,
                             fmt::join(names, ", "));
    }
    if (!(value >= found->least && value <= found->most)) {
      return InvalidArgument("search parameter {} is {}, expected a number from {} to {}", name,
                             value, found->least, found->most);
    }
    Set(*found, value);
  }
  return parameters;
}

}  // namespace kiln::search
