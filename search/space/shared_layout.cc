#include "search/space/shared_layout.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "base/numbers/integers.h"
#include "compiler/ir/traverse.h"
#include "compiler/schedule/buffer_shape.h"
#include "compiler/schedule/steps/steps.h"
#include "search/space/bulk_copies.h"
#include "search/space/matrix_product.h"
#include "search/space/matrix_tile.h"
#include "search/space/thread_shapes.h"

namespace kiln::search {
namespace {

using schedule::LayoutStep;
using schedule::State;
using schedule::StorageAlignStep;

constexpr int kVectorBytes = 16, kWordBytes = 4, kBanks = 32;
constexpr double kLinesProb = 0.5;

// Rows as long as they are, a multiple of a vector, an odd multiple of one, two vectors more than
// all banks.
using Padding = std::pair<int, int>;  // of an SA step: factor, offset
// A copy is read along both axes: rows as long as they are, one word more than all banks, an odd
// multiple of a vector.
std::array<Padding, 4> Paddings(const State& state, int s) {
  const int bytes = state.stage(s).op->type().bytes();
  const int vector = std::max(1, kVectorBytes / bytes), word = std::max(1, kWordBytes / bytes);
  const Padding second = IsCopied(state, s) ? Padding{kBanks * word, word} : Padding{vector, 0};
  return {Padding{1, 0}, second, Padding{2 * vector, vector}, Padding{kBanks * word, 2 * vector}};
}

// Do matrix units read it element by element, four of a row and eight rows at once? Of 32 bits they
// do where neighbours are not along the sum.
bool IsReadByElements(const State& state, int s) {
  const int reader = state.attach(s).stage;
  const std::optional<MatrixProduct> product = MatrixProductOf(state, reader);
  if (!product || product->unit->factor.bytes() != kWordBytes) return false;
  std::vector<ir::Expr> factors = {product->first, product->second};
  factors.insert(factors.end(), product->others.begin(), product->others.end());
  return std::ranges::any_of(factors, [&](ir::Expr load) {
    return state.dag()->node(reader).inputs[load->id].op == s && !product->IsAlongDepth(load);
  });
}

// Do threads compute a factor of matrix units from it? They read words of rows that are one row
// apart or two, as several terms lie in one byte or not: rows begin 8 or 4 banks behind the one
// before.
bool IsUnpackedInRegisters(const State& state, int s) {
  const std::vector<int>& readers = state.dag()->consumers(s);
  return std::ranges::any_of(
      readers, [&](int reader) { return state.attach(reader).kind == schedule::Attach::kInlined; });
}

// The product of which stage s is the tile of the second factor, if units of four warps read it.
std::optional<MatrixProduct> ProductOfColumns(const State& state, int s) {
  const int reader = state.attach(s).stage;
  if (ir::MatrixUnitScopeOf(state.stage(reader).hints) != ir::MatrixUnitScope::kWarpgroup)
    return std::nullopt;
  const std::optional<MatrixProduct> product = TiledProductOf(state, reader);
  if (!product) return std::nullopt;
  for (const MatrixProduct& sum : product->Sums()) {
    if (state.dag()->node(reader).inputs[sum.second->id].op == s) return sum;
  }
  return std::nullopt;
}

// Are rows of columns longer than a line, and no whole ones? In parts of 64 or 32 bytes, as they would be
// swizzled, the copy engine is slow: it takes as long for a part as for a line.
bool HasBrokenLines(const State& state, int s, const MatrixProduct& product) {
  const MatrixSplits splits = MatrixSplitsOf(state, state.attach(s).stage);
  if (splits.lengths.empty()) return false;
  const int64_t bytes =
      ProductOfCounts(splits.lengths[product.TiledColumn(splits.lengths.size())]) *
      product.unit->factor.bytes();
  return bytes > schedule::kLineBytes && bytes % schedule::kLineBytes != 0;
}

// Rows of whole lines.
Padding WholeLines(const State& state, int s) {
  return {static_cast<int>(schedule::kLineBytes) / state.stage(s).op->type().bytes(), 0};
}

LayoutSteps StepsOf(int s, std::vector<int> order, Padding padding) {
  const int rows = order[order.size() - 2];
  return {std::make_shared<LayoutStep>(s, std::move(order)),
          std::make_shared<StorageAlignStep>(s, rows, padding.first, padding.second)};
}

// The stride of every axis, 0 where there is but one element, and the size: equal ones, equal
// strides of all elements.
std::vector<int64_t> ElementStrides(schedule::Stage stage, const LayoutSteps& steps,
                                    bool is_swizzled) {
  const LayoutStep& layout = *schedule::As<LayoutStep>(*steps[0]);
  const StorageAlignStep& align = *schedule::As<StorageAlignStep>(*steps[1]);
  stage.layout.assign(layout.order.begin(), layout.order.end());
  stage.align_axis = align.loop;  // the loops were the axes
  stage.align_factor = align.factor;
  stage.align_offset = align.offset;
  const std::vector<int64_t> region = schedule::RegionOf(stage);
  const std::vector<int64_t> shape = schedule::BufferShape(stage, region, is_swizzled);
  std::vector<int64_t> strides(shape.size() + 1);
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    const int axis = stage.layout[d];
    strides[axis] = region[axis] > 1 ? stride : 0;
    stride *= shape[d];
  }
  strides.back() = stride;
  return strides;
}

// What is swizzled in any case needs no hint.
bool SimplifySwizzles(const State& filled, std::vector<schedule::StepPtr>& steps) {
  bool changed = false;
  for (schedule::StepPtr& step : steps) {
    const schedule::Attach& at = filled.attach(step->stage());
    if (schedule::HintOf(*step, ir::Hint::kSwizzle).value_or(0) == 0 ||
        at.kind != schedule::Attach::kIter ||
        ir::MatrixUnitScopeOf(filled.stage(at.stage).hints) != ir::MatrixUnitScope::kWarpgroup)
      continue;
    step = schedule::HintStep(step->stage(), ir::Hint::kSwizzle, 0);
    changed = true;
  }
  return changed;
}

}  // namespace

