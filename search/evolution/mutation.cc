#include "search/evolution/mutation.h"

#include <algorithm>

#include "compiler/instructions/matrix_unit.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/steps/steps.h"
#include "search/evolution/matrix_moves.h"
#include "search/evolution/rebuild.h"
#include "search/evolution/tile_moves.h"
#include "search/sampling/annotate_cpu.h"
#include "search/sampling/buffering.h"
#include "search/sampling/compute_location.h"
#include "search/space/alike_products.h"
#include "search/space/factorization.h"
#include "search/space/matrix_product.h"
#include "search/space/matrix_tile.h"
#include "search/space/online_tiles.h"
#include "search/space/shared_layout.h"
#include "search/space/stage_hints.h"
#include "search/space/thread_shapes.h"
#include "search/space/uneven_tiles.h"

namespace kiln::search {
namespace {

using schedule::As;
using schedule::Is;
using schedule::SplitStep;
using schedule::State;
using schedule::StepPtr;

using Changes = StatusOr<Mutation> (*)(MutationKind kind, const Task& task,
                                       const Parameters& parameters, const Genome& genome,
                                       Rng& rng);

Status NoUse() { return NotFound("nothing of this kind in the schedule"); }
Status NoChange() { return FailedPrecondition("the change came to nothing"); }

const HintChoice& ChoiceOf(ir::Hint hint) { return HintChoices()[static_cast<size_t>(hint)]; }

std::vector<StepPtr> Copy(const Genome& genome) {
  return {genome.steps.begin(), genome.steps.end()};
}

// Changes the splits of the steps of one of the tiles.
StatusOr<Mutation> MoveMatrixTilesOf(MutationKind kind, const Genome& genome,
                                     std::span<const MatrixTiles> all, Rng& rng) {
  const size_t picked = all.size() > 1 ? static_cast<size_t>(UniformInt(rng, std::ssize(all))) : 0;
  const MatrixTiles& before = all[picked];
  MatrixTiles tiles = before;
  if (!MoveMatrixTiles(tiles, rng)) return NoChange();
  Mutation mutation{kind, Copy(genome)};
  const auto change = [&](int number, const std::vector<int64_t>& lengths) {
    StepPtr& step = mutation.steps[static_cast<size_t>(number)];
    const SplitStep& split = *As<SplitStep>(*step);
    step = std::make_shared<SplitStep>(split.stage_id, split.loop, split.extent, lengths,
                                       split.inner_to_outer);
    if (!mutation.step) mutation.step = number;
  };
  const MatrixSplits &now = tiles.splits, &then = before.splits;
  for (size_t axis = 0; axis < now.steps.size(); ++axis) {
    if (now.lengths[axis] != then.lengths[axis]) change(now.steps[axis], now.lengths[axis]);
  }
  for (size_t i = 0; i < now.reductions.size(); ++i) {
    if (now.reductions[i] != then.reductions[i])
      change(now.reductions[i].step, now.reductions[i].lengths);
  }
  return mutation;
}

// Probability that the tile of matrix units changes, and not a split beside it.
constexpr double kMoveMatrixTile = 0.8;

// Changes the hints that the new tile forbids, and draws bulk copies again if threads copied. The
// copy engine may bring the tiles of four warps' units that are fetched ahead. If it does so for
// several groups of four warps, their block takes all registers.
void FollowOnlineTile(const schedule::OnlineTile& tile, const Task& task,
                      const Parameters& parameters, std::vector<StepPtr>& steps, Rng& rng) {
  if (tile.matrix_unit != ir::MatrixUnitScope::kWarpgroup || tile.depth < 2) return;
  const int stage = steps[0]->stage();
  const auto step_of = [&](ir::Hint hint) {
    return std::ranges::find_if(
        steps, [&](const StepPtr& step) { return schedule::HintOf(*step, hint).has_value(); });
  };
  auto bulk = step_of(ir::Hint::kBulkCopies);
  const bool may_draw = parameters.hints[static_cast<size_t>(ir::Hint::kBulkCopies)];
  if (bulk == steps.end() && may_draw)
    bulk = steps.insert(steps.end(), schedule::HintStep(stage, ir::Hint::kBulkCopies, 0));
  if (bulk == steps.end()) return;
  if (*schedule::HintOf(**bulk, ir::Hint::kBulkCopies) == 0 && may_draw) {
    const HintQuestion question{
        .gpu = true, .multiprocessors = task.device.multiprocessors, .is_online = true};
    *bulk = schedule::HintStep(stage, ir::Hint::kBulkCopies,
                               DrawHint(ChoiceOf(ir::Hint::kBulkCopies), question, rng));
  }
  const auto blocks = step_of(ir::Hint::kMinBlocks);
  if (*schedule::HintOf(**bulk, ir::Hint::kBulkCopies) != 0 && blocks != steps.end() &&
      tile.warps > instructions::kWarpgroupWarps &&
      *schedule::HintOf(**blocks, ir::Hint::kMinBlocks) > 1)
    *blocks = schedule::HintStep(stage, ir::Hint::kMinBlocks, 1);
}

StatusOr<Mutation> MutateOnlineTile(MutationKind kind, const Task& task,
                                    const Parameters& parameters, const Genome& genome,
                                    const schedule::OnlineSoftmaxStep& step, Rng& rng) {
  const std::vector<schedule::OnlineTile> near =
      OnlineTilesNear(step.tile, OnlineSpaceOf(task, parameters));
  if (near.empty()) return NoChange();
  Mutation mutation{kind, Copy(genome), 0};
  const schedule::OnlineTile& tile = PickFrom(rng, near);
  mutation.steps[0] = std::make_shared<schedule::OnlineSoftmaxStep>(step.stage_id, tile);
  FollowOnlineTile(tile, task, parameters, mutation.steps, rng);
  return mutation;
}

StatusOr<Mutation> MutateTiles(MutationKind kind, const Task& task, const Parameters& parameters,
                               const Genome& genome, Rng& rng) {
  if (const auto* const online =
          genome.steps.empty() ? nullptr : As<schedule::OnlineSoftmaxStep>(*genome.steps[0]))
    return MutateOnlineTile(kind, task, parameters, genome, *online, rng);
  const bool gpu = task.target.is_gpu();
  std::vector<Tiles> tiles = TilesOf(genome.steps, genome.sketch);
  for (Tiles& t : tiles) {
    t.uneven = MayBeUneven(genome.steps, static_cast<size_t>(t.step), gpu, parameters) &&
               HasPoorDivisors(t.extent);
    t.kept = KeptLengths(*As<SplitStep>(*genome.steps[t.step]), gpu, parameters);
  }
  std::erase_if(tiles, [](const Tiles& t) { return !t.uneven && t.covered() != t.extent; });
  if (HasMatrixHint(genome.steps)) {
    KILN_ASSIGN_OR_RETURN(const State state, schedule::Replay(task.dag, genome.steps, task.stop));
    const std::vector<MatrixTiles> all = MatrixTilesOf(state);
    for (const MatrixTiles& matrix : all) {
      std::erase_if(tiles, [&](const Tiles& t) {
        return (matrix.depth && t.step == matrix.splits.reductions[*matrix.depth].step) ||
               std::ranges::count(matrix.splits.steps, t.step) > 0;
      });
    }
    if (!all.empty() && (tiles.empty() || Chance(rng, kMoveMatrixTile)))
      return MoveMatrixTilesOf(kind, genome, all, rng);
  }
  if (tiles.empty()) return NoUse();
  const std::vector<int> changed = MoveTiles(tiles, parameters, rng);
  if (changed.empty()) return NoChange();
  Mutation mutation{kind, Copy(genome), tiles[changed[0]].step};
  for (int t : changed) {
    StepPtr& step = mutation.steps[tiles[t].step];
    step = WithTiles(step, tiles[t]);
  }
  return mutation;
}

StatusOr<Mutation> MutateHint(MutationKind kind, const Task& task, const Parameters&,
                              const Genome& genome, Rng& rng) {
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(genome.steps.size()); ++i) {
    if (schedule::HintOf(*genome.steps[i], kind.hint)) found.push_back(i);
  }
  if (found.empty()) return NoUse();
  const int picked = PickFrom(rng, found);
  const schedule::Step& step = *genome.steps[picked];
  const int32_t current = *schedule::HintOf(step, kind.hint);
  std::vector<int32_t> values = ChoiceOf(kind.hint).values(
      {.gpu = task.target.is_gpu(),
       .current = current,
       .threads_per_block = [&] { return ThreadsOfTiles(genome.steps).value_or(1); },
       .has_warpgroup_units = HasWarpgroupUnits(task.target),
       .multiprocessors = task.device.multiprocessors,
       .is_online = As<schedule::OnlineSoftmaxStep>(*genome.steps[0]) != nullptr});
  std::erase(values, current);
  if (values.empty()) return NoChange();
  Mutation mutation{kind, Copy(genome), picked};
  mutation.steps[picked] = schedule::HintStep(step.stage(), kind.hint, PickFrom(rng, values));
  return mutation;
}

// Replaces one length of the split.
StatusOr<Mutation> MutateLength(MutationKind kind, const Genome& genome, int step, size_t which,
                                std::vector<int64_t> choices, Rng& rng) {
  const SplitStep& split = *As<SplitStep>(*genome.steps[step]);
  std::vector<int64_t> lengths = split.lengths;
  std::erase(choices, lengths[which]);
  if (choices.empty()) return NoChange();
  lengths[which] = PickFrom(rng, choices);
  Mutation mutation{kind, Copy(genome), step};
  mutation.steps[step] = std::make_shared<SplitStep>(split.stage_id, split.loop, split.extent,
                                                     std::move(lengths), split.inner_to_outer);
  return mutation;
}

StatusOr<Mutation> MutateThreads(MutationKind kind, const Task& task, const Parameters&,
                                 const Genome& genome, Rng& rng) {
  struct Length {
    int step;
    size_t which;
    LengthRole role;
  };
  std::vector<Length> all;
  for (size_t i = 0; i < genome.steps.size(); ++i) {
    if (IsFetchSplit(genome.steps, i)) continue;
    const std::vector<LengthRole> roles = LengthRoles(genome.steps, i);
    for (size_t k = 0; k < roles.size(); ++k) all.push_back({static_cast<int>(i), k, roles[k]});
  }
  if (all.empty()) return NoUse();
  const Length& picked = PickFrom(rng, all);
  const SplitStep& split = *As<SplitStep>(*genome.steps[picked.step]);
  const bool is_flat = split.lengths.size() == 3;
  const int64_t extent = is_flat && picked.role == LengthRole::kLanes ? 0 : split.extent;
  return MutateLength(
      kind, genome, picked.step, picked.which,
      LengthChoices(picked.role, extent, MostLanes(*task.dag, task.hardware), task.hardware), rng);
}

// Draws another fetch width. Rebuild cuts widths that the tiles do not allow.
StatusOr<Mutation> MutateFetchWidth(MutationKind kind, const Task& task, const Parameters&,
                                    const Genome& genome, Rng& rng) {
  std::vector<int> splits;
  for (size_t i = 0; i < genome.steps.size(); ++i) {
    if (IsFetchSplit(genome.steps, i)) splits.push_back(static_cast<int>(i));
  }
  if (splits.empty()) return NoUse();
  std::vector<int64_t> choices;
  for (int64_t width = 1; width <= task.hardware.vector_unit_bytes; width *= 2)
    choices.push_back(width);
  return MutateLength(kind, genome, PickFrom(rng, splits), 0, std::move(choices), rng);
}

StatusOr<Mutation> MutateBuffering(MutationKind kind, const Task& task,
                                   const Parameters& parameters, const Genome& genome, Rng& rng) {
  std::vector<int> found;
  for (int i = 0; i < static_cast<int>(genome.steps.size()); ++i) {
    if (Is<schedule::BufferingStep>(*genome.steps[i])) found.push_back(i);
  }
  if (found.empty()) return NoUse();
  const int picked = PickFrom(rng, found);
  const schedule::Step& step = *genome.steps[picked];
  const auto is_of_four_warps = [](const StepPtr& other) {
    return schedule::HintOf(*other, ir::Hint::kMatrixUnit) ==
           static_cast<int32_t>(ir::MatrixUnitScope::kWarpgroup);
  };
  const ir::MatrixUnitScope units = std::ranges::any_of(genome.steps, is_of_four_warps)
                                        ? ir::MatrixUnitScope::kWarpgroup
                                        : ir::MatrixUnitScope::kNone;
  std::vector<StepPtr> choices = BufferingChoices(step.stage(), units, task, parameters);
  std::erase_if(choices, [&](const StepPtr& choice) { return choice->Hash() == step.Hash(); });
  Mutation mutation{kind, Copy(genome), picked};
  mutation.steps[picked] = PickFrom(rng, choices);
  return mutation;
}

StatusOr<Mutation> MutateLayout(MutationKind kind, const Task& task, const Parameters& parameters,
                                const Genome& genome, Rng& rng) {
  constexpr int kTries = 8;
  std::vector<int> found;
  for (size_t i = 0; i < genome.steps.size(); ++i) {
    if (IsLayout(genome.steps, i)) found.push_back(static_cast<int>(i));
  }
  if (found.empty()) return NoUse();
  const int picked = PickFrom(rng, found);
  KILN_ASSIGN_OR_RETURN(const State state,
                        schedule::Replay(task.dag, genome.steps.first(picked), task.stop));
  for (int i = 0; i < kTries; ++i) {
    const LayoutSteps layout = RandomLayout(state, genome.steps[picked]->stage(), parameters, rng);
    if (layout[0]->Hash() == genome.steps[picked]->Hash() &&
        layout[1]->Hash() == genome.steps[picked + 1]->Hash())
      continue;
    Mutation mutation{kind, Copy(genome), picked};
    std::ranges::copy(layout, mutation.steps.begin() + picked);
    return mutation;
  }
  return NoChange();
}

// ---- the last part of a CPU schedule: places, then annotations

bool IsPlace(const schedule::Step& step) {
  return Is<schedule::ComputeAtStep>(step) || Is<schedule::ComputeInlineStep>(step) ||
         Is<schedule::ComputeRootStep>(step);
}

struct CpuParts {
  std::span<const StepPtr> sketch, places, annotations;
};

StatusOr<CpuParts> PartsOf(const Genome& genome) {
  if (genome.sketch.empty() || genome.sketch.size() > genome.steps.size()) return NoUse();
  size_t end = genome.sketch.size();
  while (end < genome.steps.size() && IsPlace(*genome.steps[end])) ++end;
  return CpuParts{genome.steps.first(genome.sketch.size()),
                  genome.steps.subspan(genome.sketch.size(), end - genome.sketch.size()),
                  genome.steps.subspan(end)};
}

// Makes the last part anew, with the choices of the old one as far as `choices` has them.
StatusOr<Mutation> AnnotateAnew(MutationKind kind, State state, const Task& task,
                                const Parameters& parameters, const Genome& genome,
                                const CpuChoices& choices, Rng& rng) {
  KILN_ASSIGN_OR_RETURN(state,
                        AnnotateCpu(std::move(state), CpuLimitsOf(task, parameters), choices, rng));
  Mutation mutation{kind, state.steps(), std::nullopt};
  if (schedule::HashSteps(mutation.steps) == schedule::HashSteps(genome.steps)) return NoChange();
  return mutation;
}

StatusOr<Mutation> MutateLocation(MutationKind kind, const Task& task, const Parameters& parameters,
                                  const Genome& genome, Rng& rng) {
  KILN_ASSIGN_OR_RETURN(const CpuParts parts, PartsOf(genome));
  KILN_ASSIGN_OR_RETURN(State state, schedule::Replay(task.dag, parts.sketch, task.stop));
  KILN_ASSIGN_OR_RETURN(state, lower::FillExtents(state));
  const std::vector<int> movable = MovableStages(state);
  if (movable.empty()) return NoUse();
  const int moved = PickFrom(rng, movable);
  for (int s : movable) {
    if (s == moved) {
      KILN_RETURN_IF_ERROR(MoveStage(state, s, rng));
      continue;
    }
    for (const StepPtr& place : parts.places) {
      if (place->stage() == s) KILN_RETURN_IF_ERROR(state.Apply(place));
    }
  }
  return AnnotateAnew(kind, std::move(state), task, parameters, genome,
                      ReadCpuChoices(parts.annotations), rng);
}

// Gives one stage of `counts` another number of fused loops.
Status ChangeCount(std::map<int, int>& counts, int least, int most, Rng& rng) {
  if (counts.empty()) return NoUse();
  const auto picked =
      std::next(counts.begin(), UniformInt(rng, static_cast<int64_t>(counts.size())));
  const int other = static_cast<int>(UniformIn(rng, least, most - 1));
  picked->second = other < picked->second ? other : other + 1;
  return OkStatus();
}

StatusOr<Mutation> MutateAnnotation(MutationKind kind, const Task& task,
                                    const Parameters& parameters, const Genome& genome, Rng& rng) {
  // A number beyond the loops of a stage is cut to that of its loops.
  constexpr int kMaxLoops = 6;
  KILN_ASSIGN_OR_RETURN(const CpuParts parts, PartsOf(genome));
  CpuChoices choices = ReadCpuChoices(parts.annotations);
  KILN_RETURN_IF_ERROR(kind.of == MutationKind::kParallel
                           ? ChangeCount(choices.parallel_loops, 1, kMaxLoops, rng)
                           : ChangeCount(choices.vector_loops, 1, 4, rng));
  KILN_ASSIGN_OR_RETURN(
      State state,
      schedule::Replay(task.dag, genome.steps.first(parts.sketch.size() + parts.places.size()),
                       task.stop));
  return AnnotateAnew(kind, std::move(state), task, parameters, genome, choices, rng);
}

// ---- the table of kinds

using Weight = double Parameters::*;

struct Row {
  MutationKind kind;
  std::string_view name;
  Weight cpu_weight, gpu_weight;  // null: not for this execution model
  Changes change;
};

constexpr Row kTiles = {MutationKind::kTileSize, "tile sizes", &Parameters::mutate_tiles_cpu,
                        &Parameters::mutate_tiles_gpu, MutateTiles};
constexpr Row kOthers[] = {
    {MutationKind::kThreads, "threads", nullptr, &Parameters::mutate_threads, MutateThreads},
    {MutationKind::kFetchWidth, "fetch width", nullptr, &Parameters::mutate_fetch_width,
     MutateFetchWidth},
    {MutationKind::kBuffering, "buffering", nullptr, &Parameters::mutate_buffering,
     MutateBuffering},
    {MutationKind::kLayout, "shared layout", nullptr, &Parameters::mutate_layout, MutateLayout},
    {MutationKind::kComputeLocation, "place of a stage", &Parameters::mutate_location, nullptr,
     MutateLocation},
    {MutationKind::kParallel, "parallel loops", &Parameters::mutate_parallel, nullptr,
     MutateAnnotation},
    {MutationKind::kVectorize, "vector loops", &Parameters::mutate_vectorize, nullptr,
     MutateAnnotation},
};

// A kind that a draw may pick.
struct Choice {
  MutationKind kind;
  double weight;
  Changes change;
};

void AddRow(const Row& row, bool gpu, const Parameters& parameters, std::vector<Choice>& choices) {
  const Weight weight = gpu ? row.gpu_weight : row.cpu_weight;
  const double value = weight == nullptr ? 0 : parameters.*weight;
  if (value > 0) choices.push_back({row.kind, value, row.change});
}

void AddHints(bool gpu_only, bool gpu, std::vector<Choice>& choices) {
  for (const HintChoice& c : HintChoices()) {
    const double weight = gpu ? c.gpu_weight : c.cpu_weight;
    if (ir::RowOf(c.hint).is_gpu_only == gpu_only && weight > 0)
      choices.push_back({c.hint, weight, MutateHint});
  }
}

// Returns the kinds of the target, in the order of a draw.
std::vector<Choice> ChoicesOf(const Task& task, const Parameters& parameters) {
  const bool gpu = task.target.is_gpu();
  std::vector<Choice> choices;
  AddRow(kTiles, gpu, parameters, choices);
  AddHints(/*gpu_only=*/false, gpu, choices);
  for (const Row& row : kOthers) AddRow(row, gpu, parameters, choices);
  AddHints(/*gpu_only=*/true, gpu, choices);
  return choices;
}

}  // namespace

