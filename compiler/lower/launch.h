// Launch dimensions of a kernel, from the extents of its bound loops.
#pragma once

#include "base/status.h"
#include "compiler/ir/program.h"
#include "compiler/schedule/state.h"

namespace kiln::lower {

ir::LoopKind KindOf(schedule::Annotation annotation);

// Returns true if the loop is bound to threads.
inline bool IsThread(schedule::Annotation a) {
  using schedule::Annotation;
  return a == Annotation::kThreadX || a == Annotation::kThreadY || a == Annotation::kThreadZ;
}

// Sets the launch dimensions to the extents of the bound loops. Refuses loops of one binding that
// disagree.
Status SetLaunch(ir::Kernel& kernel);

}  // namespace kiln::lower
