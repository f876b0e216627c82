#include "client/this_machine.h"

#include "compiler/codegen/backends/backends.h"

namespace kiln::client {

StatusOr<std::string> DeviceOfTarget(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(text));
  return std::string(target.kind->device);
}

StatusOr<target::Target> NameThisCpu(const target::Target& target) {
  return codegen::FindBackend(*target.kind)->Resolve(target);
}

Status NameThisCpu(v1::JobSpec& spec) {
  for (v1::TaskSpec& task : *spec.mutable_tasks()) {
    KILN_ASSIGN_OR_RETURN(const target::Target asked, target::ParseTarget(task.target()));
    KILN_ASSIGN_OR_RETURN(const target::Target exact, NameThisCpu(asked));
    task.set_target(target::PrintTarget(exact));
  }
  return OkStatus();
}

}  // namespace kiln::client
