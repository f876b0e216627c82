#include "search/evolution/transfer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/schedule/steps/renumber.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::search {
namespace {

using schedule::Is;
using schedule::SplitStep;
using schedule::Step;
using schedule::StepPtr;

// Largest distance from a stage that the sketch does not touch to one that it touches.
constexpr int kFarthest = 8;
constexpr int kMaxStages = 4096;

// The stages of a schedule while its steps are read. Each stage has an identity, which stays when
// later steps add stages and change its number. The number of stages at the end is not known, and
// does not matter.
class Stages {
 public:
  int IdOf(int stage) {
    while (std::ssize(ids_) <= stage) ids_.push_back(next_++);
    return ids_[static_cast<size_t>(stage)];
  }
  std::optional<int> NumberOf(int id) const {
    const auto found = std::ranges::find(ids_, id);
    if (found == ids_.end()) return std::nullopt;
    return static_cast<int>(found - ids_.begin());
  }
  // Moves a stage to a smaller number.
  void Move(int from, int to) {
    if (to >= from) return;
    IdOf(from);
    std::rotate(ids_.begin() + to, ids_.begin() + from, ids_.begin() + from + 1);
  }
  // Inserts a new stage at this number.
  void InsertAt(int stage) {
    IdOf(stage);
    ids_.insert(ids_.begin() + stage, next_++);
  }

 private:
  std::vector<int> ids_;
  int next_ = 0;
};

// Returns the stages that a step names.
std::vector<int> StagesOf(const Step& step) {
  std::vector<int> stages;
  Renumbered(step, {.stage = [&](int stage) { return stages.push_back(stage), stage; },
                    .step = [](int number) { return number; }});
  return stages;
}

// Tells whether all stage numbers are small. Stages with absurd numbers are not counted up to.
bool HasPlausibleStages(const Step& step) {
  return std::ranges::all_of(StagesOf(step),
                             [](int stage) { return 0 <= stage && stage < kMaxStages; });
}

std::optional<int> InsertionOf(const Step& step) {
  if (Is<schedule::CacheReadStep>(step)) return step.stage() + 1;
  if (Is<schedule::CacheWriteStep>(step) || Is<schedule::RfactorStep>(step)) return step.stage();
  return std::nullopt;
}

bool IsInline(const Step& step) { return Is<schedule::ComputeInlineStep>(step); }

class Transfer {
 public:
  Transfer(std::span<const StepPtr> steps, const Sketch& sketch) : steps_(steps), sketch_(sketch) {}

  StatusOr<std::vector<StepPtr>> Run() {
    for (const StepPtr& step : sketch_.steps) {
      if (IsInline(*step)) {
        result_.push_back(step);
        continue;
      }
      while (next_ < steps_.size() && IsInline(*steps_[next_])) ++next_;
      if (next_ == steps_.size()) return NotFound("it is shorter than the sketch");
      KILN_RETURN_IF_ERROR(TakeOfSketch(*step));
    }
    // Skips the stages that the other schedule's sketch inlines at its end.
    while (next_ < steps_.size() && IsInline(*steps_[next_])) ++next_;
    for (const StepPtr& step : steps_.subspan(next_)) last_ = std::max(last_, step->stage());
    for (; next_ < steps_.size(); ++next_) KILN_RETURN_IF_ERROR(TakeOther(*steps_[next_]));
    return std::move(result_);
  }

 private:
  // Takes the next step for `of_sketch`, if both differ only in numbers and tile lengths.
  Status TakeOfSketch(const Step& of_sketch) {
    const Step& step = *steps_[next_];
    const Status differs = NotFound("step {} is not as in the sketch", next_);
    if (step.tag() != of_sketch.tag()) return differs;
    const std::vector<int> from = StagesOf(step), to = StagesOf(of_sketch);
    if (from.size() != to.size()) return differs;
    for (size_t i = 0; i < from.size(); ++i) {
      if (!Match(from_.IdOf(from[i]), to_.IdOf(to[i]))) return differs;
    }
    const StepPtr same = Renumber(step);
    if (same == nullptr) return differs;
    // The sketch leaves tile lengths open, so they may differ.
    const bool has_tiles = Is<SplitStep>(step) || Is<schedule::OnlineSoftmaxStep>(step);
    const bool is_same =
        has_tiles ? same->ShapeHash() == of_sketch.ShapeHash() : same->Hash() == of_sketch.Hash();
    if (!is_same) return differs;
    Append(step, same);
    ++next_;
    return OkStatus();
  }

