#include "compiler/schedule/state.h"

#include <algorithm>
#include <atomic>

#include "compiler/schedule/step.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

// Appends to `out` the readers (or producers) of `stage`. Inlined stages are replaced by their own
// readers or producers.
template <typename Neighbours>
void CollectThroughInlined(const State& state, int stage, const Neighbours& neighbours,
                           std::vector<int>& out) {
  for (int other : neighbours(stage)) {
    if (state.attach(other).kind == Attach::kInlined) {
      CollectThroughInlined(state, other, neighbours, out);
    } else {
      out.push_back(other);
    }
  }
}

// Returns true if the step only sets a hint of the stage.
bool IsHint(const Step& step, int stage) {
  const auto* pragma = As<PragmaStep>(step);
  return pragma != nullptr && pragma->stage_id == stage && pragma->setting.has_value();
}

std::vector<int> SortedUnique(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

}  // namespace

Stage MakeStage(dag::OperatorPtr op) {
  Stage stage;
  stage.op = std::move(op);
  if (stage.is_placeholder()) return stage;
  const size_t axes = stage.num_axes();
  // Reserves room for a tiling, so that the vectors do not grow with each split.
  stage.iters.reserve(4 * axes);
  stage.loops.reserve(4 * axes);
  stage.relations.reserve(axes + 2);
  for (const dag::Axis& axis : stage.op->axes()) {
    stage.iters.push_back({IterKind::kSpatial, axis.extent, -1});
  }
  for (const dag::Axis& axis : stage.op->reduce_axes()) {
    stage.iters.push_back({IterKind::kReduce, axis.extent, -1});
  }
  for (size_t i = 0; i < axes; ++i) stage.loops.push_back({static_cast<int32_t>(i)});
  return stage;
}

State::State(dag::DagPtr dag) : initial_dag_(dag), dag_(std::move(dag)) {
  stages_.reserve(dag_->size() + 4);
  places_.reserve(dag_->size() + 4);
  places_.resize(dag_->size());
  for (const dag::OpNode& node : dag_->nodes()) {
    stages_.push_back(std::make_shared<Stage>(MakeStage(node.op)));
  }
}

bool State::concrete() const {
  if (online() != nullptr && online()->has_blank()) return false;
  for (const StagePtr& stage : stages_) {
    for (const Relation& relation : stage->relations) {
      for (int64_t length : relation.lengths) {
        if (length == 0) return false;
      }
    }
  }
  return true;
}

const OnlineTile* State::online() const {
  const std::optional<OnlineTile>& tile = stages_.back()->online;
  return tile ? &*tile : nullptr;
}

std::vector<int> State::AttachedTo(int stage, int loop) const {
  std::vector<int> result;
  const Attach wanted{Attach::kIter, stage, loop};
  int left = places_[stage].attached;
  // Attached stages stand before the stage.
  for (int i = stage - 1; left > 0 && i >= 0; --i) {
    const Attach& attach = places_[i].attach;
    if (attach.kind != Attach::kIter || attach.stage != stage) continue;
    if (attach == wanted) result.push_back(i);
    --left;
  }
  std::reverse(result.begin(), result.end());
  return result;
}

bool State::HasAttached(int stage, int loop) const {
  int left = places_[stage].attached;
  for (int i = stage - 1; left > 0 && i >= 0; --i) {
    const Attach& attach = places_[i].attach;
    if (attach.kind != Attach::kIter || attach.stage != stage) continue;
    if (attach.loop == loop) return true;
    --left;
  }
  return false;
}

int State::NestDepth() const {
  absl::InlinedVector<int, 32> around(stages_.size(), 0);
  int depth = 0;
  // A stage stands before the stage that it is attached to.
  for (int i = num_stages() - 1; i >= 0; --i) {
    const Attach& at = places_[i].attach;
    if (at.kind == Attach::kIter) around[i] = around[at.stage] + at.loop + 1;
    depth = std::max(depth, around[i] + static_cast<int>(stages_[i]->loops.size()));
  }
  return depth;
}

void State::SetAttach(int i, Attach attach) {
  Attach& at = places_[i].attach;
  if (at.kind == Attach::kIter) --places_[at.stage].attached;
  at = attach;
  if (at.kind == Attach::kIter) ++places_[at.stage].attached;
}

