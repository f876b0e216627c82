#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/dag/limits.h"
#include "compiler/schedule/source/follow_words.h"
#include "compiler/schedule/source/kinds.h"

namespace kiln::schedule {

void PrintSource(const SplitStep& step, SourcePrinter& out) {
  const std::string loop = out.Loop(step.stage_id, step.loop);
  const std::string pieces =
      out.Pieces(step.stage_id, step.loop, static_cast<int>(step.lengths.size()) + 1);
  const std::string& stage = out.Stage(step.stage_id);
  if (step.lengths.size() == 1) {
    out.Line("{} = s[{}].split({}, {}={})", pieces, stage, loop,
             step.inner_to_outer ? "factor" : "nparts", step.lengths[0]);
  } else {
    out.Line("{} = s[{}].split({}, {}=[{}])", pieces, stage, loop,
             step.inner_to_outer ? "factors" : "nparts", fmt::join(step.lengths, ", "));
  }
}

namespace {

SourceResults PiecesOf(const SourceCall& call, int loop, size_t lengths) {
  return {.stage = call.stage(), .first = loop, .count = static_cast<int>(lengths) + 1};
}

StatusOr<StepPtr> ReadFollowSplit(SourceCall& call, int loop) {
  const int source = call.SplitOf("follow");
  const auto parts = static_cast<int>(call.IntOf("parts", 2, dag::kMaxStageLoops));
  call.ResultsAre(PiecesOf(call, loop, static_cast<size_t>(std::max(parts, 1) - 1)));
  return call.Make<FollowSplitStep>(call.stage(), loop, source, parts - 1);
}

StatusOr<StepPtr> ReadFollowFusedSplit(SourceCall& call, int loop, std::string_view word) {
  std::vector<int> sources = call.SplitsOf(word);
  const auto level = static_cast<int>(call.IntOf("level", 0, dag::kMaxStageLoops));
  call.ResultsAre(PiecesOf(call, loop, 1));
  return call.Make<FollowFusedSplitStep>(call.stage(), loop, std::move(sources), level,
                                         word == kFollowFactor);
}

}  // namespace

StatusOr<StepPtr> ReadSplit(SourceCall& call) {
  const int loop = call.Loop("the loop to split");
  if (call.Has("follow")) return ReadFollowSplit(call, loop);
  for (const std::string_view word : {kFollowFactor, kFollowNparts}) {
    if (call.Has(word)) return ReadFollowFusedSplit(call, loop, word);
  }
  constexpr int64_t kMax = int64_t{1} << 40;
  for (const std::string_view word : {"factors", "factor", "nparts"}) {
    if (!call.Has(word)) continue;
    std::vector<int64_t> lengths = call.IntsOf(word, 0, kMax);
    if (lengths.size() > dag::kMaxStageLoops)
      call.Fail(fmt::format("at most {} lengths, found {}", dag::kMaxStageLoops, lengths.size()));
    call.ResultsAre(PiecesOf(call, loop, lengths.size()));
    const int64_t extent = call.ok() ? call.state().stage(call.stage()).loop(loop).extent : 0;
    return call.Make<SplitStep>(call.stage(), loop, std::max<int64_t>(extent, 0),
                                std::move(lengths), word != "nparts");
  }
  call.Fail("factor=, factors=, nparts=, follow=, follow_factor= or follow_nparts= and what it is");
  return call.Make<SplitStep>(0, 0, 0, std::vector<int64_t>(), true);
}

}  // namespace kiln::schedule