std::string_view MutationName(MutationKind kind) {
  if (kind.of == MutationKind::kHint) return ChoiceOf(kind.hint).mutation;
  if (kind == kTiles.kind) return kTiles.name;
  return std::ranges::find(kOthers, kind, &Row::kind)->name;
}

std::vector<MutationKind> MutationKinds(const Task& task, const Parameters& parameters) {
  std::vector<MutationKind> kinds;
  for (const Choice& choice : ChoicesOf(task, parameters)) kinds.push_back(choice.kind);
  return kinds;
}

namespace {

// Probability that what is chosen alike for products of one form is changed alike.
constexpr double kChangeAlike = 0.75;

// Lets the mutation change the choices for products of one form alike, mostly.
Status ChangeProductsAlike(const Task& task, const Genome& genome, Mutation& mutation, Rng& rng) {
  const auto is_of_units = [](const StepPtr& step) {
    return schedule::HintOf(*step, ir::Hint::kMatrixUnit).value_or(0) != 0;
  };
  if (std::ranges::count_if(genome.steps, is_of_units) < 2) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const State before, schedule::Replay(task.dag, genome.steps, task.stop));
  if (AlikeChoices(before).empty() || !Chance(rng, kChangeAlike)) return OkStatus();
  ChangeAlike(before, mutation.steps);
  return OkStatus();
}

}  // namespace

