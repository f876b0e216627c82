// The code generators of this program: one for each kind of target.
#pragma once

#include <vector>

#include "compiler/codegen/backend.h"
#include "compiler/target/target_kind.h"

namespace kiln::codegen {

// Returns the backends in the order of target::AllTargetKinds.
Backends AllBackends();

// Returns the target kinds of the backends.
std::vector<const target::TargetKind*> KindsOf(Backends backends);

// Returns null if no backend is for this kind.
const Backend* FindBackend(const target::TargetKind& kind, Backends backends = AllBackends());

}  // namespace kiln::codegen
