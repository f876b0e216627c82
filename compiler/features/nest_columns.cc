#include "compiler/features/nest_columns.h"

#include <algorithm>

namespace kiln::features {
namespace {

using ir::LoopKind;

// Returns 0 for inner, 1 for middle, 2 for outer, + 3 for reduction loops. -1: no such loop; 6:
// several kinds.
int PositionOf(const StoreFeatures& store, LoopKind kind) {
  int result = -1;
  for (int reduce = 0; reduce < 2; ++reduce) {
    int total = 0;
    for (int d = 0; d < store.nest.depth(); ++d) total += store.IsReduce(d) == (reduce == 1);
    int index = 0;
    for (int d = 0; d < store.nest.depth(); ++d) {
      if (store.IsReduce(d) != (reduce == 1)) continue;
      ++index;
      if (store.nest.loops[d].kind != kind) continue;
      const int position = 3 * reduce + (index == total ? 0 : index == 1 ? 2 : 1);
      result = result == -1 || result == position ? position : 6;
    }
  }
  return result;
}

void WriteLoops(const StoreFeatures& store, LoopKind kind, int first_column, Row row) {
  double count = 0, product = 1, length = 0;
  for (const EnclosingLoop& loop : store.nest.loops) {
    if (loop.kind != kind) continue;
    ++count;
    length = static_cast<double>(loop.extent);
    product *= length;
  }
  if (count > 0) {
    row.Set(first_column, count);
    row.Set(first_column + 1, product);
    row.Set(first_column + 2, length);
  }
  row.SetRaw(first_column + 3 + 1 + PositionOf(store, kind), 1);
}

void WriteLaunch(const KernelFeatures& record, const StoreFeatures& store, Row row) {
  if (!record.gpu) return;
  row.SetRaw(col::is_gpu, 1);
  for (int d = 0; d < 3; ++d) {
    const int64_t blocks = record.kernel.grid[d] * (d == 0 ? record.kernel.cluster : 1);
    row.Set(col::blockIdx_x_len + d, static_cast<double>(blocks));
    row.Set(col::threadIdx_x_len + d, static_cast<double>(record.kernel.block[d]));
  }
  double vthreads = 1;
  for (const EnclosingLoop& loop : store.nest.loops) {
    if (loop.kind == LoopKind::kVThread) vthreads *= static_cast<double>(loop.extent);
  }
  row.Set(col::vthread_len, vthreads);
}

// Writes the floating-point operations per byte of the touched regions, at ten points between the
// innermost loop and all loops.
void WriteCurve(const KernelFeatures& record, const StoreFeatures& store, Row row) {
  const int n = store.nest.depth();
  double ops = 0;
  for (int c = col::float_mad; c <= col::float_otherfunc; ++c)
    ops += (c == col::float_mad ? 2 : 1) * store.ops.of[static_cast<size_t>(c)];
  if (n == 0 || ops == 0) return;
  absl::InlinedVector<double, 24> compute(n), ratio(n);
  for (int p = 0; p < n; ++p) {
    const int d = n - 1 - p;
    ops *= static_cast<double>(store.nest.loops[d].extent);
    double bytes = 0;
    for (const Access& access : store.accesses)
      bytes += access.region[d] * record.ElementBytes(access);
    compute[p] = ops;
    ratio[p] = ops / bytes;
  }
  int p = 0;
  for (int i = 0; i < kNumCurve; ++i) {
    const double x = compute[n - 1] * (i + 1) / kNumCurve;
    while (p < n - 1 && compute[p] < x - 1e-4) ++p;
    double value = ratio[p];
    if (p > 0 && compute[p] > compute[p - 1]) {
      const double share = (x - compute[p - 1]) / (compute[p] - compute[p - 1]);
      value = ratio[p - 1] + std::min(1.0, share) * (ratio[p] - ratio[p - 1]);
    }
    row.Set(col::kCurve + i, value);
  }
}

void WriteNest(const KernelFeatures& record, const StoreFeatures& store, Row row) {
  const ir::Buffer& buffer = record.program.buffers[store.store->slot];
  const double outer = Product(store.nest, 0, store.alloc_depth);
  row.Set(col::alloc_size, static_cast<double>(buffer.bytes()));
  row.Set(col::alloc_prod, static_cast<double>(buffer.num_elements()) * outer);
  row.Set(col::alloc_outer_prod, outer);
  row.Set(col::alloc_inner_prod, store.trips / outer);
  row.Set(col::outer_prod, store.trips);
  row.Set(col::num_loops, store.nest.depth());
  row.Set(col::auto_unroll_max_step,
          record.program.stages[static_cast<size_t>(store.store->stage)].hints[ir::Hint::kUnroll]);
}

}  // namespace

void WriteNestColumns(const KernelFeatures& record, const StoreFeatures& store, Row row) {
  WriteLoops(store, LoopKind::kVectorized, col::vec_num, row);
  WriteLoops(store, LoopKind::kUnrolled, col::unroll_num, row);
  WriteLoops(store, LoopKind::kParallel, col::parallel_num, row);
  WriteLaunch(record, store, row);
  WriteCurve(record, store, row);
  WriteNest(record, store, row);
}

}  // namespace kiln::features
