#include "client/cli/compilation_target.h"

#include "client/this_machine.h"

namespace kiln::client {

StatusOr<target::Target> CompilationTarget(const std::string& text, const Session& session) {
  KILN_ASSIGN_OR_RETURN(const target::Target target, target::ParseTarget(text));
  if (!target.is_gpu() && !session.scheduler.empty()) return target;
  return NameThisDevice(target);
}

}  // namespace kiln::client
