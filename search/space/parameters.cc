#include "search/space/parameters.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <variant>

#include "base/text/closest_names.h"
#include "search/space/stage_hints.h"

namespace kiln::search {
namespace {

constexpr std::string_view kFixedLocations = "disable_change_compute_location";

using Setting = std::variant<int*, double*, bool*>;

struct Named {
  std::string_view name;
  Setting setting;
  double least, most;
};

std::vector<Named> AllParameters(Parameters& p) {
  std::vector<Named> all = {
#define KILN_ROW(type, name, value, least, most, what, source) {#name, &p.name, least, most},
      KILN_SEARCH_PARAMETERS(KILN_ROW)
#undef KILN_ROW
  };
  for (const HintChoice& choice : HintChoices()) {
    if (!choice.parameter.empty())
      all.push_back({choice.parameter, &p.hints[static_cast<size_t>(choice.hint)], 0, 1});
  }
  return all;
}

void Set(const Setting& setting, double value) {
  std::visit(
      [value](auto* to) {
        using T = std::remove_pointer_t<decltype(to)>;
        if constexpr (std::is_same_v<T, bool>) {
          *to = value != 0;
        } else {
          *to = static_cast<T>(value);
        }
      },
      setting);
}

Status UnknownName(std::string_view name) {
  std::vector<std::string> names;
  for (const ParameterInfo& info : ParameterInfos()) names.emplace_back(info.name);
  std::ranges::sort(names);
  // All hundred names would hide the few that may be meant.
  if (const std::string near = DidYouMean(name, names); !near.empty())
    return InvalidArgument("unknown search parameter '{}'{}", name, near);
  return InvalidArgument("unknown search parameter '{}'; expected one of {}", name,
                         fmt::join(names, ", "));
}

}  // namespace

std::vector<ParameterInfo> ParameterInfos() {
  std::vector<ParameterInfo> all = {
#define KILN_INFO(type, name, value, least, most, what, source) \
  {#name, static_cast<double>(value), least, most, what, source},
      KILN_SEARCH_PARAMETERS(KILN_INFO)
#undef KILN_INFO
  };
  all.push_back({kFixedLocations, 0, 0, 1, "CPU: stages stay where the sketch computes them",
                 "as in TVM v0.14 (auto_scheduler/search_policy.py)"});
  for (const HintChoice& choice : HintChoices()) {
    if (choice.parameter.empty()) continue;
    all.push_back({choice.parameter, 1, 0, 1,
                   fmt::format("GPU: the stage hint {} is drawn", choice.parameter),
                   "chosen by Kiln; docs/matrix-units.md and "
                   "docs/experiments/code-generation-cuda.md measure "
                   "some hints"});
  }
  return all;
}

std::string ParameterTable() {
  std::string table =
      "| name | default | range | what it means | source |\n| --- | --- | --- | --- | --- |\n";
  for (const ParameterInfo& info : ParameterInfos()) {
    table += fmt::format("| `{}` | {} | {} to {} | {} | {} |\n", info.name, info.value, info.least,
                         info.most, info.what, info.source);
  }
  return table;
}

StatusOr<Parameters> MakeParameters(const std::map<std::string, double>& overrides) {
  Parameters parameters;
  const std::vector<Named> all = AllParameters(parameters);
  for (const auto& [name, value] : overrides) {
    if (name == kFixedLocations) {
      if (!(value >= 0 && value <= 1)) {
        return InvalidArgument("search parameter {} is {}, expected 0 or 1", name, value);
      }
      parameters.change_compute_location = value == 0;
      continue;
    }
    const auto found = std::ranges::find(all, name, &Named::name);
    if (found == all.end()) return UnknownName(name);
    if (!(value >= found->least && value <= found->most)) {
      return InvalidArgument("search parameter {} is {}, expected a number from {} to {}", name,
                             value, found->least, found->most);
    }
    Set(found->setting, value);
  }
  return parameters;
}

}  // namespace kiln::search