Status State::Apply(StepPtr step) {
  const int stage = step->stage();
  if (stage < 0 || stage >= num_stages()) {
    return InvalidArgument("{} #{} ({}) of stage {}: the state has stages 0 to {}", step->name(),
                           steps_.size(), step->tag(), stage, num_stages() - 1);
  }
  Status status = online() == nullptr || IsHint(*step, num_stages() - 1)
                      ? step->ApplyTo(*this)
                      : InvalidArgument(
                            "an online softmax computes all stages; expected no more "
                            "steps than hints of its stage, {}",
                            num_stages() - 1);
  if (!status.ok()) {
    return Annotate(status, fmt::format("{} #{} ({}) of stage {} ({})", step->name(), steps_.size(),
                                        step->tag(), stage, dag_->op(stage).name()));
  }
  steps_.push_back(std::move(step));
  return OkStatus();
}

std::vector<int> State::Consumers(int stage) const {
  std::vector<int> result;
  CollectThroughInlined(
      *this, stage, [this](int i) -> const std::vector<int>& { return dag_->consumers(i); },
      result);
  return SortedUnique(std::move(result));
}

std::vector<int> State::Producers(int stage) const {
  std::vector<int> result;
  CollectThroughInlined(
      *this, stage, [this](int i) -> const std::vector<int>& { return dag_->producers(i); },
      result);
  return SortedUnique(std::move(result));
}

Stage& State::MutableStage(int i) {
  StagePtr& stage = stages_[i];
  if (stage.use_count() > 1) {
    auto copy = std::make_shared<Stage>();
    copy->iters.reserve(stage->iters.size() + 8);
    copy->loops.reserve(stage->loops.size() + 8);
    copy->relations.reserve(stage->relations.size() + 4);
    *copy = *stage;
    stage = std::move(copy);
  }
// The thread sanitizer does not know fences.
#ifndef __SANITIZE_THREAD__
  else {
    // Another owner may just have released the stage. Its reads must happen before the coming
    // edits.
    std::atomic_thread_fence(std::memory_order_acquire);
  }
#endif
  // Every stage is made as a Stage that is not const.
  return const_cast<Stage&>(*stage);
}

void State::InsertStage(dag::DagPtr dag, int position, std::span<const int> changed) {
  KILN_CHECK(dag->size() == num_stages() + 1, "{} {}", dag->size(), num_stages());
  dag_ = std::move(dag);
  stages_.insert(stages_.begin() + position,
                 std::make_shared<Stage>(MakeStage(dag_->node(position).op)));
  places_.insert(places_.begin() + position, Place{});
  for (Place& place : places_) {
    if (place.attach.kind == Attach::kIter && place.attach.stage >= position) ++place.attach.stage;
  }
  for (int i : changed) {
    auto stage = std::make_shared<Stage>(MakeStage(dag_->node(i).op));
    stage->scope = stages_[i]->scope;
    stage->is_partial_reduction = stages_[i]->is_partial_reduction;
    if (attach(i).kind == Attach::kIter) {
      for (IterVar& iter : stage->iters) iter.extent = kUnknownExtent;
    }
    stages_[i] = std::move(stage);
  }
  for (int i = 0; i < num_stages(); ++i) {
    KILN_CHECK(stages_[i]->op == dag_->node(i).op, "stage {} ({})", i, dag_->op(i).name());
  }
}

void State::ReplaceOperators(dag::DagPtr dag) {
  KILN_CHECK(dag->size() == num_stages(), "{} {}", dag->size(), num_stages());
  dag_ = std::move(dag);
  for (int i = 0; i < num_stages(); ++i) {
    if (stages_[i]->op == dag_->node(i).op) continue;
    auto stage = std::make_shared<Stage>(MakeStage(dag_->node(i).op));
    stage->scope = stages_[i]->scope;
    stages_[i] = std::move(stage);
  }
}

void State::SetExtents(int stage, std::span<const int64_t> iter_extents) {
  const std::vector<IterVar>& iters = stages_[stage]->iters;
  KILN_CHECK(iter_extents.size() == iters.size(), "{} {}", iter_extents.size(), iters.size());
  const bool same = std::equal(iters.begin(), iters.end(), iter_extents.begin(),
                               [](const IterVar& a, int64_t extent) { return a.extent == extent; });
  if (same) return;
  Stage& mutable_stage = MutableStage(stage);
  for (size_t i = 0; i < iter_extents.size(); ++i) mutable_stage.iters[i].extent = iter_extents[i];
}

StatusOr<State> Replay(dag::DagPtr dag, std::span<const StepPtr> steps,
                       const std::stop_token& stop) {
  State state(std::move(dag));
  for (const StepPtr& step : steps) {
    if (stop.stop_requested()) return Cancelled("stopped");
    KILN_RETURN_IF_ERROR(state.Apply(step));
  }
  return state;
}

uint64_t HashSteps(std::span<const StepPtr> steps) {
  uint64_t hash = 0x9e3779b97f4a7c15u + steps.size();
  for (const StepPtr& step : steps) {
    hash = (hash ^ step->Hash()) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace kiln::schedule
