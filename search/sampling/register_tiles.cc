#include "search/sampling/register_tiles.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "base/numbers/integers.h"
#include "compiler/arith/linear.h"
#include "compiler/ir/traverse.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/factorization.h"
#include "search/space/uneven_tiles.h"

namespace kiln::search {
namespace {

using schedule::SplitStep;
using schedule::State;
using schedule::StepPtr;

// ---- cost of a result

// Multiply-adds and loads that begin in one cycle, and cycles that a sum waits for the one before.
// The figures are those of cores since Haswell and Zen 2, as in device/calibration.h.
constexpr double kSumsPerCycle = 2, kLoadsPerCycle = 1.5, kSumLatency = 4;
// For reads with a stride of up to this, the codegen reads whole vectors and shuffles.
constexpr int64_t kMaxShuffledStride = 4;
// Value of a tile that does not fit into registers, relative to one that does.
constexpr double kSpilled = 0.4;

// The way in which the operator reads an input.
struct Read {
  std::vector<bool> uses;  // one for each spatial axis
  int64_t stride = 0;      // along the last spatial axis; 0: not used; -1: not known
};

Read ReadOf(const dag::Operator& op, const dag::Access& access) {
  const size_t spatial = op.axes().size();
  Read read{.uses = std::vector<bool>(spatial, false)};
  const arith::Linear address = arith::Flatten(access.load->args(), op.input_shape(access.slot));
  for (const arith::Term& term : address.terms) {
    ir::Visit(term.atom, [&](ir::Expr e) {
      if (e->op == ir::Op::kVar && e->id < static_cast<int32_t>(spatial)) read.uses[e->id] = true;
    });
    const int32_t last = static_cast<int32_t>(spatial) - 1;
    if (term.atom->op == ir::Op::kVar) {
      if (term.atom->id == last) read.stride = std::abs(term.coefficient);
    } else if (last >= 0 && read.uses[last]) {
      read.stride = -1;
    }
  }
  return read;
}

std::vector<Read> ReadsOf(const dag::Operator& op) {
  std::vector<Read> reads;
  for (const dag::Access& access : op.properties().reads) reads.push_back(ReadOf(op, access));
  return reads;
}

// Estimates the efficiency of many tiles of one operator.
class TileJudge {
 public:
  TileJudge(const dag::Operator& op, const CoreRegisters& core)
      : op_(op), core_(core), reads_(ReadsOf(op)) {}

  double Efficiency(const RegisterTile& tile) const {
    if (tile.empty()) return 0;
    const int64_t length = tile.back(), vectors = CeilDiv(length, core_.lanes);
    int64_t rows = 1;
    double useful = static_cast<double>(length) / static_cast<double>(vectors * core_.lanes);
    for (size_t axis = 0; axis < tile.size(); ++axis) {
      if (axis + 1 < tile.size()) rows *= tile[axis];
      const int64_t extent = op_.axes()[axis].extent;
      useful *= static_cast<double>(extent) / static_cast<double>(RoundUp(extent, tile[axis]));
    }
    const auto sums = static_cast<double>(rows * vectors);
    double loads = 0;
    for (const Read& read : reads_) loads += Loads(read, tile, vectors);
    // If two of the times are close to each other, neither is hidden behind the other.
    const double cycles = std::hypot(sums / kSumsPerCycle, loads / kLoadsPerCycle, kSumLatency);
    const double operands = static_cast<double>(vectors) + 1;
    const bool spills = sums + operands > static_cast<double>(core_.registers);
    return useful * sums / kSumsPerCycle / cycles * (spills ? kSpilled : 1);
  }

