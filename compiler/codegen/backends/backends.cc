#include "compiler/codegen/backends/backends.h"

#include "compiler/codegen/cuda/backend.h"
#include "compiler/codegen/llvm/backend.h"
#include "compiler/codegen/null.h"

namespace kiln::codegen {

Backends AllBackends() {
  static const Backend* const all[] = {&LlvmBackend(), &CudaBackend(), &NullBackend()};
  return all;
}

std::vector<const target::TargetKind*> KindsOf(Backends backends) {
  std::vector<const target::TargetKind*> kinds;
  for (const Backend* backend : backends) kinds.push_back(&backend->kind());
  return kinds;
}

const Backend* FindBackend(const target::TargetKind& kind, Backends backends) {
  for (const Backend* backend : backends) {
    if (&backend->kind() == &kind) return backend;
  }
  return nullptr;
}

}  // namespace kiln::codegen
