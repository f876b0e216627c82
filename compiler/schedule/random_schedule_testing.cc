#include "compiler/schedule/random_schedule_testing.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <random>

#include "compiler/schedule/iter_map.h"
#include "compiler/schedule/soundness_testing.h"
#include "compiler/schedule/steps/steps.h"

namespace kiln::schedule {
namespace {

// Loops of one stage.
constexpr int kMaxLoops = 12;
// Stages per schedule.
constexpr int kMaxNewStages = 3;
// Proposals that may be refused.
constexpr int kTriesPerStep = 40;
constexpr int64_t kMaxUnroll = 64;
// Iterations of a loop nest per point of its axes.
constexpr double kMaxWaste = 6;

int NumLoops(const State& state, int stage) {
  return static_cast<int>(state.stage(stage).loops.size());
}

// Returns the state after the step if the step applies and leaves a sound state.
std::optional<State> TryApply(const State& state, const StepPtr& step) {
  State next = state;
  if (!next.Apply(step).ok() || !CheckSound(next).ok()) return std::nullopt;
  return next;
}

bool SameKind(const Stage& stage, int a, int b) { return stage.loop(a).kind == stage.loop(b).kind; }

// Returns the numbers of the steps that FSP and FFSP may follow.
std::vector<int> SplitSteps(const State& state) {
  std::vector<int> result;
  for (size_t i = 0; i < state.steps().size(); ++i) {
    if (Is<SplitStep>(*state.steps()[i])) result.push_back(static_cast<int>(i));
  }
  return result;
}

class Generator {
 public:
  Generator(const dag::DagPtr& dag, uint64_t seed) : state_(dag), rng_(seed) {}

  State Run(int length) {
    for (int tries = 0; tries < length * kTriesPerStep; ++tries) {
      if (static_cast<int>(state_.steps().size()) == length) break;
      const StepPtr step = Propose();
      if (step == nullptr) continue;
      std::optional<State> next = TryApply(state_, step);
      if (next && !IsWasteful(*next)) state_ = *std::move(next);
    }
    return std::move(state_);
  }

 private:
  int Below(int n) { return static_cast<int>(rng_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }

  // Returns true if inexact splits make a loop nest count much further than its axes. Such a state
  // takes too long to run.
  static bool IsWasteful(const State& state) {
    for (int i = 0; i < state.num_stages(); ++i) {
      const Stage& stage = state.stage(i);
      if (stage.is_placeholder()) continue;
      const StatusOr<std::vector<int64_t>> extents = IterExtents(stage);
      if (!extents.ok()) return true;
      double points = 1, iterations = 1;
      for (int axis = 0; axis < stage.num_axes(); ++axis) points *= (*extents)[axis];
      for (const LoopIter& loop : stage.loops) iterations *= (*extents)[loop.iter];
      if (iterations > kMaxWaste * points) return true;
    }
    return false;
  }

  // Returns null if the random choice does not fit the stage.
  StepPtr Propose() {
    std::vector<int> stages;
    for (int i = 0; i < state_.num_stages(); ++i) {
      if (!state_.stage(i).is_placeholder()) stages.push_back(i);
    }
    stage_ = stages[Below(static_cast<int>(stages.size()))];
    loops_ = NumLoops(state_, stage_);
    // Percentages of the kinds.
    static constexpr struct {
      int share;
      StepPtr (Generator::*make)();
      bool adds_stage = false;
    } kKinds[] = {{24, &Generator::Split},           {4, &Generator::FollowSplit},
                  {2, &Generator::FollowFusedSplit}, {10, &Generator::Fuse},
                  {12, &Generator::Reorder},         {12, &Generator::Annotate},
                  {3, &Generator::Pragma},           {16, &Generator::ComputeAt},
                  {4, &Generator::ComputeInline},    {2, &Generator::ComputeRoot},
                  {1, &Generator::StorageAlign},     {1, &Generator::Layout},
                  {3, &Generator::CacheRead, true},  {2, &Generator::CacheWrite, true},
                  {4, &Generator::Rfactor, true}};
    const bool has_room = state_.num_stages() < state_.initial_dag()->size() + kMaxNewStages;
    int dice = Below(100);
    for (const auto& kind : kKinds) {
      if (dice < kind.share) return kind.adds_stage && !has_room ? nullptr : (this->*kind.make)();
      dice -= kind.share;
    }
    return nullptr;
  }

  StepPtr Split() {
    if (loops_ == 0 || loops_ > kMaxLoops) return nullptr;
    std::vector<int64_t> lengths(1 + Below(3));
    for (int64_t& length : lengths) length = Chance(10) ? 1 : 2 + Below(Chance(20) ? 15 : 4);
    const int loop = Below(loops_);
    const int64_t extent = std::max<int64_t>(0, state_.stage(stage_).loop(loop).extent);
    return std::make_shared<SplitStep>(stage_, loop, extent, std::move(lengths), Chance(70));
  }

  StepPtr FollowSplit() {
    const std::vector<int> splits = SplitSteps(state_);
    if (splits.empty() || loops_ == 0 || loops_ > kMaxLoops) return nullptr;
    const int source = splits[Below(static_cast<int>(splits.size()))];
    const SplitStep& split = *As<SplitStep>(*state_.steps()[source]);
    const int n_split = 1 + Below(static_cast<int>(split.lengths.size()) + 1);
    return std::make_shared<FollowSplitStep>(stage_, Below(loops_), source, n_split);
  }

  StepPtr FollowFusedSplit() {
    std::vector<int> splits = SplitSteps(state_);
    if (splits.empty() || loops_ == 0 || loops_ > kMaxLoops) return nullptr;
    std::shuffle(splits.begin(), splits.end(), rng_);
    splits.resize(std::min<size_t>(splits.size(), 1 + Below(2)));
    return std::make_shared<FollowFusedSplitStep>(stage_, Below(loops_), std::move(splits),
                                                  Below(2), Chance(60));
  }

  StepPtr Fuse() {
    if (loops_ == 0) return std::make_shared<FuseStep>(stage_, std::vector<int>{});
    const int first = Below(loops_);
    const int count = 1 + Below(std::min(3, loops_ - first));
    std::vector<int> loops(count);
    std::iota(loops.begin(), loops.end(), first);
    // A loop over both spatial and reduce axes is not for a CPU.
    for (int loop : loops) {
      if (!SameKind(state_.stage(stage_), first, loop)) return nullptr;
    }
    return std::make_shared<FuseStep>(stage_, std::move(loops));
  }

  StepPtr Reorder() {
    if (loops_ < 2) return nullptr;
    std::vector<int> order(loops_);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rng_);
    return std::make_shared<ReorderStep>(stage_, std::move(order));
  }

