#include "client/cli/space_text.h"

#include <fmt/format.h>

#include "client/view/json.h"
#include "client/view/render_kernel.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/step.h"
#include "search/templates/kernel_template.h"

namespace kiln::client {
namespace {

StatusOr<std::string> InstanceText(const search::Template& of, const dag::DagPtr& dag,
                                   const search::Instance& instance) {
  if (instance.state) {
    return fmt::format("\n{}\n{}", schedule::PrintLoops(*instance.state),
                       schedule::PrintPrimitives(*instance.state));
  }
  const auto& kernel = static_cast<const search::KernelTemplate&>(of);
  KILN_ASSIGN_OR_RETURN(
      const std::string text,
      RenderKernel({.dag = dag,
                    .steps = handwritten::PrintKernelPoint(instance.kernel.value()),
                    .target = {},
                    .kernel = handwritten::PrintKernelText(kernel.text())},
                   "schedule"));
  // Only the launch: the values stand above it.
  return text.substr(text.rfind("# "));
}

}  // namespace

std::string SpaceText(const search::ConfigSpace& space, bool json) {
  if (!json) return space.Print();
  std::string knobs;
  for (const search::Knob& knob : space.knobs()) {
    knobs += fmt::format("{}{{\"name\":{},\"len\":{},\"what\":{}}}", knobs.empty() ? "" : ",",
                         JsonString(knob.name()), knob.size(), JsonString(knob.Description()));
  }
  const search::ValidCount valid = space.CountValid();
  return fmt::format("{{\"len\":{},\"len_is_exact\":{},\"range_length\":{},\"knobs\":[{}]}}\n",
                     valid.count, valid.is_exact, space.range(), knobs);
}

StatusOr<std::string> ConfigText(const search::Template& of, const dag::DagPtr& dag,
                                 const search::ConfigSpace& space, int64_t index, bool json) {
  if (index < 0 || index >= space.range())
    return InvalidArgument("--config {}: expected an index from 0 to {}", index, space.range() - 1);
  const search::Config config = space.Get(index);
  if (!space.IsValid(index))
    return InvalidArgument("config {} is not valid: {}", index,
                           search::PrintEntities(config.entities));
  const StatusOr<search::Instance> instance = of.Instantiate(dag, config);
  if (!instance.ok()) return Annotate(instance.status(), fmt::format("config {}", index));
  if (json) {
    const std::string made = instance->kernel
                                 ? handwritten::PrintKernelPoint(instance->kernel.value())
                                 : schedule::PrintSteps(instance->state.value().steps());
    return fmt::format("{{\"index\":{},\"entity\":{},\"steps\":{}}}\n", index,
                       search::PrintEntities(config.entities), JsonString(made));
  }
  std::string text;
  for (const auto& [name, entity] : config.entities)
    text += fmt::format("{} = {}\n", name, search::PrintEntity(entity));
  KILN_ASSIGN_OR_RETURN(const std::string made, InstanceText(of, dag, *instance));
  return text + made;
}

}  // namespace kiln::client
