#include "client/this_machine.h"

#include "compiler/codegen/backends/backends.h"
#include "compiler/target/target.h"

namespace kiln::client {

StatusOr<std::string> DeviceOfTarget(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(text));
  return std::string(target.kind->device);
}

Status NameThisCpu(v1::JobSpec& spec) {
  for (v1::TaskSpec& task : *spec.mutable_tasks()) {
    KILN_ASSIGN_OR_RETURN(const target::Target asked, target::ParseTarget(task.target()));
    const codegen::Backend& backend = *codegen::FindBackend(*asked.kind);
    KILN_ASSIGN_OR_RETURN(const target::Target resolved, backend.Resolve(asked));
    task.set_target(target::PrintTarget(resolved));
  }
  return OkStatus();
}

}  // namespace kiln::client