 private:
  double Loads(const Read& read, const RegisterTile& tile, int64_t vectors) const {
    double loads = 1;
    for (size_t axis = 0; axis + 1 < tile.size(); ++axis) {
      if (read.uses[axis]) loads *= static_cast<double>(tile[axis]);
    }
    if (read.stride == 0 || tile.back() == 1) return loads;
    const bool shuffled = read.stride > 0 && read.stride <= kMaxShuffledStride;
    const int64_t each = shuffled ? read.stride : core_.lanes;
    return loads * static_cast<double>(vectors * each);
  }

  const dag::Operator& op_;
  const CoreRegisters core_;
  const std::vector<Read> reads_;
};

// ---- possible lengths

constexpr int64_t kMaxRows = 32;

// Returns the lengths for an axis whose elements are rows of the tile.
std::vector<int64_t> RowLengths(int64_t extent, bool uneven) {
  std::set<int64_t> lengths;
  for (const int64_t covered : uneven ? TileExtents(extent) : std::vector<int64_t>{extent}) {
    for (const int64_t d : Divisors(covered)) {
      if (d <= std::min(extent, kMaxRows)) lengths.insert(d);
    }
  }
  return {lengths.begin(), lengths.end()};
}

// Returns the lengths for the axis in vectors. Lengths of whole vectors are included if the tiles
// then cover acceptably little more than the axis.
std::vector<int64_t> VectorLengths(int64_t extent, int64_t lanes, int64_t most, bool uneven) {
  std::set<int64_t> lengths = {std::min(extent, most)};
  for (const int64_t d : Divisors(extent)) {
    if (d <= most) lengths.insert(d);
  }
  const bool rounds = uneven && HasPoorDivisors(extent);
  for (int64_t vectors = 1; rounds && vectors * lanes <= std::min(most, extent); ++vectors) {
    if (IsAcceptable(RoundUp(extent, vectors * lanes), extent)) lengths.insert(vectors * lanes);
  }
  return {lengths.begin(), lengths.end()};
}

// ---- the blanks of a sketch

struct BlankSplit {
  size_t step;
  int axis = 0;  // index in the operator; reduce axes follow spatial ones
  int64_t extent = 1;
  size_t lengths = 1;
  bool is_reduce = false, makes_parts = false, uneven = false;
};

// Consecutive blanks of one stage.
struct BlankStage {
  dag::OperatorPtr op;
  std::vector<BlankSplit> splits;
};

bool HasBlank(const SplitStep& split) {
  return std::ranges::find(split.lengths, 0) != split.lengths.end();
}

// Returns the blanks of each stage, in the order of the steps.
std::vector<BlankStage> BlanksOf(const Sketch& sketch, const Parameters& parameters) {
  std::vector<BlankStage> stages;
  State state(sketch.state.initial_dag());
  int last_stage = -1;
  for (size_t i = 0; i < sketch.steps.size(); ++i) {
    const auto* split = schedule::As<SplitStep>(*sketch.steps[i]);
    StepPtr step = sketch.steps[i];
    if (split == nullptr || !HasBlank(*split)) {
      if (split == nullptr) last_stage = -1;
    } else {
      const schedule::Stage& stage = state.stage(split->stage_id);
      const bool makes_parts =
          i + 1 < sketch.steps.size() && schedule::Is<schedule::RfactorStep>(*sketch.steps[i + 1]);
      if (split->stage_id != last_stage || makes_parts) stages.push_back({stage.op, {}});
      last_stage = makes_parts ? -1 : split->stage_id;
      const schedule::LoopIter& loop = stage.loops[split->loop];
      stages.back().splits.push_back(
          {.step = i,
           .axis = loop.iter,
           .extent = split->extent,
           .lengths = split->lengths.size(),
           .is_reduce = stage.iters[loop.iter].kind != schedule::IterKind::kSpatial,
           .makes_parts = makes_parts,
           .uneven = MayBeUneven(sketch.steps, i, /*gpu=*/false, parameters)});
      if (makes_parts) {
        step = std::make_shared<SplitStep>(split->stage_id, split->loop, split->extent,
                                           std::vector<int64_t>(split->lengths.size(), 1),
                                           split->inner_to_outer);
      }
    }
    const Status applied = state.Apply(step);
    KILN_CHECK(applied.ok(), "a sketch's own step is refused: {}", Message(applied));
  }
  return stages;
}

// ---- from a register tile to all levels

using Lengths = std::vector<std::vector<int64_t>>;  // one for each split of a BlankStage

int64_t LargestDivisor(int64_t extent, int64_t most) {
  int64_t largest = 1;
  for (const int64_t d : Divisors(extent)) {
    if (d <= most) largest = d;
  }
  return largest;
}

// Fills the blanks of one tiled stage.
class StageFiller {
 public:
  StageFiller(const BlankStage& stage, const Task& task, const Parameters& parameters)
      : stage_(stage), op_(*stage.op), task_(task), parameters_(parameters) {}