StatusOr<Mutation> MutateAs(MutationKind kind, const Task& task, const Parameters& parameters,
                            const Genome& genome, Rng& rng) {
  const Changes change = kind.of == MutationKind::kHint ? MutateHint
                         : kind == kTiles.kind
                             ? kTiles.change
                             : std::ranges::find(kOthers, kind, &Row::kind)->change;
  return change(kind, task, parameters, genome, rng);
}

StatusOr<Mutation> Mutate(const Task& task, const Parameters& parameters, const Genome& genome,
                          Rng& rng) {
  const std::vector<Choice> choices = ChoicesOf(task, parameters);
  std::vector<double> weights;
  for (const Choice& choice : choices) {
    const bool wanted =
        choice.kind != MutationKind::kComputeLocation || parameters.change_compute_location;
    weights.push_back(wanted ? choice.weight : 0);
  }
  // A kind that the schedule has no use for leaves its share to the others.
  const auto none_left = [&] {
    return std::ranges::all_of(weights, [](double w) { return w == 0; });
  };
  while (!none_left()) {
    const auto picked = static_cast<size_t>(PickWeighted(rng, weights));
    const Choice& choice = choices[picked];
    StatusOr<Mutation> mutation = choice.change(choice.kind, task, parameters, genome, rng);
    if (mutation.ok()) KILN_RETURN_IF_ERROR(ChangeProductsAlike(task, genome, *mutation, rng));
    if (mutation.ok() || mutation.status().code() != absl::StatusCode::kNotFound) return mutation;
    weights[picked] = 0;
  }
  return NoUse();
}

std::string SubjectOfStep(const dag::DagPtr& dag, std::span<const StepPtr> steps, int number) {
  if (number >= static_cast<int>(steps.size())) return "";
  const auto state = schedule::Replay(dag, steps.first(number));
  const int s = steps[number]->stage();
  if (!state.ok() || s >= state->num_stages()) return "";
  const std::string& stage = state->stage(s).op->name();
  const auto* split = As<SplitStep>(*steps[number]);
  if (split == nullptr || split->loop >= static_cast<int>(state->stage(s).loops.size()))
    return stage;
  return stage + "." + schedule::LoopName(state->stage(s), split->loop);
}

}  // namespace kiln::search