  StepPtr Annotate() {
    if (loops_ == 0) return nullptr;
    const int loop = Chance(30) ? loops_ - 1 : Below(loops_);
    static constexpr Annotation kChoices[] = {Annotation::kUnroll, Annotation::kVectorize,
                                              Annotation::kParallel};
    Annotation annotation = kChoices[Below(3)];
    if (loop == loops_ - 1 && Chance(50)) annotation = Annotation::kVectorize;
    const int64_t extent = state_.stage(stage_).loop(loop).extent;
    if (annotation == Annotation::kUnroll && (extent == kUnknownExtent || extent > kMaxUnroll)) {
      return nullptr;
    }
    return std::make_shared<AnnotateStep>(stage_, loop, annotation);
  }

  StepPtr Pragma() {
    if (loops_ == 0) return nullptr;
    const ir::HintRow& row = ir::kHints[Below(ir::kNumHints)];
    const int32_t most = std::min<int32_t>(row.most, kMaxUnroll);
    return HintStep(stage_, row.hint, Chance(50) ? most : Below(most + 1));
  }

  StepPtr ComputeAt() {
    const int later = state_.num_stages() - 1 - stage_;
    if (later == 0) return nullptr;
    // Mostly a reader; sometimes any later stage.
    const std::vector<int> readers = state_.Consumers(stage_);
    if (readers.empty()) return nullptr;
    const int target =
        Chance(75) ? readers[Below(static_cast<int>(readers.size()))] : stage_ + 1 + Below(later);
    const int target_loops = NumLoops(state_, target);
    if (target_loops == 0) return nullptr;
    return std::make_shared<ComputeAtStep>(stage_, target, Below(target_loops));
  }

  StepPtr ComputeInline() { return std::make_shared<ComputeInlineStep>(stage_); }
  StepPtr ComputeRoot() { return std::make_shared<ComputeRootStep>(stage_); }

  StepPtr StorageAlign() {
    const int rank = static_cast<int>(state_.stage(stage_).op->axes().size());
    if (rank < 2 || loops_ == 0 || state_.dag()->is_output(stage_)) return nullptr;
    return std::make_shared<StorageAlignStep>(stage_, Below(loops_), 8, Below(8));
  }

  StepPtr Layout() {
    std::vector<int> order(state_.stage(stage_).op->axes().size());
    if (order.size() < 2) return nullptr;
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), rng_);
    return std::make_shared<LayoutStep>(stage_, std::move(order));
  }

  StepPtr CacheRead() {
    // The producer may be a placeholder.
    const int producer = Below(state_.num_stages());
    std::vector<int> readers = state_.dag()->consumers(producer);
    if (readers.empty()) return nullptr;
    std::shuffle(readers.begin(), readers.end(), rng_);
    readers.resize(1 + Below(static_cast<int>(readers.size())));
    std::sort(readers.begin(), readers.end());
    std::vector<int> order;
    if (Below(3) == 0) {
      order.resize(state_.stage(producer).op->shape().size());
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), rng_);
    }
    return std::make_shared<CacheReadStep>(producer, "local", std::move(readers), std::move(order));
  }

  StepPtr CacheWrite() { return std::make_shared<CacheWriteStep>(stage_, "local"); }

  StepPtr Rfactor() {
    if (loops_ == 0) return nullptr;
    const int spatial = static_cast<int>(state_.stage(stage_).op->axes().size());
    return std::make_shared<RfactorStep>(stage_, Below(loops_), Below(spatial + 1));
  }

  State state_;
  std::mt19937_64 rng_;
  int stage_ = 0, loops_ = 0;
};

