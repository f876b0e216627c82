// Determinants by elimination with the largest pivot of each column.
#include <numeric>

#include "base/numbers/integers.h"
#include "frontend/onnx/rules/families.h"

namespace kiln::frontend {
namespace {

// An eliminated column is some ten nodes.
constexpr int64_t kMaxColumns = 64;

// Matrices [batch, size, size] and the product of the pivots so far [batch, 1].
struct Elimination {
  Tensor rows;
  Tensor product;
};

// Removes the first column and the row of its largest element. That row changes places with the
// first row, which turns the sign.
Elimination WithoutColumn(NodeContext& n, const Elimination& e) {
  const int64_t batch = e.rows.dim(0), size = e.rows.dim(1);
  const Tensor column = n.Reshape(n.SliceAxis(e.rows, 2, 0, 1), {batch, size});
  const Tensor place = n.Emit("arg_max", {n.Emit("abs", {column})}, {{"axis", int64_t{1}}});
  const Tensor ids = n.BroadcastTo(n.Reshape(place, {batch, 1, 1}), {batch, 1, size});
  const Tensor pivot_row = n.Emit("gather_elements", {e.rows, ids}, {{"axis", int64_t{1}}});
  const Tensor pivot = n.Reshape(n.SliceAxis(pivot_row, 2, 0, 1), {batch, 1});
  const Tensor turned = n.Emit("equal", {place, n.Constant({}, {0})});
  const Tensor sign = n.Where(turned, n.ScalarLike(pivot, 1), n.ScalarLike(pivot, -1));
  const Tensor product = n.Mul(n.Mul(e.product, pivot), sign);
  if (n.failed() || size == 1) return {e.rows, product};
  Shape others(static_cast<size_t>(size - 1));
  std::iota(others.begin(), others.end(), 1);
  const Tensor is_pivot =
      n.Emit("equal", {n.Constant({1, size - 1, 1}, others), n.Reshape(place, {batch, 1, 1})});
  const Tensor rest =
      n.Where(is_pivot, n.SliceAxis(e.rows, 1, 0, 1), n.SliceAxis(e.rows, 1, 1, size - 1));
  // A pivot of 0 makes the product 0, whatever follows.
  const Tensor is_zero = n.Emit("equal", {pivot, n.ScalarLike(pivot, 0)});
  const Tensor divisor = n.Reshape(n.Where(is_zero, n.ScalarLike(pivot, 1), pivot), {batch, 1, 1});
  const Tensor factors = n.Div(n.SliceAxis(rest, 2, 0, 1), divisor);
  const Tensor taken = n.Mul(factors, n.SliceAxis(pivot_row, 2, 1, size - 1));
  return {n.Sub(n.SliceAxis(rest, 2, 1, size - 1), taken), product};
}

void Determinant(NodeContext& n) {
  n.RequireFloat(0);
  n.RequireRank(0, 2);
  if (n.failed()) return;
  const Tensor& x = n.input(0);
  const int64_t size = x.dim(x.rank() - 1);
  if (x.dim(x.rank() - 2) != size) return n.Invalid("{} are no square matrices", TypeText(x.type));
  if (size > kMaxColumns)
    return n.Unsupported("matrices of {} columns: each is some nodes, up to {}", size, kMaxColumns);
  const Shape outer(x.shape().begin(), x.shape().end() - 2);
  const int64_t batch = ProductOfCounts(outer);
  const ir::Type type = x.element() == ir::kFloat64 ? ir::kFloat64 : ir::kFloat32;
  Elimination e{n.Reshape(n.Cast(x, type), {batch, size, size}),
                n.BroadcastTo(n.Scalar(type, 1), {batch, 1})};
  for (int64_t k = 0; k < size && !n.failed(); ++k) e = WithoutColumn(n, e);
  n.SetOutput(n.Reshape(n.Cast(e.product, x.element()), outer));
}

}  // namespace

std::vector<Rule> DeterminantRules() { return {{"Det", Determinant}}; }

}  // namespace kiln::frontend