  std::vector<Lengths> Fill(int most) const {
    if (stage_.splits[0].makes_parts) return FillParts();
    const CoreRegisters core = CoreRegistersOf(task_, op_);
    std::vector<std::vector<int64_t>> choices;
    for (size_t axis = 0; axis < op_.axes().size(); ++axis)
      choices.push_back(ChoicesOf(axis, core));
    const std::vector<RegisterTile> tiles =
        BestRegisterTiles(op_, choices, core, parameters_.rule_register_tiles);
    const std::vector<std::vector<int64_t>> reductions = Reductions();
    std::vector<Lengths> filled;
    // Better tiles get more variations of blocks and reductions.
    for (size_t sum = 0; static_cast<int>(filled.size()) < most; ++sum) {
      bool any = false;
      for (size_t t = 0; t <= sum && t < tiles.size(); ++t) {
        const std::vector<std::vector<int64_t>> blocks = Blocks(tiles[t]);
        for (size_t r = 0; t + r <= sum && r < reductions.size(); ++r) {
          const size_t b = sum - t - r;
          if (b >= blocks.size()) continue;
          any = true;
          filled.push_back(LengthsOf(tiles[t], blocks[b], reductions[r]));
          if (static_cast<int>(filled.size()) == most) return filled;
        }
      }
      if (!any && sum > tiles.size() + reductions.size() + kMaxBlocks) break;
    }
    return filled;
  }

 private:
  static constexpr size_t kMaxBlocks = 16;
  static constexpr int64_t kShortReduction = 8;

  const BlankSplit* SplitOf(size_t axis) const {
    for (const BlankSplit& split : stage_.splits) {
      if (split.axis == static_cast<int>(axis)) return &split;
    }
    return nullptr;  // the axis is not split
  }

  std::vector<int64_t> ChoicesOf(size_t axis, const CoreRegisters& core) const {
    const int64_t extent = op_.axes()[axis].extent;
    const BlankSplit* split = SplitOf(axis);
    if (split == nullptr) return {extent};
    if (axis + 1 == op_.axes().size())
      return VectorLengths(extent, core.lanes, parameters_.max_vectorize_size, split->uneven);
    return RowLengths(extent, split->uneven);
  }

  // Returns inner lengths of the reduction axes, by axis: as many as one panel of the cache holds,
  // fewer, and lengths that leave windows to outer loops.
  std::vector<std::vector<int64_t>> Reductions() const {
    std::vector<std::vector<int64_t>> all;
    const auto add = [&](int64_t most, bool windows) {
      std::vector<int64_t> lengths;
      for (size_t k = 0; k < op_.reduce_axes().size(); ++k) {
        const int64_t extent = op_.reduce_axes()[k].extent;
        const bool is_window = extent <= kShortReduction && op_.reduce_axes().size() > 1;
        lengths.push_back(is_window ? (windows ? extent : 1) : LargestDivisor(extent, most));
      }
      if (std::ranges::find(all, lengths) == all.end()) all.push_back(std::move(lengths));
    };
    add(64, true);
    add(16, true);
    add(64, false);
    add(256, true);
    add(4, true);
    return all;
  }