std::vector<int> FetchedStages(const State& state) {
  std::vector<int> stages;
  for (int s = 0; s < state.num_stages(); ++s) {
    const schedule::Stage& stage = state.stage(s);
    if (state.attach(s).kind == schedule::Attach::kIter && stage.asks_for_shared() &&
        stage.op->axes().size() >= 2 && !IsKeptRow(state, s))
      stages.push_back(s);
  }
  return stages;
}

std::vector<int> LaneVaryingAxes(const State& state, int s) {
  const int reader = state.attach(s).stage;
  const dag::Operator& op = *state.stage(reader).op;
  const auto spatial = static_cast<int32_t>(op.axes().size());
  std::vector<int> varying;
  for (const dag::Access& access : op.properties().reads) {
    if (state.dag()->node(reader).inputs[access.slot].op != s) continue;
    for (int axis = 0; axis < static_cast<int>(access.load->num_args); ++axis) {
      bool moves = false;
      ir::Visit(access.load->arg(axis), [&](ir::Expr e) {
        moves = moves || (e->op == ir::Op::kVar && e->id < spatial && op.axes()[e->id].extent > 1);
      });
      const bool is_new = std::ranges::find(varying, axis) == varying.end();
      if (moves && is_new && state.stage(s).op->axes()[axis].extent > 1) varying.push_back(axis);
    }
  }
  std::ranges::sort(varying);
  return varying;
}

