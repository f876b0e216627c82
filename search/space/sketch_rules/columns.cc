#include "search/space/sketch_rules/rules.h"
#include "search/space/stage_view.h"

namespace kiln::search {

bool TilesColumns(const RuleContext& context, const schedule::State& state, int s) {
  return context.task.target.is_gpu() && state.stage(s).op->is_reduction() &&
         StageView(state, s).ReducesColumns();
}

}  // namespace kiln::search
