#include <fmt/ranges.h>

#include "compiler/schedule/source/follow_words.h"
#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const FollowFusedSplitStep& step, SourcePrinter& out) {
  const std::string loop = out.Loop(step.stage_id, step.loop);
  const std::string pieces = out.Pieces(step.stage_id, step.loop, 2);
  std::vector<std::string_view> sources;
  for (int number : step.src_steps) sources.push_back(out.SplitBy(number));
  out.Line("{} = s[{}].split({}, {}=[{}], level={})", pieces, out.Stage(step.stage_id), loop,
           step.factor_or_nparts ? kFollowFactor : kFollowNparts, fmt::join(sources, ", "),
           step.level);
}

}  // namespace kiln::schedule
