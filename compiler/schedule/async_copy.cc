#include "compiler/schedule/async_copy.h"

#include <algorithm>

#include "compiler/instructions/async_copy.h"
#include "compiler/ir/program.h"

namespace kiln::schedule {
namespace {

bool IsCopy(const State& state, int s) {
  const dag::OpNode& node = state.dag()->node(s);
  if (node.op->is_placeholder() || node.op->is_reduction() || node.op->num_outputs() != 1)
    return false;
  const ir::Expr load = ir::CopiedLoad(node.op->body());
  if (load == nullptr) return false;
  const int producer = node.inputs[load->id].op;
  return state.attach(producer).kind != Attach::kInlined || IsCopy(state, producer);
}

}  // namespace

bool CanCopyAsync(const State& state, int s) {
  const Stage& stage = state.stage(s);
  if (!IsCopy(state, s)) return false;
  int64_t lanes = 1;
  for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
    if (stage.annotation(i) == Annotation::kVectorize)
      lanes = std::max(lanes, stage.loop(i).extent);
  }
  const auto last = static_cast<int32_t>(stage.op->axes().size()) - 1;
  const bool keeps_rows = stage.layout.empty() || stage.layout.back() == last;
  return (lanes == 1 || keeps_rows) &&
         lanes * stage.op->type().bytes() >= instructions::kLeastAsyncCopyBytes;
}

}  // namespace kiln::schedule
