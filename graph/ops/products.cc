// Matrix products.
#include <algorithm>

#include "graph/op.h"

namespace kiln::graph {
namespace {

using dag::TensorRef;
using dag::Value;
using dag::Vars;

struct Operand {
  std::vector<int64_t> batch;
  int64_t rows, columns;
};

// The last two axes are the matrix. A vector is a row on the left, a column on the right.
Operand ReadOperand(const std::vector<int64_t>& shape, bool left) {
  if (shape.size() == 1) return left ? Operand{{}, 1, shape[0]} : Operand{{}, shape[0], 1};
  return {{shape.begin(), shape.end() - 2}, shape[shape.size() - 2], shape.back()};
}

// Returns the element (row, column) of the operand's matrix that belongs to `batch`.
Value ElementAt(const TensorRef& x, const Operand& operand, Vars batch, const Value& row,
                const Value& column, bool left) {
  if (x.rank() == 1) return x(left ? column : row);
  std::vector<Value> index;
  const Vars own = batch.last(operand.batch.size());
  for (size_t d = 0; d < operand.batch.size(); ++d)
    index.push_back(operand.batch[d] == 1 ? Value(0) : own[d]);
  index.push_back(row);
  index.push_back(column);
  return x.At(index);
}

// Computes numpy's matmul. With transpose_b the last two axes of the second operand are [columns,
// rows], like the weights of a fully connected layer.
std::vector<TensorRef> Matmul(NodeWriter& w) {
  const TensorRef &x = w.input(0), &y = w.input(1);
  if (x.rank() == 0 || y.rank() == 0) {
    w.Fail("inputs of {} and {} dimensions, expected at least 1", x.rank(), y.rank());
    return {x};
  }
  const bool transposed = w.Int("transpose_b") != 0 && y.rank() > 1;
  const Operand a = ReadOperand(x.shape(), true);
  Operand b = ReadOperand(y.shape(), false);
  if (transposed) std::swap(b.rows, b.columns);
  if (a.columns != b.rows || x.type() != y.type()) {
    w.Fail("{}[{}] and {}[{}] can't be multiplied: sums over {} and {}", ir::TypeName(x.type()),
           fmt::join(x.shape(), ", "), ir::TypeName(y.type()), fmt::join(y.shape(), ", "),
           a.columns, b.rows);
    return {x};
  }
  const size_t batch_rank = std::max(a.batch.size(), b.batch.size());
  std::vector<int64_t> shape(batch_rank, 1);
  for (const std::vector<int64_t>& batch : {a.batch, b.batch}) {
    for (size_t d = 0; d < batch.size(); ++d) {
      int64_t& extent = shape[batch_rank - batch.size() + d];
      if (extent != batch[d] && extent != 1 && batch[d] != 1) {
        w.Fail("batches [{}] and [{}] do not broadcast", fmt::join(a.batch, ", "),
               fmt::join(b.batch, ", "));
        return {x};
      }
      extent = std::max(extent, batch[d]);
    }
  }
  std::vector<dag::Axis> axes;
  if (batch_rank == 1) axes = {{"b", shape[0]}};
  if (batch_rank > 1) axes = dag::NumberedAxes("b", shape);
  const bool has_row = x.rank() > 1, has_column = y.rank() > 1;
  if (has_row) axes.push_back({"i", a.rows});
  if (has_column) axes.push_back({"j", b.columns});
  const dag::OpContext c = w.Context(x.type());
  const std::string_view name = batch_rank > 0 ? "T_batch_matmul_N" : "T_matmul_N";
  TensorRef product = w.b.Reduce(fmt::format("{}{}", name, transposed ? 'T' : 'N'), axes,
                                 {{"k", a.columns}}, dag::Combiner::kSum,
                                 [&](Vars v) {
                                   const Vars batch = v.first(batch_rank);
                                   const Value& k = v.back();
                                   const Value row = has_row ? v[batch_rank] : Value(0);
                                   const Value column = has_column ? v[v.size() - 2] : Value(0);
                                   return c.Widen(ElementAt(x, a, batch, row, k, true)) *
                                          c.Widen(ElementAt(y, b, batch, transposed ? column : k,
                                                            transposed ? k : column, false));
                                 },
                                 {.layout_free_placeholders = {y.name()}});
  return {w.Converted(product, c.result_type)};
}

}  // namespace

std::vector<OpDef> ProductOps() {
  return {{.name = "matmul",
           .family = "matrix products",
           .doc = "numpy's matmul: vectors, matrices, batches of them that broadcast",
           .pattern = OpPattern::kProduct,
           .min_inputs = 2,
           .max_inputs = 2,
           .attributes = {{.name = "transpose_b",
                           .kind = AttributeKind::kInt,
                           .doc = "1: the second operand is [..., columns, rows]",
                           .default_value = int64_t{0}}},
           .write = Matmul}};
}

}  // namespace kiln::graph