  // Returns the number of register tiles in the second level along each axis. Leaves enough outer
  // iterations for the cores.
  std::vector<std::vector<int64_t>> Blocks(const RegisterTile& tile) const {
    const size_t axes = tile.size();
    std::vector<std::vector<int64_t>> all;
    if (axes == 0) return all;
    // The row axis with the most tiles. Of axes with equally many, the last one.
    size_t row = axes - 1;
    for (size_t axis = 0; axis + 1 < axes; ++axis) {
      if (row == axes - 1 || Tiles(axis, tile) >= Tiles(row, tile)) row = axis;
    }
    const auto add = [&](int64_t rows, int64_t columns) {
      std::vector<int64_t> counts(axes, 1);
      if (axes > 1) counts[row] = rows;
      counts[axes - 1] = columns;
      int64_t tasks = 1;
      for (size_t axis = 0; axis < axes; ++axis) {
        if (counts[axis] > 1 && counts[axis] > Tiles(axis, tile)) return;
        tasks = MultiplyCounts(tasks, CeilDiv(Tiles(axis, tile), counts[axis]));
      }
      const int64_t cores = std::max(1, task_.hardware.num_cores);
      if (tasks < 2 * cores && !all.empty()) return;
      if (std::ranges::find(all, counts) == all.end()) all.push_back(std::move(counts));
    };
    add(1, 1);
    for (const auto& [rows, columns] :
         {std::pair{4, 1}, {1, 2}, {8, 1}, {2, 1}, {4, 2}, {1, 4}, {16, 1}, {8, 4}, {1, 8}})
      add(rows, columns);
    return all;
  }

  int64_t Tiles(size_t axis, const RegisterTile& tile) const {
    return SplitOf(axis) == nullptr ? 1 : CeilDiv(op_.axes()[axis].extent, tile[axis]);
  }

  Lengths LengthsOf(const RegisterTile& tile, const std::vector<int64_t>& blocks,
                    const std::vector<int64_t>& reductions) const {
    Lengths all;
    for (const BlankSplit& split : stage_.splits) {
      std::vector<int64_t> lengths;
      if (split.is_reduce) {
        lengths = {reductions[static_cast<size_t>(split.axis) - op_.axes().size()]};
      } else {
        lengths = {tile[static_cast<size_t>(split.axis)]};
        // A stage with fewer levels than a tiled reduction has no block of tiles.
        if (split.lengths > 1)
          lengths.insert(lengths.begin(), blocks[static_cast<size_t>(split.axis)]);
        lengths.insert(lengths.begin(), split.lengths - lengths.size(), 1);
        CutLengths(lengths, split.extent, 0);
      }
      all.push_back(std::move(lengths));
    }
    return all;
  }

  // Returns the inner length of a reduction that is shared out: a few vectors, or a length that
  // leaves some parts to every core.
  std::vector<Lengths> FillParts() const {
    const BlankSplit& split = stage_.splits[0];
    const int64_t lanes = CoreRegistersOf(task_, op_).lanes;
    const int64_t cores = std::max(1, task_.hardware.num_cores);
    std::vector<Lengths> all;
    for (const int64_t wanted : {4 * lanes, lanes, 2 * lanes, split.extent / (4 * cores),
                                 split.extent / cores, lanes / 2}) {
      if (wanted < 2 || wanted >= split.extent) continue;
      const bool covers = split.uneven && IsAcceptable(RoundUp(split.extent, wanted), split.extent);
      const int64_t length = covers ? wanted : LargestDivisor(split.extent, wanted);
      const Lengths lengths = {{length}};
      if (length > 1 && std::ranges::find(all, lengths) == all.end()) all.push_back(lengths);
    }
    if (all.empty()) all.push_back({{LargestDivisor(split.extent, 64)}});
    return all;
  }

