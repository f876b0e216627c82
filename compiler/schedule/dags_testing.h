// Small and well-known computations for tests.
#pragma once

#include <cstdint>

#include "compiler/dag/dag.h"

namespace kiln::schedule {

// A, B, C[i,j] = sum_k A[i,k] * B[k,j], D = max(C, 0): stages 0 to 3.
dag::DagPtr MatmulRelu(int64_t m, int64_t n, int64_t k);
// A, B[i,j] = A[i,j] + 1, C[i,j] = B[i,j] * 2: stages 0 to 2.
dag::DagPtr TwoElementwise(int64_t m, int64_t n);
// A, S = reduction of A over its one or two axes (combined by `combiner`) into rank 0: stages 0 and
// 1.
dag::DagPtr ReduceAll(dag::Combiner combiner, int64_t m, int64_t n);
// A, S[i] = reduction of A over j and k.
dag::DagPtr ReduceRows(dag::Combiner combiner, int64_t m, int64_t n, int64_t k);
// A, S[i] = index and value of the greatest A[i,k].
dag::DagPtr ArgMaxRows(int64_t m, int64_t k);
// Extents of data, pad, weight, conv (NHWC, HWIO), bias, add, relu: stages 0 to 6. Without epilogue
// 0 to 3.
struct ConvShape {
  int64_t size, in_channels, out_channels, kernel, stride, padding;
};
dag::DagPtr Conv2d(const ConvShape& shape, bool epilogue);
// A, S[i] = sums of A[i,k] and of its squares, both outputs of one operator.
dag::DagPtr TwoSums(int64_t m, int64_t k);
// data, weight[n,k], dense, bias, add: stages 0 to 4.
dag::DagPtr Dense(int64_t m, int64_t n, int64_t k);
// data, max, exp, sum, norm: stages 0 to 4.
dag::DagPtr Softmax(int64_t m, int64_t n);
// Q[b,i,k], K[b,j,k], scores, max, exp, V[b,n,d], sum of values, sum, output: stages 0 to 8.
dag::DagPtr Attention(int64_t batch, int64_t rows, int64_t keys, int64_t size);
// data, sum over kernel windows, divided: stages 0 to 2.
dag::DagPtr AvgPool(int64_t size, int64_t channels);
// data, pad, max, bias, add, relu: stages 0 to 5.
dag::DagPtr MaxPool(int64_t size, int64_t channels);

}  // namespace kiln::schedule
