#include "search/templates/kernel_template.h"

#include <utility>

#include "compiler/handwritten/specialization.h"

namespace kiln::search {
namespace {

using handwritten::NamedValue;
using handwritten::ParameterValue;

OptionEntity EntityOf(const ParameterValue& value) {
  OptionEntity entity;
  std::visit([&](const auto& v) { entity.value = v; }, value);
  return entity;
}

// Returns the value of an entity that EntityOf has made.
ParameterValue ValueOf(const Entity& entity) {
  const OptionEntity& option = std::get<OptionEntity>(entity);
  if (const auto* flag = std::get_if<bool>(&option.value)) return *flag;
  if (const auto* number = std::get_if<int64_t>(&option.value)) return *number;
  return std::get<std::string>(option.value);
}

}  // namespace

KernelTemplate::KernelTemplate(handwritten::KernelText text)
    : text_(std::move(text)), digest_(handwritten::KernelDigest(text_)) {}

StatusOr<TemplatePtr> KernelTemplate::Parse(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(handwritten::KernelText parsed, handwritten::ParseKernelText(text));
  return std::make_shared<const KernelTemplate>(std::move(parsed));
}

StatusOr<ConfigSpace> KernelTemplate::Space(const dag::DagPtr& dag) const {
  KILN_RETURN_IF_ERROR(handwritten::CheckBinding(text_, *dag));
  ConfigSpace space;
  for (const handwritten::Parameter& parameter : text_.parameters) {
    std::vector<OptionEntity> values;
    for (const ParameterValue& value : parameter.values) values.push_back(EntityOf(value));
    KILN_RETURN_IF_ERROR(space.Add(Knob::Option(parameter.name, std::move(values))));
  }
  if (text_.restrictions.empty()) return space;
  KILN_ASSIGN_OR_RETURN(const auto restrictions, handwritten::Restrictions::Make(text_, dag));
  std::vector<std::string> names;
  for (const handwritten::Parameter& parameter : text_.parameters) names.push_back(parameter.name);
  space.AddFilter(
      [restrictions, names = std::move(names)](std::span<const Entity* const> entities) {
        std::vector<NamedValue> values;
        values.reserve(names.size());
        for (size_t i = 0; i < names.size(); ++i)
          values.emplace_back(names[i], ValueOf(*entities[i]));
        return restrictions.Hold(values);
      });
  return space;
}

StatusOr<Instance> KernelTemplate::Instantiate(const dag::DagPtr& dag, const Config& config) const {
  handwritten::KernelPoint point{.kernel = digest_, .function = text_.code.function, .values = {}};
  for (const auto& [name, entity] : config.entities)
    point.values.emplace_back(name, ValueOf(entity));
  KILN_ASSIGN_OR_RETURN(handwritten::Specialization specialization,
                        handwritten::Specialize(text_, *dag, point.values));
  return Instance(std::move(point), std::move(specialization));
}

Status KernelTemplate::CheckRuns(const Instance& instance, const Task& task, Drop& drop) const {
  const handwritten::Specialization& kernel = instance.specialization.value();
  drop = Drop::kThreads;
  const int64_t most_threads = task.hardware.max_threads_per_block;
  const int64_t most_shared = task.hardware.max_shared_memory_per_block_bytes;
  const bool has_threads = most_threads <= 0 || kernel.threads() <= most_threads;
  if (has_threads && most_shared > 0 && kernel.shared_bytes > most_shared)
    drop = Drop::kSharedMemory;
  return handwritten::CheckLaunch(kernel, task.hardware);
}

}  // namespace kiln::search
