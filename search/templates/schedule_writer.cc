#include "search/templates/schedule_writer.h"

#include <algorithm>
#include <numeric>

#include "compiler/schedule/steps/steps.h"

namespace kiln::search {
namespace {

using schedule::Annotation;

StatusOr<Annotation> AnnotationOf(std::string_view word) {
  if (word == "vec") return Annotation::kVectorize;
  for (int i = 1; i <= static_cast<int>(Annotation::kCluster); ++i) {
    if (schedule::AnnotationName(static_cast<Annotation>(i)) == word)
      return static_cast<Annotation>(i);
  }
  return InvalidArgument("unknown annotation '{}'", word);
}

}  // namespace

// ---- handles --------------------------------------------------------------------------------

void ScheduleWriter::Refuse(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

StatusOr<schedule::State> ScheduleWriter::Finish() && {
  if (!status_.ok()) return status_;
  return std::move(state_);
}

StageRef ScheduleWriter::HandleOf(int stage) {
  const auto found = std::ranges::find(handles_, stage, &Handle::stage);
  if (found != handles_.end()) return {static_cast<int>(found - handles_.begin())};
  handles_.push_back({stage, 0});
  return {static_cast<int>(handles_.size()) - 1};
}

int ScheduleWriter::StageOf(StageRef stage) {
  if (!status_.ok()) return -1;
  if (stage.handle >= 0) return handles_[static_cast<size_t>(stage.handle)].stage;
  Refuse(InvalidArgument("a step works on a stage that is none"));
  return -1;
}

LoopRef ScheduleWriter::LoopAt(StageRef stage, int32_t iter) const {
  return {stage, iter, handles_[static_cast<size_t>(stage.handle)].generation};
}

int ScheduleWriter::PositionOf(LoopRef loop) {
  const int number = StageOf(loop.stage);
  if (number < 0) return -1;
  const schedule::Stage& stage = state_.stage(number);
  if (loop.generation != handles_[static_cast<size_t>(loop.stage.handle)].generation) {
    Refuse(InvalidArgument(
        "a step gave stage {} fresh loops after the loop was named; name its axes again",
        stage.op->name()));
    return -1;
  }
  for (size_t i = 0; i < stage.loops.size(); ++i) {
    if (stage.loops[i].iter == loop.iter) return static_cast<int>(i);
  }
  Refuse(InvalidArgument("loop {} of stage {} has been split or fused: it is no loop any more",
                         loop.iter >= 0 && loop.iter < std::ssize(stage.iters)
                             ? schedule::IterName(stage, loop.iter)
                             : "?",
                         stage.op->name()));
  return -1;
}

int ScheduleWriter::CommonStage(std::span<const LoopRef> loops) {
  if (loops.empty()) {
    Refuse(InvalidArgument("expected at least one loop"));
    return -1;
  }
  for (const LoopRef& loop : loops) {
    if (PositionOf(loop) < 0) return -1;
    if (loop.stage.handle == loops[0].stage.handle) continue;
    Refuse(InvalidArgument("the loops are of stages {} and {}, expected those of one stage",
                           state_.stage(StageOf(loops[0].stage)).op->name(),
                           state_.stage(StageOf(loop.stage)).op->name()));
    return -1;
  }
  return StageOf(loops[0].stage);
}

void ScheduleWriter::MoveHandles(int position) {
  for (Handle& handle : handles_) handle.stage += handle.stage >= position ? 1 : 0;
}

bool ScheduleWriter::Apply(schedule::StepPtr step) {
  if (!status_.ok()) return false;
  status_ = state_.Apply(std::move(step));
  return status_.ok();
}

// ---- stages of the computation --------------------------------------------------------------

StageRef ScheduleWriter::Reduction() {
  if (!status_.ok()) return {};
  int found = -1, count = 0;
  for (int i = 0; i < state_.num_stages(); ++i) {
    if (!state_.stage(i).op->is_reduction()) continue;
    found = i;
    ++count;
  }
  if (count == 1) return HandleOf(found);
  Refuse(InvalidArgument("the computation has {} reductions, expected one", count));
  return {};
}

StageRef ScheduleWriter::Output() {
  if (!status_.ok()) return {};
  int found = -1, count = 0;
  for (int i = 0; i < state_.num_stages(); ++i) {
    if (!state_.dag()->is_output(i)) continue;
    found = i;
    ++count;
  }
  if (count == 1) return HandleOf(found);
  Refuse(InvalidArgument("the computation has {} outputs, expected one", count));
  return {};
}

StageRef ScheduleWriter::Input(StageRef reader, int number) {
  const int stage = StageOf(reader);
  if (stage < 0) return {};
  const std::vector<int>& producers = state_.dag()->producers(stage);
  if (number >= 0 && number < std::ssize(producers))
    return HandleOf(producers[static_cast<size_t>(number)]);
  Refuse(InvalidArgument("stage {} reads {} others, expected one with the number {}",
                         state_.stage(stage).op->name(), producers.size(), number));
  return {};
}

StageRef ScheduleWriter::Op(std::string_view name) {
  if (!status_.ok()) return {};
  for (int i = 0; i < state_.num_stages(); ++i) {
    if (state_.stage(i).op->name() == name) return HandleOf(i);
  }
  Refuse(InvalidArgument("the computation has no operator {}", name));
  return {};
}

bool ScheduleWriter::IsComputed(StageRef stage) {
  const int number = StageOf(stage);
  return number >= 0 && !state_.stage(number).is_placeholder();
}

// ---- loops ----------------------------------------------------------------------------------

std::vector<LoopRef> ScheduleWriter::AxesIn(StageRef ref, bool reduce) {
  const int number = StageOf(ref);
  if (number < 0) return {};
  const dag::Operator& op = *state_.stage(number).op;
  const size_t first = reduce ? op.axes().size() : 0;
  const size_t count = reduce ? op.reduce_axes().size() : op.axes().size();
  std::vector<LoopRef> loops;
  for (size_t i = 0; i < count; ++i) loops.push_back(LoopAt(ref, static_cast<int32_t>(first + i)));
  return loops;
}

std::vector<LoopRef> ScheduleWriter::Axes(StageRef stage) { return AxesIn(stage, false); }
std::vector<LoopRef> ScheduleWriter::ReduceAxes(StageRef stage) { return AxesIn(stage, true); }

int64_t ScheduleWriter::Extent(LoopRef loop) {
  const int position = PositionOf(loop);
  if (position < 0) return 0;
  const schedule::Stage& stage = state_.stage(StageOf(loop.stage));
  const int64_t extent = stage.loop(position).extent;
  if (extent != schedule::kUnknownExtent) return extent;
  Refuse(InvalidArgument(
      "the extent of loop {} of stage {} is not known: the stage is computed inside another one",
      schedule::LoopName(stage, position), stage.op->name()));
  return 0;
}

std::vector<LoopRef> ScheduleWriter::Split(LoopRef loop, std::vector<int64_t> lengths,
                                           bool inner_to_outer) {
  const size_t pieces = lengths.size() + 1;
  std::vector<LoopRef> result(pieces);
  const int position = PositionOf(loop);
  if (position < 0) return result;
  if (lengths.empty() || std::ranges::any_of(lengths, [](int64_t l) { return l < 1; })) {
    Refuse(InvalidArgument("a loop is split by {}, expected lengths of 1 or more",
                           lengths.empty() ? "nothing" : "a length below 1"));
    return result;
  }
  const int stage = StageOf(loop.stage);
  const int64_t extent = std::max<int64_t>(0, state_.stage(stage).loop(position).extent);
  if (!Apply(std::make_shared<schedule::SplitStep>(stage, position, extent, std::move(lengths),
                                                   inner_to_outer)))
    return result;
  for (size_t i = 0; i < pieces; ++i)
    result[i] =
        LoopAt(loop.stage, state_.stage(stage).loops[static_cast<size_t>(position) + i].iter);
  return result;
}

std::vector<LoopRef> ScheduleWriter::Split(LoopRef loop, const SplitEntity& entity) {
  if (entity.sizes.empty()) {
    Refuse(InvalidArgument("a split has no sizes"));
    return {};
  }
  return Split(loop, std::vector<int64_t>(entity.sizes.begin() + 1, entity.sizes.end()));
}

LoopRef ScheduleWriter::Fuse(std::span<const LoopRef> loops) {
  const int stage = CommonStage(loops);
  if (stage < 0) return {};
  std::vector<int> positions;
  for (const LoopRef& loop : loops) positions.push_back(PositionOf(loop));
  const auto first = static_cast<size_t>(positions[0]);
  if (!Apply(std::make_shared<schedule::FuseStep>(stage, std::move(positions)))) return {};
  return LoopAt(loops[0].stage, state_.stage(stage).loops[first].iter);
}

void ScheduleWriter::Reorder(std::span<const LoopRef> loops) {
  const int stage = CommonStage(loops);
  if (stage < 0) return;
  std::vector<int> wanted;
  for (const LoopRef& loop : loops) wanted.push_back(PositionOf(loop));
  std::vector<int> places = wanted;
  std::ranges::sort(places);
  if (std::ranges::adjacent_find(places) != places.end()) {
    Refuse(InvalidArgument("a loop is named twice in an order"));
    return;
  }
  std::vector<int> order(state_.stage(stage).loops.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = 0; i < places.size(); ++i) order[static_cast<size_t>(places[i])] = wanted[i];
  if (std::ranges::is_sorted(order)) return;
  for (size_t i = 0; i < order.size(); ++i) {
    const int loop = static_cast<int>(i);
    if (order[i] == loop || !state_.HasAttached(stage, loop)) continue;
    Refuse(InvalidArgument(
        "loop {} of stage {} has stages computed inside it; order the loops before compute_at",
        schedule::LoopName(state_.stage(stage), loop), state_.stage(stage).op->name()));
    return;
  }
  Apply(std::make_shared<schedule::ReorderStep>(stage, std::move(order)));
}

void ScheduleWriter::Reorder(std::span<const LoopRef> loops, const ReorderEntity& entity) {
  std::vector<LoopRef> ordered;
  for (const int64_t number : entity.order) {
    if (number >= 0 && number < std::ssize(loops))
      ordered.push_back(loops[static_cast<size_t>(number)]);
  }
  Reorder(ordered);
}

void ScheduleWriter::Annotate(LoopRef loop, Annotation annotation) {
  const int position = PositionOf(loop);
  if (position < 0) return;
  Apply(std::make_shared<schedule::AnnotateStep>(StageOf(loop.stage), position, annotation));
}

void ScheduleWriter::Annotate(std::span<const LoopRef> given, const AnnotateEntity& entity) {
  std::vector<LoopRef> loops(given.begin(), given.end());
  if (entity.words.size() != loops.size()) {
    Refuse(InvalidArgument("a knob has annotations for {} loops, found {}", entity.words.size(),
                           loops.size()));
    return;
  }
  for (size_t i = 0; i < loops.size() && status_.ok(); ++i) {
    const std::string& word = entity.words[i];
    if (word == "none") continue;
    if (word == "fuse") {
      if (i + 1 == loops.size()) {
        Refuse(InvalidArgument("the last loop has nothing to be fused with"));
        return;
      }
      loops[i + 1] = Fuse(std::span(loops).subspan(i, 2));
      continue;
    }
    const StatusOr<Annotation> annotation = AnnotationOf(word);
    if (!annotation.ok()) return Refuse(annotation.status());
    Annotate(loops[i], *annotation);
  }
}

void ScheduleWriter::FetchByThreads(StageRef stage, int64_t lanes,
                                    std::span<const int64_t> threads) {
  static constexpr Annotation kThreads[] = {Annotation::kThreadZ, Annotation::kThreadY,
                                            Annotation::kThreadX};
  if (threads.empty() || threads.size() > std::size(kThreads)) {
    Refuse(InvalidArgument("{} numbers of threads, expected 1 to 3", threads.size()));
    return;
  }
  const std::vector<LoopRef> axes = Axes(stage);
  LoopRef fused = Fuse(axes);
  if (lanes != 1) {
    const std::vector<LoopRef> pieces = Split(fused, std::vector<int64_t>{lanes});
    fused = pieces[0];
    Annotate(pieces[1], Annotation::kVectorize);
  }
  const std::vector<LoopRef> pieces =
      Split(fused, std::vector<int64_t>(threads.begin(), threads.end()), false);
  for (size_t i = 0; i < threads.size(); ++i)
    Annotate(pieces[i], kThreads[std::size(kThreads) - threads.size() + i]);
}

// ---- places ---------------------------------------------------------------------------------

void ScheduleWriter::ComputeAt(StageRef stage, LoopRef loop) {
  const int number = StageOf(stage), position = PositionOf(loop);
  if (number < 0 || position < 0) return;
  Apply(std::make_shared<schedule::ComputeAtStep>(number, StageOf(loop.stage), position));
}

void ScheduleWriter::ComputeRoot(StageRef stage) {
  const int number = StageOf(stage);
  if (number >= 0) Apply(std::make_shared<schedule::ComputeRootStep>(number));
}

void ScheduleWriter::Inline(StageRef stage) {
  const int number = StageOf(stage);
  if (number >= 0) Apply(std::make_shared<schedule::ComputeInlineStep>(number));
}

void ScheduleWriter::InlineOthers() {
  for (int i = 0; i < state_.num_stages() && status_.ok(); ++i) {
    const bool is_named = std::ranges::find(handles_, i, &Handle::stage) != handles_.end();
    if (is_named || state_.stage(i).is_placeholder() || state_.dag()->is_output(i)) continue;
    Apply(std::make_shared<schedule::ComputeInlineStep>(i));
  }
}

// ---- new stages -----------------------------------------------------------------------------

StageRef ScheduleWriter::CacheRead(StageRef stage, std::string_view scope,
                                   std::span<const StageRef> readers) {
  const int number = StageOf(stage);
  if (number < 0) return {};
  std::vector<int> numbers;
  for (const StageRef& reader : readers) numbers.push_back(StageOf(reader));
  if (!Apply(std::make_shared<schedule::CacheReadStep>(number, std::string(scope),
                                                       std::move(numbers))))
    return {};
  MoveHandles(number + 1);
  return HandleOf(number + 1);
}

StageRef ScheduleWriter::CacheWrite(StageRef stage, std::string_view scope) {
  const int number = StageOf(stage);
  if (number < 0) return {};
  if (!Apply(std::make_shared<schedule::CacheWriteStep>(number, std::string(scope)))) return {};
  MoveHandles(number);
  ++handles_[static_cast<size_t>(stage.handle)].generation;
  return HandleOf(number);
}

std::pair<StageRef, StageRef> ScheduleWriter::Accumulator(StageRef reduction) {
  const int number = StageOf(reduction);
  if (number < 0) return {};
  if (state_.dag()->is_output(number)) {
    const StageRef sums = CacheWrite(reduction, "local");
    return {sums, reduction};
  }
  const StageRef output = Output();
  const int last = StageOf(output);
  if (last < 0) return {};
  if (state_.stage(last).op->shape() != state_.stage(number).op->shape())
    Refuse(InvalidArgument("the output {} has other axes than the reduction {}, expected the same",
                           state_.stage(last).op->name(), state_.stage(number).op->name()));
  return {reduction, output};
}

StageRef ScheduleWriter::Rfactor(LoopRef loop, int position) {
  const int at = PositionOf(loop);
  if (at < 0) return {};
  const int number = StageOf(loop.stage);
  if (!Apply(std::make_shared<schedule::RfactorStep>(number, at, position))) return {};
  MoveHandles(number);
  ++handles_[static_cast<size_t>(loop.stage.handle)].generation;
  return HandleOf(number);
}

// ---- code generation -------------------------------------------------------------------------

void ScheduleWriter::SetHint(StageRef stage, ir::Hint hint, int32_t value) {
  const int number = StageOf(stage);
  if (number < 0 || value == state_.stage(number).hints[hint]) return;
  Apply(schedule::HintStep(number, hint, value));
}

void ScheduleWriter::StorageAlign(LoopRef axis, int factor, int offset) {
  const int position = PositionOf(axis);
  if (position < 0) return;
  Apply(
      std::make_shared<schedule::StorageAlignStep>(StageOf(axis.stage), position, factor, offset));
}

void ScheduleWriter::Layout(std::span<const LoopRef> axes) {
  const int stage = CommonStage(axes);
  if (stage < 0) return;
  std::vector<int> order;
  for (const LoopRef& axis : axes) order.push_back(axis.iter);
  Apply(std::make_shared<schedule::LayoutStep>(stage, std::move(order)));
}

void ScheduleWriter::Buffering(StageRef stage, int depth, bool asynchronous) {
  const int number = StageOf(stage);
  if (number >= 0) Apply(std::make_shared<schedule::BufferingStep>(number, depth, asynchronous));
}

}  // namespace kiln::search