LayoutSteps RandomLayout(const State& state, int s, const Parameters& parameters, Rng& rng) {
  const dag::Operator& op = *state.stage(s).op;
  const int rank = static_cast<int>(op.axes().size());
  std::vector<int> order(rank);
  std::iota(order.begin(), order.end(), 0);
  const std::array<Padding, 4> paddings = Paddings(state, s);
  // Matrix units read whole vectors, 8 rows at once: an odd multiple is free of bank conflicts.
  // Single elements of four rows are so where a row begins 8 banks behind the one before.
  if (const std::optional<MatrixProduct> product = ProductOfColumns(state, s)) {
    if (IsReadAlongDepth(*product)) {
      // Columns one behind the other, where they lie otherwise: transposed, or with a window between the two.
      std::vector<int> wanted = ColumnsBeforeDepth(*product);
      if (wanted != order) return StepsOf(s, std::move(wanted), paddings[0]);
    } else if (HasBrokenLines(state, s, *product)) {
      return StepsOf(s, std::move(order), WholeLines(state, s));
    }
  }
  if (state.stage(state.attach(s).stage).hints[ir::Hint::kMatrixUnit] != 0) {
    const bool is_by_elements =
        IsReadByElements(state, s) || (IsUnpackedInRegisters(state, s) && Chance(rng, kLinesProb));
    const size_t padded = is_by_elements ? 3 : 2;
    return StepsOf(s, std::move(order),
                   paddings[Chance(rng, parameters.pad_matrix_prob) ? padded : 1]);
  }
  std::vector<int> varying = LaneVaryingAxes(state, s);
  const bool innermost_is_varying = std::erase(varying, rank - 1) > 0;
  const bool bytes = op.type().bytes() == 1;
  if (!varying.empty() &&
      Chance(rng, bytes ? parameters.layout_move_bytes_prob : parameters.layout_move_prob)) {
    const int inner = PickFrom(rng, varying);
    order.erase(order.begin() + inner);
    order.push_back(inner);
  }
  const bool is_varying = order.back() == rank - 1 && innermost_is_varying;
  const bool pads = Chance(rng, IsCopied(state, s) ? parameters.pad_copy_prob
                                : is_varying       ? parameters.pad_varying_prob
                                                   : parameters.pad_prob);
  return StepsOf(s, std::move(order), paddings[pads ? 1 + UniformInt(rng, 2) : 0]);
}

bool PadBrokenLines(const State& state, std::vector<schedule::StepPtr>& steps) {
  bool changed = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!IsLayout(steps, i)) continue;
    // Layouts are given when all stages are made: the number is still the stage's.
    const int s = steps[i]->stage();
    if (s >= state.num_stages() || state.attach(s).kind != schedule::Attach::kIter) continue;
    const std::optional<MatrixProduct> product = ProductOfColumns(state, s);
    if (!product || IsReadAlongDepth(*product) || !HasBrokenLines(state, s, *product)) continue;
    LayoutSteps padded =
        StepsOf(s, schedule::As<LayoutStep>(*steps[i])->order, WholeLines(state, s));
    if (padded[1]->Hash() == steps[i + 1]->Hash()) continue;
    steps[i + 1] = std::move(padded[1]);
    changed = true;
  }
  return changed;
}

bool SimplifyLayouts(const State& filled, std::vector<schedule::StepPtr>& steps) {
  bool changed = SimplifySwizzles(filled, steps);
  changed = SimplifyBulkCopies(filled, steps) || changed;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!IsLayout(steps, i)) continue;
    // Layouts are given when all stages are made: the number is still the stage's.
    const int s = steps[i]->stage();
    const schedule::Stage& stage = filled.stage(s);
    const LayoutSteps now = {steps[i], steps[i + 1]};
    const bool is_swizzled = schedule::IsSwizzled(filled, s);
    const std::vector<int64_t> strides = ElementStrides(stage, now, is_swizzled);
    const std::vector<int>& order = schedule::As<LayoutStep>(*now[0])->order;
    std::vector<int> plain(order.size());
    std::iota(plain.begin(), plain.end(), 0);
    const auto simpler = [&]() -> LayoutSteps {
      for (const std::vector<int>& o : {plain, order}) {
        for (const Padding& padding : Paddings(filled, s)) {
          LayoutSteps other = StepsOf(s, o, padding);
          if (ElementStrides(stage, other, is_swizzled) == strides) return other;
        }
      }
      return now;
    }();
    if (simpler[0]->Hash() == now[0]->Hash() && simpler[1]->Hash() == now[1]->Hash()) continue;
    std::ranges::copy(simpler, steps.begin() + static_cast<std::ptrdiff_t>(i));
    changed = true;
  }
  return changed;
}

Status AnnotateLayouts(State& state, const Parameters& parameters, Rng& rng) {
  for (const int s : FetchedStages(state)) {
    for (const schedule::StepPtr& step : RandomLayout(state, s, parameters, rng))
      KILN_RETURN_IF_ERROR(state.Apply(step));
  }
  return OkStatus();
}

bool IsLayout(std::span<const schedule::StepPtr> steps, size_t i) {
  return i + 1 < steps.size() && schedule::Is<LayoutStep>(*steps[i]) &&
         schedule::Is<StorageAlignStep>(*steps[i + 1]) &&
         steps[i]->stage() == steps[i + 1]->stage();
}

}  // namespace kiln::search
