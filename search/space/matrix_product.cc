#include "search/space/matrix_product.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "base/numbers/integers.h"
#include "compiler/ir/traverse.h"
#include "compiler/schedule/steps/steps.h"
#include "compiler/target/math.h"
#include "search/space/matrix_rows.h"
#include "search/space/stage_view.h"

namespace kiln::search {
namespace {

using instructions::kThreadColumns;
using instructions::kThreadRows;
using ir::Expr;
using ir::MatrixUnitScope;
using ir::Op;
using schedule::State;

constexpr int64_t kVectorBytes = 16;

bool Reads(Expr load, int axis) {
  return std::ranges::any_of(load->args(), [&](Expr index) { return ir::UsesVar(index, axis); });
}

std::set<int> AxesOf(Expr index) {
  std::set<int> axes;
  ir::Visit(index, [&](Expr e) {
    if (e->op == Op::kVar) axes.insert(e->id);
  });
  return axes;
}

// The axes in the index of neighbours in memory.
std::set<int> NeighbourAxes(Expr load) {
  return load->num_args == 0 ? std::set<int>() : AxesOf(load->args().back());
}

// Of the axis, or of axis // group where there is a group, in a sum of products by constants. Nothing:
// the axis stands in it in another way.
std::optional<int64_t> CoefficientOf(Expr e, int axis, int64_t group = 0) {
  if (!ir::UsesVar(e, axis)) return 0;
  if (e->op == Op::kVar) return group == 0 ? std::optional<int64_t>(1) : std::nullopt;
  if (e->op == Op::kFloorDiv && group > 0 && e->arg(0)->op == Op::kVar)
    return e->arg(1)->is_const_int(group) ? std::optional<int64_t>(1) : std::nullopt;
  if (e->op == Op::kMul) {
    const Expr factor = e->arg(0)->is_const_int() ? e->arg(0) : e->arg(1);
    const std::optional<int64_t> of_rest =
        CoefficientOf(factor == e->arg(0) ? e->arg(1) : e->arg(0), axis, group);
    if (!factor->is_const_int() || !of_rest) return std::nullopt;
    return *of_rest * factor->int_value;
  }
  if (e->op != Op::kAdd) return std::nullopt;
  const std::optional<int64_t> a = CoefficientOf(e->arg(0), axis, group),
                               b = CoefficientOf(e->arg(1), axis, group);
  if (!a || !b) return std::nullopt;
  return *a + *b;
}

// c, where an index reads the axis as axis // c and in no other way.
std::optional<int64_t> GroupOf(Expr e, int axis) {
  const bool is_quotient = e->op == Op::kFloorDiv && e->arg(0)->op == Op::kVar &&
                           e->arg(0)->id == axis && e->arg(1)->is_const_int();
  if (is_quotient) return e->arg(1)->int_value;
  std::optional<int64_t> group;
  for (const Expr arg : e->args()) {
    if (!ir::UsesVar(arg, axis)) continue;
    const std::optional<int64_t> of_arg = GroupOf(arg, axis);
    if (!of_arg || (group && *group != *of_arg)) return std::nullopt;
    group = of_arg;
  }
  return group;
}

// Does it read the axis, and not only which group of it?
bool ReadsEach(Expr load, int axis) { return Reads(load, axis) && !GroupOf(load, axis); }

// Does an index say both where in the sum it is and in which batch?
bool IsPart(const MatrixProduct& product) {
  const auto is_part = [&](Expr index) {
    if (!ir::UsesVar(index, product.depth_axis)) return false;
    for (size_t axis = 0; axis < product.axes.size(); ++axis) {
      if (product.axes[axis] == MatrixAxis::kBatch && ir::UsesVar(index, static_cast<int>(axis)))
        return true;
    }
    return false;
  };
  return std::ranges::any_of(product.first->args(), is_part) ||
         std::ranges::any_of(product.second->args(), is_part);
}

// The axis that numbers groups. False: there are several.
bool FindGroups(MatrixProduct& product) {
  for (int axis = 0; axis < static_cast<int>(product.axes.size()); ++axis) {
    const MatrixAxis kind = product.axes[static_cast<size_t>(axis)];
    if (kind == MatrixAxis::kBatch) continue;
    const Expr other = kind == MatrixAxis::kRow ? product.second : product.first;
    const std::optional<int64_t> size = GroupOf(other, axis);
    if (!size) continue;
    if (product.group_axis >= 0) return false;
    product.group_axis = axis;
    product.group_size = *size;
  }
  return true;
}

// Returns the product that one of the operator's sums is, if it has so many rows.
std::optional<MatrixProduct> ProductOfSum(const dag::Operator& op, int output, int64_t least_rows) {
  const std::optional<instructions::MatrixFactors> factors =
      instructions::MatrixFactorsOf(op.body(output));
  if (!factors || op.type(output) != factors->unit->sum) return std::nullopt;
  Expr first = factors->a, second = factors->b;
  const int spatial = static_cast<int>(op.axes().size());
  // The second one is that of the columns.
  if (ReadsEach(first, spatial - 1)) std::swap(first, second);
  MatrixProduct product = {
      .unit = factors->unit, .column_axis = spatial - 1, .first = first, .second = second};
  int64_t rows = 1;
  for (int axis = 0; axis < spatial; ++axis) {
    const bool in_first = ReadsEach(first, axis), in_second = ReadsEach(second, axis);
    product.axes.push_back(in_first == in_second ? MatrixAxis::kBatch
                           : in_first            ? MatrixAxis::kRow
                                                 : MatrixAxis::kColumn);
    if (product.axes.back() == MatrixAxis::kRow) rows *= op.axes()[axis].extent;
  }
  if (product.axes.back() != MatrixAxis::kColumn || rows < least_rows ||
      op.axes().back().extent < kThreadColumns * product.columns_of_thread)
    return std::nullopt;
  int64_t longest = 0;
  for (int axis = 0; axis < static_cast<int>(op.reduce_axes().size()); ++axis) {
    const int64_t extent = op.reduce_axes()[axis].extent;
    const int loop = spatial + axis;
    if (!MovesByOne(first, loop) || !MovesByOne(second, loop) || extent <= longest) continue;
    longest = extent;
    product.depth_axis = loop;
  }
  if (longest < product.unit->depth() / 2) return std::nullopt;
  if (!FindGroups(product)) return std::nullopt;
  product.is_part = product.group_axis >= 0 || IsPart(product);
  if (product.is_part && longest % product.unit->depth() != 0) return std::nullopt;
  // Bytes come in pairs of neighbours, which belong to one thread.
  if (product.unit->factor.bytes() == 1) {
    if (!product.IsAlongDepth(first)) product.rows_of_thread *= 2;
    if (!product.IsAlongDepth(second)) product.columns_of_thread *= 2;
  }
  return product;
}

std::optional<MatrixProduct> ProductInAnyOrder(const dag::Operator& op, int64_t least_rows) {
  if (op.is_placeholder() || op.reduction().kind != dag::Combiner::kSum || op.axes().size() < 2)
    return std::nullopt;
  std::optional<MatrixProduct> product = ProductOfSum(op, 0, least_rows);
  std::vector<Expr> others;
  for (int output = 1; product && output < op.num_outputs(); ++output) {
    const std::optional<MatrixProduct> other = ProductOfSum(op, output, least_rows);
    if (!other || other->first != product->first || !AreAlike(*product, *other))
      return std::nullopt;
    others.push_back(other->second);
  }
  if (product) product->others = std::move(others);
  return product;
}

std::optional<MatrixProduct> ReadableProduct(const dag::Operator& op, int64_t least_rows) {
  std::optional<MatrixProduct> product = ProductInAnyOrder(op, least_rows);
  if (!product || !product->IsReadable(product->first)) return std::nullopt;
  const auto is_readable = [](const MatrixProduct& sum) { return sum.IsReadable(sum.second); };
  return std::ranges::all_of(product->Sums(), is_readable) ? product : std::nullopt;
}

bool IsSecondComputed(const State& state, int s, const MatrixProduct& product) {
  const int factor = state.dag()->node(s).inputs[product.second->id].op;
  return state.attach(factor).kind == schedule::Attach::kInlined;
}

}  // namespace

std::optional<MatrixProduct> MatrixProductInAnyOrder(const dag::Operator& op) {
  return ProductInAnyOrder(op, kThreadRows);
}

std::optional<MatrixProduct> MatrixProductOf(const dag::Operator& op) {
  return ReadableProduct(op, kThreadRows);
}

std::optional<MatrixProduct> MatrixProductOf(const State& state, int s) {
  const dag::Operator& op = *state.stage(s).op;
  if (std::optional<MatrixProduct> product = MatrixProductOf(op)) return product;
  std::optional<MatrixProduct> product = ReadableProduct(op, 1);
  return product && IsSecondComputed(state, s, *product) ? product : std::nullopt;
}

std::vector<MatrixProduct> MatrixProduct::Sums() const {
  std::vector<MatrixProduct> sums = {*this};
  sums[0].others.clear();
  for (const Expr other : others) {
    sums.push_back(sums[0]);
    sums.back().second = other;
  }
  return sums;
}

std::optional<MatrixProduct> ExchangedForWarpgroups(const MatrixProduct& product) {
  const auto count = [&](MatrixAxis axis) { return std::ranges::count(product.axes, axis); };
  const bool may_be = product.is_computed ? !product.IsAlongDepth(product.second)
                                          : IsTransposedForWarpgroups(product);
  if (!may_be || !product.IsAlongDepth(product.first) || !product.others.empty() ||
      product.group_axis >= 0 || count(MatrixAxis::kRow) != 1 || count(MatrixAxis::kColumn) != 1)
    return std::nullopt;
  MatrixProduct exchanged = product;
  std::swap(exchanged.first, exchanged.second);
  std::swap(exchanged.rows_of_thread, exchanged.columns_of_thread);
  exchanged.columns_of_thread = 2;
  for (size_t axis = 0; axis < product.axes.size(); ++axis) {
    if (product.axes[axis] == MatrixAxis::kBatch) continue;
    const bool is_row = product.axes[axis] == MatrixAxis::kRow;
    exchanged.axes[axis] = is_row ? MatrixAxis::kColumn : MatrixAxis::kRow;
    if (is_row) exchanged.column_axis = static_cast<int>(axis);
  }
  return exchanged;
}

bool MatrixProduct::IsReadable(Expr load) const {
  if (IsAlongDepth(load)) return true;
  if (load == second) return NeighbourAxes(load) == std::set{column_axis};
  const auto is_row = [](MatrixAxis axis) { return axis == MatrixAxis::kRow; };
  if (std::ranges::count_if(axes, is_row) != 1) return false;
  const auto only_row = std::ranges::find_if(axes, is_row) - axes.begin();
  return NeighbourAxes(load) == std::set{static_cast<int>(only_row)};
}

bool MatrixProduct::IsAlongDepth(Expr load) const {
  return load->num_args > 0 && MovesAlongDepth(load->args().back(), load->type.bytes());
}

bool MatrixProduct::MovesAlongDepth(Expr index, int64_t bytes) const {
  const std::set<int> axes_of_index = AxesOf(index);
  if (!axes_of_index.contains(depth_axis)) return false;
  // Which part of the sum it is, is the same for all of a tile: a part begins at a whole vector.
  const int64_t vector = kVectorBytes / bytes;
  const auto spatial = static_cast<int>(axes.size());
  return std::ranges::all_of(axes_of_index, [&](int axis) {
    const std::optional<int64_t> coefficient = CoefficientOf(index, axis);
    if (axis == depth_axis) return coefficient == 1;
    if (axis == group_axis) {
      const std::optional<int64_t> of_group = CoefficientOf(index, axis, group_size);
      return of_group && *of_group % vector == 0;
    }
    const bool is_part = axis >= spatial || axes[static_cast<size_t>(axis)] == MatrixAxis::kBatch;
    return is_part && coefficient && *coefficient % vector == 0;
  });
}

std::span<const MatrixAxis> MatrixProduct::TiledAxes(size_t tiled) const {
  if (tiled > axes.size()) return {};
  const std::span all(axes);
  const auto parts = all.first(axes.size() - tiled);
  const bool are_batches =
      std::ranges::all_of(parts, [](MatrixAxis axis) { return axis == MatrixAxis::kBatch; });
  return are_batches ? all.last(tiled) : std::span<const MatrixAxis>();
}

MatrixProduct WithComputedFactor(const State& state, int s, MatrixProduct product,
                                 int64_t columns) {
  product.is_computed = IsSecondComputed(state, s, product);
  if (!product.is_computed) return product;
  product.columns_of_thread = columns;
  // Behind the end of the sum are values that are computed of zeros, not zeros.
  product.is_part = true;
  return product;
}

bool HasComputedFactor(const State& state, int s) {
  const std::vector<int>& producers = state.dag()->producers(s);
  return state.stage(s).hints[ir::Hint::kMatrixUnit] != 0 &&
         std::ranges::any_of(producers, [&](int producer) {
           return state.attach(producer).kind == schedule::Attach::kInlined;
         });
}

bool AreAlike(const MatrixProduct& a, const MatrixProduct& b) {
  return a.unit == b.unit && a.axes == b.axes && a.column_axis == b.column_axis &&
         a.depth_axis == b.depth_axis && a.group_axis == b.group_axis &&
         a.group_size == b.group_size && a.others.size() == b.others.size() &&
         a.is_part == b.is_part && a.is_computed == b.is_computed &&
         a.IsAlongDepth(a.first) == b.IsAlongDepth(b.first) &&
         a.IsAlongDepth(a.second) == b.IsAlongDepth(b.second) &&
         IsForWarpgroups(a) == IsForWarpgroups(b) && HasMovingColumns(a) == HasMovingColumns(b);
}

bool HasMatrixUnits(const target::Target& target) {
  return std::ranges::any_of(
      instructions::MatrixUnits(),
      [&](const instructions::MatrixUnit& unit) { return target.GpuArch() >= unit.first_arch; });
}

bool HasMatrixUnit(const target::Target& target, const instructions::MatrixUnit& unit) {
  return target.GpuArch() >= unit.first_arch && (!unit.rounds || target::AllowsTf32(target));
}

bool IsForWarpgroups(const MatrixProduct& product) {
  // A window that moves by two fetches what is between its columns.
  if (product.is_computed && !product.IsFirstComputed())
    return ExchangedForWarpgroups(product).has_value();
  if (!MovesByOne(product.second, product.column_axis)) return false;
  const int64_t bytes = product.unit->factor.bytes();
  const bool is_first = product.IsAlongDepth(product.first),
             is_second = product.IsAlongDepth(product.second);
  return bytes == 2 || (bytes == 4 ? is_first || is_second : is_first && is_second);
}

bool IsTransposedForWarpgroups(const MatrixProduct& product) {
  return product.unit->factor.bytes() == 4 && !product.IsAlongDepth(product.second);
}

bool IsReadAlongDepth(const MatrixProduct& product) {
  return product.IsAlongDepth(product.second) || IsTransposedForWarpgroups(product);
}

int DepthDimension(const MatrixProduct& product, Expr load) {
  for (int d = 0; d < static_cast<int>(load->num_args); ++d) {
    if (ir::UsesVar(load->arg(static_cast<size_t>(d)), product.depth_axis)) return d;
  }
  return -1;
}

bool MovesByOne(Expr load, int axis) {
  return Reads(load, axis) && std::ranges::all_of(load->args(), [&](Expr index) {
           return !ir::UsesVar(index, axis) || CoefficientOf(index, axis) == 1;
         });
}

std::optional<int> DimensionOf(Expr load, int axis) {
  std::optional<int> dimension;
  for (int d = 0; d < static_cast<int>(load->num_args); ++d) {
    if (!ir::UsesVar(load->arg(static_cast<size_t>(d)), axis)) continue;
    if (dimension) return std::nullopt;
    dimension = d;
  }
  return dimension;
}

std::optional<int> ColumnDimension(const MatrixProduct& product) {
  return DimensionOf(product.second, product.column_axis);
}

std::vector<int> ColumnsBeforeDepth(const MatrixProduct& product) {
  const int depth = DepthDimension(product, product.second);
  const std::optional<int> column = ColumnDimension(product);
  std::vector<int> order;
  for (int d = 0; d < static_cast<int>(product.second->num_args); ++d) {
    if (d != depth && d != column) order.push_back(d);
  }
  if (column && *column != depth) order.push_back(*column);
  order.push_back(depth);
  return order;
}

bool HasMovingColumns(const MatrixProduct& product) {
  const std::optional<int> d = ColumnDimension(product);
  return !d || product.second->arg(static_cast<size_t>(*d))->op != Op::kVar;
}

bool HasWarpgroupUnits(const target::Target& target) {
  return target.is_gpu() && target.GpuArch() == ir::kWarpgroupArch;
}

bool HasMatrixHint(std::span<const schedule::StepPtr> steps) {
  return std::ranges::any_of(steps, [](const schedule::StepPtr& step) {
    return schedule::HintOf(*step, ir::Hint::kMatrixUnit).value_or(0) != 0;
  });
}

std::vector<int> ProductsOfMatrixUnits(const State& state) {
  std::vector<int> stages;
  for (int s = 0; s < state.num_stages(); ++s) {
    if (state.stage(s).hints[ir::Hint::kMatrixUnit] != 0) stages.push_back(s);
  }
  return stages;
}

std::optional<int> MatrixStageOf(const State& state) {
  const std::vector<int> stages = ProductsOfMatrixUnits(state);
  return stages.empty() ? std::nullopt : std::optional(stages.front());
}

}  // namespace kiln::search