  const BlankStage& stage_;
  const dag::Operator& op_;
  const Task& task_;
  const Parameters& parameters_;
};

// Returns the steps of the sketch with these lengths.
std::vector<StepPtr> StepsWith(const Sketch& sketch, std::span<const BlankStage> stages,
                               std::span<const Lengths* const> chosen) {
  std::vector<StepPtr> steps = sketch.steps;
  for (size_t g = 0; g < stages.size(); ++g) {
    for (size_t k = 0; k < stages[g].splits.size(); ++k) {
      StepPtr& step = steps[stages[g].splits[k].step];
      const SplitStep& split = *schedule::As<SplitStep>(*step);
      step = std::make_shared<SplitStep>(split.stage_id, split.loop, split.extent, (*chosen[g])[k],
                                         split.inner_to_outer);
    }
  }
  return steps;
}

}  // namespace

CoreRegisters CoreRegistersOf(const Task& task, const dag::Operator& op) {
  const int64_t bytes = std::max(1, task.hardware.vector_unit_bytes);
  return {.lanes = std::max<int64_t>(1, bytes / op.type().bytes()),
          .registers = bytes >= 64 ? 32 : 16};
}

double Efficiency(const dag::Operator& op, const RegisterTile& tile, const CoreRegisters& core) {
  return TileJudge(op, core).Efficiency(tile);
}

std::vector<RegisterTile> BestRegisterTiles(const dag::Operator& op,
                                            std::span<const std::vector<int64_t>> choices,
                                            const CoreRegisters& core, int most) {
  const TileJudge judge(op, core);
  std::vector<std::pair<double, RegisterTile>> judged;
  RegisterTile tile(choices.size(), 1);
  // Tiles with more rows than registers are skipped, but an axis with only one length keeps it.
  const auto visit = [&](const auto& self, size_t axis, int64_t rows) -> void {
    if (axis == choices.size()) {
      judged.emplace_back(judge.Efficiency(tile), tile);
      return;
    }
    const bool is_row = axis + 1 < choices.size();
    for (const int64_t length : choices[axis]) {
      const int64_t with = is_row ? MultiplyCounts(rows, length) : rows;
      if (with > core.registers && choices[axis].size() > 1 && length > choices[axis][0]) break;
      tile[axis] = length;
      self(self, axis + 1, with);
    }
  };
  visit(visit, 0, 1);
  std::ranges::stable_sort(judged, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<RegisterTile> best;
  for (auto& [efficiency, shape] : judged) {
    if (static_cast<int>(best.size()) == most) break;
    best.push_back(std::move(shape));
  }
  return best;
}

std::vector<std::vector<StepPtr>> FillByRule(const Sketch& sketch, const Task& task,
                                             const Parameters& parameters, int most) {
  const std::vector<BlankStage> stages = BlanksOf(sketch, parameters);
  if (stages.empty()) return {};
  std::vector<std::vector<Lengths>> options;
  std::vector<const Lengths*> chosen;
  for (const BlankStage& stage : stages) {
    options.push_back(StageFiller(stage, task, parameters).Fill(most));
    if (options.back().empty()) return {};
  }
  for (const std::vector<Lengths>& of_stage : options) chosen.push_back(&of_stage[0]);
  std::vector<std::vector<StepPtr>> all = {StepsWith(sketch, stages, chosen)};
  // One stage changes at a time, while the others keep their best lengths.
  for (size_t i = 1; static_cast<int>(all.size()) < most; ++i) {
    bool any = false;
    for (size_t g = 0; g < stages.size() && static_cast<int>(all.size()) < most; ++g) {
      if (i >= options[g].size()) continue;
      any = true;
      std::vector<const Lengths*> changed = chosen;
      changed[g] = &options[g][i];
      all.push_back(StepsWith(sketch, stages, changed));
    }
    if (!any) break;
  }
  return all;
}

}  // namespace kiln::search
