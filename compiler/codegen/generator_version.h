// The version of the code generators. A record that goes to another machine has it beside its cost.
#pragma once

namespace kiln::codegen {

// Raise it when the generated code of the same steps changes so much that earlier costs no longer
// hold.
inline constexpr int kGeneratorVersion = 1;

}  // namespace kiln::codegen
