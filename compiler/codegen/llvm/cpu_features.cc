#include "compiler/codegen/llvm/cpu_features.h"

#include <llvm/MC/MCSubtargetInfo.h>

#include "compiler/codegen/llvm/llvm.h"
#include "compiler/codegen/llvm/machine.h"

namespace kiln::codegen {

StatusOr<std::vector<std::string>> CpuFeaturesOf(const target::Target& target,
                                                 std::span<const std::string_view> names) {
  KILN_ASSIGN_OR_RETURN(const target::Target resolved, ResolveCpu(target));
  KILN_ASSIGN_OR_RETURN(const llvm::TargetMachine* machine, FindMachine(resolved));
  std::vector<std::string> features;
  for (std::string_view name : names) {
    if (machine->getMCSubtargetInfo()->checkFeatures("+" + std::string(name)))
      features.emplace_back(name);
  }
  return features;
}

}  // namespace kiln::codegen
