// The code generators of this program: one for each kind of target.
#pragma once

#include <vector>

#include "compiler/codegen/backend.h"
#include "compiler/target/target_kind.h"

namespace kiln::codegen {

// In the order of target::AllTargetKinds.
Backends AllBackends();

// What they compile for.
std::vector<const target::TargetKind*> KindsOf(Backends backends);

// Null: none of them is for this kind.
const Backend* FindBackend(const target::TargetKind& kind, Backends backends = AllBackends());

}  // namespace kiln::codegen
