#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const FollowSplitStep& step, SourcePrinter& out) {
  const std::string loop = out.Loop(step.stage_id, step.loop);
  const int parts = step.n_split + 1;
  const std::string pieces = out.Pieces(step.stage_id, step.loop, parts);
  out.Line("{} = s[{}].split({}, follow={}, parts={})", pieces, out.Stage(step.stage_id), loop,
           out.SplitBy(step.src_step), parts);
}

}  // namespace kiln::schedule
