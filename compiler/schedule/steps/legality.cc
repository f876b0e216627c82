#include "compiler/schedule/steps/legality.h"

#include "base/numbers/integers.h"
#include "compiler/dag/limits.h"

namespace kiln::schedule {

std::string DescribeStages(const State& state, std::span<const int> stages) {
  std::string result;
  for (int stage : stages) {
    if (!result.empty()) result += ", ";
    result += fmt::format("{} ({})", stage, state.dag()->op(stage).name());
  }
  return result.empty() ? "none" : result;
}

std::string DescribeLoop(const State& state, int stage, int loop) {
  return fmt::format("loop {} ({})", loop, LoopName(state.stage(stage), loop));
}

Status CheckComputes(const State& state, int stage) {
  if (!state.stage(stage).is_placeholder()) return OkStatus();
  return InvalidArgument("a placeholder has no loops; expected a compute stage");
}

Status CheckLoop(const State& state, int stage, int loop) {
  KILN_RETURN_IF_ERROR(CheckComputes(state, stage));
  const int count = static_cast<int>(state.stage(stage).loops.size());
  if (loop >= 0 && loop < count) return OkStatus();
  if (count == 0) return InvalidArgument("loop {} does not exist, the stage has no loops", loop);
  return InvalidArgument("loop {} does not exist, the stage has loops 0 to {}", loop, count - 1);
}

Status CheckPlainLoop(const State& state, int stage, int loop) {
  KILN_RETURN_IF_ERROR(CheckLoop(state, stage, loop));
  const Annotation annotation = state.stage(stage).annotation(loop);
  if (annotation == Annotation::kNone) return OkStatus();
  return InvalidArgument("{} is already annotated with {}; expected a loop without annotation",
                         DescribeLoop(state, stage, loop), AnnotationName(annotation));
}

Status CheckSplittable(const State& state, int stage, int loop, size_t lengths) {
  KILN_RETURN_IF_ERROR(CheckPlainLoop(state, stage, loop));
  const size_t loops = state.stage(stage).loops.size() + lengths;
  if (loops > static_cast<size_t>(dag::kMaxStageLoops)) {
    return InvalidArgument("the stage would have {} loops, expected at most {}", loops,
                           dag::kMaxStageLoops);
  }
  if (state.NumAttached(stage) == 0) return OkStatus();
  const int depth = state.NestDepth() + static_cast<int>(lengths);
  if (depth <= dag::kMaxNestLoops) return OkStatus();
  return InvalidArgument(
      "with what is computed inside, {} loops would stand in each other, "
      "expected at most {}",
      depth, dag::kMaxNestLoops);
}

Status CheckRoomForStage(const State& state) {
  constexpr int kSpare = 64, kPerOperator = 16;
  const int most = kSpare + kPerOperator * state.initial_dag()->size();
  if (state.num_stages() < most) return OkStatus();
  return InvalidArgument("the state has {} stages, expected at most {} for {} operators",
                         state.num_stages(), most, state.initial_dag()->size());
}

Status CheckLengths(std::span<const int64_t> lengths) {
  constexpr int64_t kLimit = int64_t{1} << 40;
  int64_t product = 1;
  for (int64_t length : lengths) {
    if (length < 0 || length > kLimit) {
      return InvalidArgument("length {} is out of range; expected 1 to 2^40, or 0 for a blank",
                             length);
    }
    if (length > 0) product = MultiplyCounts(product, length);
    if (product > kLimit) {
      return InvalidArgument("the product of the lengths is above 2^40; expected smaller tiles");
    }
  }
  return OkStatus();
}

Status CheckUntouched(const State& state, int number) {
  const Stage& stage = state.stage(number);
  if (!stage.relations.empty()) {
    return InvalidArgument(
        "the stage was split or fused before; expected it as the first step of "
        "the stage");
  }
  for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
    if (stage.annotation(i) != Annotation::kNone || stage.loops[i].iter != i) {
      return InvalidArgument(
          "the stage was reordered or annotated before; expected it as the "
          "first step of the stage");
    }
    if (state.HasAttached(number, i)) {
      return InvalidArgument("stages {} are computed at {}; expected nothing attached",
                             DescribeStages(state, state.AttachedTo(number, i)),
                             DescribeLoop(state, number, i));
    }
  }
  return OkStatus();
}

}  // namespace kiln::schedule
