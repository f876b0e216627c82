// Matrix products.
#include "frontend/onnx/rule.h"

namespace kiln::frontend {
namespace {

Tensor Scaled(NodeContext& n, const Tensor& x, double scale) {
  return scale == 1 ? x : n.Mul(x, n.ScalarLike(x, scale));
}

void MatMul(NodeContext& n) {
  n.RequireRank(0, 1);
  n.RequireRank(1, 1);
  n.SetOutput(n.Emit("matmul", {n.input(0), n.input(1)}));
}

// Computes alpha A B + beta C. Both factors may be transposed.
void Gemm(NodeContext& n) {
  n.RequireRank(0, 2, 2);
  n.RequireRank(1, 2, 2);
  if (n.failed()) return;
  const bool transposes_a = n.Int("transA", 0) != 0, transposes_b = n.Int("transB", 0) != 0;
  const Tensor a = transposes_a ? n.Transpose(n.input(0), {1, 0}) : n.input(0);
  Tensor y = n.Emit("matmul", {a, n.input(1)}, {{"transpose_b", int64_t{transposes_b}}});
  y = Scaled(n, y, n.Float("alpha", 1));
  const double beta = n.Float("beta", 1);
  if (n.has_input(2) && beta != 0) y = n.Add(y, Scaled(n, n.input(2), beta));
  n.SetOutput(y);
}

}  // namespace

std::vector<Rule> ProductRules() { return {{"MatMul", MatMul}, {"Gemm", Gemm}}; }

}  // namespace kiln::frontend
