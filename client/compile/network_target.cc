#include "client/compile/network_target.h"

#include <fmt/format.h>

#include "compiler/codegen/backends/backends.h"
#include "runtime/cpu_features.h"

namespace kiln::client {

StatusOr<runtime::NetworkTarget> NetworkTargetOf(const target::Target& target,
                                                 const std::string& device) {
  runtime::NetworkTarget made{.kind = std::string(target.kind->device),
                              .arch = {},
                              .device = device,
                              .features = {},
                              .text = target::PrintTarget(target)};
  if (target.is_gpu()) {
    made.arch = fmt::format("sm_{}", target.GpuArch());
    return made;
  }
  made.arch = "x86_64";
  if (target.kind != &target::kLlvm) return made;
  const codegen::Backend& backend = *codegen::FindBackend(*target.kind);
  KILN_ASSIGN_OR_RETURN(const target::Target resolved, backend.Resolve(target));
  KILN_ASSIGN_OR_RETURN(made.features, backend.FeaturesUsed(resolved, runtime::KnownCpuFeatures()));
  const std::string asked = target.Option("mcpu");
  if (made.device.empty() && (asked.empty() || asked == "native"))
    made.device = runtime::HostCpuName();
  target::Target named = target;
  named.options["mcpu"] = resolved.Option("mcpu");
  made.text = target::PrintTarget(named);
  return made;
}

}  // namespace kiln::client
