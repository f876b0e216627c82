#include "search/templates/shipped.h"

#include <algorithm>

#include "base/text/closest_names.h"
#include "search/templates/shipped/operators.h"

namespace kiln::search {
namespace {

// Returns "" if there is no reduction, or if there are several.
std::string AxesOfReduction(const dag::Dag& dag) {
  std::string axes;
  int reductions = 0;
  for (int i = 0; i < dag.size(); ++i) {
    if (!dag.op(i).is_reduction()) continue;
    axes.clear();
    for (const dag::Axis& axis : dag.op(i).axes()) axes += (axes.empty() ? "" : " ") + axis.name;
    ++reductions;
  }
  return reductions == 1 ? axes : "";
}

}  // namespace

// The order is that of the documentation. The first template that can schedule a computation is
// taken.
std::span<const ShippedTemplate> ShippedTemplates() {
  static const std::vector<ShippedTemplate> kTemplates = [] {
    std::vector<ShippedTemplate> all;
    for (const auto& templates : {Conv2dTemplates(), DepthwiseTemplates(), MatmulTemplates()}) {
      all.insert(all.end(), templates.begin(), templates.end());
    }
    return all;
  }();
  return kTemplates;
}

StatusOr<const ShippedTemplate*> FindShippedTemplate(std::string_view name, bool gpu) {
  std::vector<std::string> names;
  for (const ShippedTemplate& shipped : ShippedTemplates()) {
    if (shipped.for_gpu != gpu) continue;
    if (shipped.name == name) return &shipped;
    names.emplace_back(shipped.name);
  }
  return NotFound("no template {} for a {}{}; kiln templates lists them", name, gpu ? "GPU" : "CPU",
                  DidYouMean(name, names));
}

StatusOr<TemplatePtr> ShippedTemplateFor(const dag::DagPtr& dag, bool gpu) {
  const std::string axes = AxesOfReduction(*dag);
  for (const ShippedTemplate& shipped : ShippedTemplates()) {
    if (shipped.for_gpu != gpu || shipped.axes != axes) continue;
    KILN_ASSIGN_OR_RETURN(TemplatePtr made, TextTemplate::Parse(shipped.text));
    if (made->Space(dag).ok()) return made;
  }
  return NotFound(
      "no template that Kiln ships can schedule this computation on a {}: kiln templates lists "
      "them, docs/templates.md says how to write one",
      gpu ? "GPU" : "CPU");
}

StatusOr<TemplatePtr> TemplateFor(TemplatePtr given, const dag::DagPtr& dag, bool gpu) {
  if (given == nullptr) return ShippedTemplateFor(dag, gpu);
  if (given->for_gpu() != gpu)
    return InvalidArgument("{} {} is for a {}, the target is a {}", given->kind(), given->name(),
                           given->for_gpu() ? "GPU" : "CPU", gpu ? "GPU" : "CPU");
  const Status fits = given->Space(dag).status();
  if (!fits.ok()) return Annotate(fits, fmt::format("{} {}", given->kind(), given->name()));
  return given;
}

}  // namespace kiln::search