  // Takes a step that follows the sketch.
  Status TakeOther(const Step& step) {
    const StepPtr same = Renumber(step);
    if (same == nullptr) return NotFound("step {} is of a stage without a counterpart", next_);
    Append(step, same);
    return OkStatus();
  }

  // Notes that two stages correspond. Each stage corresponds to at most one other.
  bool Match(int from, int to) {
    const auto [found, is_new] = like_.emplace(from, to);
    if (found->second != to) return false;
    return !is_new ||
           std::ranges::count(like_, to, [](const auto& pair) { return pair.second; }) == 1;
  }

  // Returns the number of the corresponding stage. A stage that the sketch does not touch lies at
  // the same distance before a known stage as its counterpart does.
  std::optional<int> LikeOf(int stage) {
    for (int distance = 0; distance <= kFarthest; ++distance) {
      const auto like = like_.find(from_.IdOf(stage + distance));
      if (like == like_.end()) continue;
      const std::optional<int> number = to_.NumberOf(like->second);
      return number && *number >= distance ? std::optional(*number - distance) : std::nullopt;
    }
    return stage == last_ ? std::optional(sketch_.state.num_stages() - 1) : std::nullopt;
  }

  // Returns null if a stage or step that it names has no counterpart.
  StepPtr Renumber(const Step& step) {
    bool ok = true;
    const auto take = [&](std::optional<int> number) {
      return ok &= number.has_value(), number.value_or(0);
    };
    StepPtr renumbered = Renumbered(
        step, {.stage = [&](int stage) { return take(LikeOf(stage)); },
               .step =
                   [&](int number) {
                     const auto placed = place_of_.find(static_cast<size_t>(number));
                     return take(placed == place_of_.end() ? std::nullopt
                                                           : std::optional(placed->second));
                   }});
    return ok ? renumbered : nullptr;
  }

  void Append(const Step& step, StepPtr as) {
    place_of_[next_] = static_cast<int>(result_.size());
    if (const std::optional<int> from = InsertionOf(step)) {
      const int to = *InsertionOf(*as);
      from_.InsertAt(*from);
      to_.InsertAt(to);
      like_[from_.IdOf(*from)] = to_.IdOf(to);
    }
    if (const auto* move = schedule::As<schedule::MoveStageStep>(step)) {
      from_.Move(move->stage_id, move->before);
      const auto& same = *schedule::As<schedule::MoveStageStep>(*as);
      to_.Move(same.stage_id, same.before);
    }
    result_.push_back(std::move(as));
  }

  const std::span<const StepPtr> steps_;
  const Sketch& sketch_;
  size_t next_ = 0;  // index into steps_
  Stages from_, to_;
  int last_ = -1;                   // stage of the steps that follow the sketch: the output
  std::map<int, int> like_;         // keys and values are identities of stages
  std::map<size_t, int> place_of_;  // index into steps_ -> index into result_
  std::vector<StepPtr> result_;
};

}  // namespace

StatusOr<std::vector<StepPtr>> TransferSteps(std::span<const StepPtr> steps, const Sketch& sketch) {
  if (!std::ranges::all_of(steps, [](const StepPtr& step) { return HasPlausibleStages(*step); }))
    return NotFound("it names stages that no sketch has");
  return Transfer(steps, sketch).Run();
}

std::string SumsKey(const dag::Dag& dag) {
  std::string key;
  const auto add = [&](const std::vector<dag::Axis>& axes) {
    for (const dag::Axis& axis : axes) key += fmt::format("{},", axis.extent);
    key += ';';
  };
  for (const dag::OpNode& node : dag.nodes()) {
    if (!node.op->is_reduction()) continue;
    add(node.op->axes());
    add(node.op->reduce_axes());
    for (const ir::Expr body : node.op->bodies()) key += fmt::format("{:x} ", body->hash);
    key += '\n';
  }
  return key;
}

}  // namespace kiln::search