class Enumerator {
 public:
  Enumerator(const State& state, const EnumerateOptions& options)
      : state_(state), options_(options) {}

  std::vector<StepPtr> Run() {
    for (int stage = 0; stage < state_.num_stages(); ++stage) {
      if (options_.new_stages) CacheReads(stage);
      if (state_.stage(stage).is_placeholder()) continue;
      Splits(stage);
      Fuses(stage);
      Reorders(stage);
      if (options_.annotations) Annotations(stage);
      Places(stage);
      if (options_.new_stages) NewStages(stage);
    }
    return std::move(steps_);
  }

 private:
  template <typename StepT, typename... Args>
  void Add(Args&&... args) {
    StepPtr step = std::make_shared<StepT>(std::forward<Args>(args)...);
    if (TryApply(state_, step)) steps_.push_back(std::move(step));
  }

  void Splits(int stage) {
    const std::vector<int> followed = SplitSteps(state_);
    for (int loop = 0; loop < NumLoops(state_, stage); ++loop) {
      const int64_t extent = std::max<int64_t>(0, state_.stage(stage).loop(loop).extent);
      for (const std::vector<int64_t>& lengths : options_.lengths) {
        Add<SplitStep>(stage, loop, extent, lengths, true);
        if (options_.outer_to_inner) Add<SplitStep>(stage, loop, extent, lengths, false);
      }
      for (int source : followed) {
        Add<FollowSplitStep>(stage, loop, source, 1);
        Add<FollowFusedSplitStep>(stage, loop, std::vector<int>{source}, 0, true);
      }
    }
  }

  void Fuses(int stage) {
    if (NumLoops(state_, stage) == 0) Add<FuseStep>(stage, std::vector<int>{});
    for (int loop = 0; loop + 1 < NumLoops(state_, stage); ++loop) {
      if (!SameKind(state_.stage(stage), loop, loop + 1)) continue;
      Add<FuseStep>(stage, std::vector<int>{loop, loop + 1});
    }
  }

  // All permutations of up to three loops, else exchanges of neighbours.
  void Reorders(int stage) {
    std::vector<int> order(NumLoops(state_, stage));
    std::iota(order.begin(), order.end(), 0);
    if (order.size() <= 3) {
      while (std::next_permutation(order.begin(), order.end())) Add<ReorderStep>(stage, order);
      return;
    }
    for (size_t i = 0; i + 1 < order.size(); ++i) {
      std::vector<int> swapped = order;
      std::swap(swapped[i], swapped[i + 1]);
      Add<ReorderStep>(stage, std::move(swapped));
    }
  }

  void Annotations(int stage) {
    for (int loop = 0; loop < NumLoops(state_, stage); ++loop) {
      Add<AnnotateStep>(stage, loop, Annotation::kParallel);
      Add<AnnotateStep>(stage, loop, Annotation::kVectorize);
      const int64_t extent = state_.stage(stage).loop(loop).extent;
      if (extent != kUnknownExtent && extent <= kMaxUnroll) {
        Add<AnnotateStep>(stage, loop, Annotation::kUnroll);
      }
    }
    Add<PragmaStep>(stage, 0, "auto_unroll_max_step$16");
  }

  void Places(int stage) {
    Add<ComputeInlineStep>(stage);
    if (state_.attach(stage).kind != Attach::kRoot) Add<ComputeRootStep>(stage);
    for (int target = stage + 1; target < state_.num_stages(); ++target) {
      for (int loop = 0; loop < NumLoops(state_, target); ++loop) {
        Add<ComputeAtStep>(stage, target, loop);
      }
    }
  }

  void CacheReads(int stage) {
    const std::vector<int>& readers = state_.dag()->consumers(stage);
    for (int reader : readers) Add<CacheReadStep>(stage, "local", std::vector<int>{reader});
    if (readers.size() > 1) Add<CacheReadStep>(stage, "local", readers);
    std::vector<int> order(state_.stage(stage).op->shape().size());
    std::iota(order.rbegin(), order.rend(), 0);
    if (order.size() > 1 && !readers.empty()) Add<CacheReadStep>(stage, "local", readers, order);
  }

  void NewStages(int stage) {
    Add<CacheWriteStep>(stage, "local");
    const int spatial = static_cast<int>(state_.stage(stage).op->axes().size());
    for (int loop = 0; loop < NumLoops(state_, stage); ++loop) {
      Add<RfactorStep>(stage, loop, 0);
      if (spatial > 0) Add<RfactorStep>(stage, loop, spatial);
    }
  }

  const State& state_;
  const EnumerateOptions& options_;
  std::vector<StepPtr> steps_;
};

}  // namespace

State RandomSchedule(const dag::DagPtr& dag, uint64_t seed, int length) {
  return Generator(dag, seed).Run(length);
}

std::vector<StepPtr> EnumerateSteps(const State& state, const EnumerateOptions& options) {
  return Enumerator(state, options).Run();
}

}  // namespace kiln::schedule
