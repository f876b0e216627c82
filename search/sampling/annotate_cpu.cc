#include "search/sampling/annotate_cpu.h"

#include <algorithm>

#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/sampling/sample_unroll.h"
#include "search/space/tiling.h"

namespace kiln::search {
namespace {

using schedule::AnnotateStep;
using schedule::Annotation;
using schedule::As;
using schedule::Attach;
using schedule::FuseStep;
using schedule::IterKind;
using schedule::Stage;
using schedule::State;
using schedule::StepPtr;

bool IsReduce(const Stage& stage, int loop) {
  return stage.loop(loop).kind == IterKind::kReduce || stage.loop(loop).kind == IterKind::kMixed;
}

class Annotator {
 public:
  Annotator(State& state, const CpuLimits& limits, const CpuChoices& choices, Rng& rng)
      : state_(state), limits_(limits), choices_(choices), rng_(rng) {}

  Status ParallelizeRoots() {
    for (int s = 0; s < state_.num_stages(); ++s) {
      if (state_.stage(s).is_placeholder() || state_.attach(s).kind != Attach::kRoot) continue;
      const auto chosen = choices_.parallel_loops.find(s);
      KILN_RETURN_IF_ERROR(
          Parallelize(s, 0, chosen == choices_.parallel_loops.end() ? 0 : chosen->second).status());
    }
    return OkStatus();
  }

  Status Unroll() {
    return AnnotateUnroll(state_, [&](int s, const HintChoice& choice) {
      const auto chosen = choices_.hints.find({s, choice.hint});
      return chosen == choices_.hints.end() ? DrawHint(choice, {}, rng_) : chosen->second;
    });
  }

  Status Vectorize() {
    for (int s = 0; s < state_.num_stages(); ++s) {
      if (state_.stage(s).is_placeholder() || state_.attach(s).kind == Attach::kInlined) continue;
      const int most = VectorizableLoops(s);
      if (most == 0) continue;
      const auto chosen = choices_.vector_loops.find(s);
      int count = most;
      if (chosen != choices_.vector_loops.end()) {
        count = std::clamp(chosen->second, 0, most);
      } else if (most > 1) {
        count = 1 + static_cast<int>(UniformInt(rng_, most - 1));
      }
      if (count == 0) continue;
      const int first = static_cast<int>(state_.stage(s).loops.size()) - count;
      KILN_RETURN_IF_ERROR(Fuse(s, first, count));
      KILN_RETURN_IF_ERROR(
          state_.Apply(std::make_shared<AnnotateStep>(s, first, Annotation::kVectorize)));
    }
    return OkStatus();
  }

 private:
  Status Fuse(int s, int first, int count) {
    if (count < 2) return OkStatus();
    std::vector<int> loops(count);
    for (int i = 0; i < count; ++i) loops[i] = first + i;
    return state_.Apply(std::make_shared<FuseStep>(s, loops));
  }

  // Fuses outer loops from `first` on and makes them parallel. If there is nothing to run in
  // parallel, goes on inside the stages attached there. Fuses `wanted` loops, or as many as the
  // cores need if that is 0. Returns whether a loop has become parallel: then no loop around it
  // may, because a parallel loop inside another one shares nothing out, and TVM does not compile
  // such loops.
  StatusOr<bool> Parallelize(int s, int first, int wanted) {
    const Stage stage = state_.stage(s);
    const int n = static_cast<int>(stage.loops.size());
    int count = 0;
    int64_t degree = 1;
    int loop = first;
    for (; loop < n; ++loop) {
      if (IsReduce(stage, loop) || stage.annotation(loop) != Annotation::kNone) break;
      // The innermost loop is left for vectors if all cores have work without it.
      if (wanted == 0 && loop == n - 1 && degree >= limits_.num_cores && count > 0) break;
      ++count;
      degree *= stage.loop(loop).extent;
      const bool enough = wanted > 0 ? count >= wanted : degree > int64_t{limits_.num_cores} * 16;
      if (enough || state_.HasAttached(s, loop)) break;
    }
    bool inside = false;
    if (degree == 1 && loop < n && state_.HasAttached(s, loop)) {
      for (int attached : state_.AttachedTo(s, loop)) {
        if (state_.stage(attached).is_placeholder()) continue;
        KILN_ASSIGN_OR_RETURN(const bool is_parallel, Parallelize(attached, 0, 0));
        inside = inside || is_parallel;
      }
      KILN_ASSIGN_OR_RETURN(const bool is_parallel, Parallelize(s, loop + 1, 0));
      inside = inside || is_parallel;
    }
    if (count == 0 || inside) return inside;
    KILN_RETURN_IF_ERROR(Fuse(s, first, count));
    KILN_RETURN_IF_ERROR(
        state_.Apply(std::make_shared<AnnotateStep>(s, first, Annotation::kParallel)));
    return true;
  }

  // Returns how many inner loops may become one vector loop. In a tiled stage only the innermost
  // may.
  int VectorizableLoops(int s) const {
    const Stage& stage = state_.stage(s);
    const int n = static_cast<int>(stage.loops.size());
    int64_t lanes = 1;
    int count = 0;
    for (; count < (IsTiled(stage) ? std::min(n, 1) : n); ++count) {
      const int loop = n - 1 - count;
      if (state_.HasAttached(s, loop) || IsReduce(stage, loop) ||
          stage.annotation(loop) != Annotation::kNone)
        break;
      lanes *= stage.loop(loop).extent;
      // One long loop is cut into vectors; the loops around it are not fused with it.
      if (lanes > limits_.max_lanes) return std::max(count, 1);
    }
    return count;
  }

  State& state_;
  const CpuLimits& limits_;
  const CpuChoices& choices_;
  Rng& rng_;
};

}  // namespace

CpuLimits CpuLimitsOf(const Task& task, const Parameters& parameters) {
  return {.num_cores = std::max(1, task.hardware.num_cores),
          .max_lanes = parameters.max_vectorize_size};
}

CpuChoices ReadCpuChoices(std::span<const StepPtr> steps) {
  CpuChoices choices;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const HintChoice& choice : HintChoices()) {
      if (const auto value = schedule::HintOf(*steps[i], choice.hint))
        choices.hints[{steps[i]->stage(), choice.hint}] = *value;
    }
    const auto* annotate = As<AnnotateStep>(*steps[i]);
    if (annotate == nullptr) continue;
    int fused = 1;
    const auto* fuse = i > 0 ? As<FuseStep>(*steps[i - 1]) : nullptr;
    if (fuse != nullptr && fuse->stage_id == annotate->stage_id && !fuse->loops.empty() &&
        fuse->loops[0] == annotate->loop)
      fused = static_cast<int>(fuse->loops.size());
    if (annotate->annotation == Annotation::kParallel && annotate->loop == 0)
      choices.parallel_loops[annotate->stage_id] = fused;
    if (annotate->annotation == Annotation::kVectorize)
      choices.vector_loops[annotate->stage_id] = fused;
  }
  return choices;
}

StatusOr<State> AnnotateCpu(State state, const CpuLimits& limits, const CpuChoices& choices,
                            Rng& rng) {
  KILN_ASSIGN_OR_RETURN(state, lower::FillExtents(std::move(state)));
  Annotator annotator(state, limits, choices, rng);
  KILN_RETURN_IF_ERROR(annotator.ParallelizeRoots());
  KILN_RETURN_IF_ERROR(annotator.Unroll());
  KILN_ASSIGN_OR_RETURN(state, lower::FillExtents(std::move(state)));
  KILN_RETURN_IF_ERROR(annotator.Vectorize());
  return state;
}

}  // namespace kiln::search
