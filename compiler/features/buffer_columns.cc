#include "compiler/features/buffer_columns.h"

#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"

namespace kiln::features {
namespace {

using ir::Scope;

enum ReuseType { kLoopMultipleRead, kSerialMultipleReadWrite, kNoReuse };
struct Reuse {
  ReuseType type = kNoReuse;
  double distance_iterations = 0, distance_bytes = 0, count = 0;
};

Reuse ReuseOf(const KernelFeatures& record, const StoreFeatures& store, const Access& access) {
  double iterations = 1, bytes = 0;
  for (const Access& other : store.accesses) bytes += record.ElementBytes(other);
  for (int d = store.nest.depth(); d-- > 0;) {
    const LoopFeatures& loop = record.loops[static_cast<size_t>(store.loop_ids[d])];
    const auto extent = static_cast<double>(loop.loop.extent);
    if (!access.depends_on(d)) return {kLoopMultipleRead, iterations, bytes, extent};
    iterations *= extent;
    bytes = loop.bytes;
    for (const BufferUse& use : loop.uses) {
      if (use.slot == access.slot && use.count > 1) {
        return {kSerialMultipleReadWrite, use.region / extent, use.bytes / extent,
                static_cast<double>(use.count - 1)};
      }
    }
  }
  return {};
}

// Returns the cache lines that all iterations touch, one after the other. Sets the stride of the
// innermost loop.
double LinesOf(const KernelFeatures& record, const StoreFeatures& store, const Access& access,
               double& stride) {
  double ratio = 1;
  stride = 0;
  int d = store.nest.depth();
  while (d-- > 0 && access.strides[d] == 0)
    ratio *= static_cast<double>(store.nest.loops[d].extent);
  if (d == store.nest.depth() - 1 && d >= 0) stride = static_cast<double>(access.strides[d]);
  const double step =
      d < 0 ? 1 : static_cast<double>(access.strides[d]) * record.ElementBytes(access);
  const double lines =
      store.trips / ratio * std::min(1.0, step / std::max(1, record.hardware.cache_line_bytes));
  return std::max(1.0, lines);
}

void WriteBuffer(const KernelFeatures& record, const StoreFeatures& store, const Access& access,
                 double lines, double stride, int at, Row row) {
  const double bytes = store.trips * record.ElementBytes(access);
  const double unique_bytes = access.region[0] * record.ElementBytes(access);
  const double unique_lines = std::max(1.0, access.line_bytes[0] / 64);
  const Reuse reuse = ReuseOf(record, store, access);
  const double share = reuse.count > 0.5 ? 1 / reuse.count : 2;
  row.SetRaw(at + (access.reads ? access.writes ? col::acc_type_kReadWrite : col::acc_type_kRead
                                : col::acc_type_kWrite),
             1);
  row.Set(at + col::bytes, bytes);
  row.Set(at + col::unique_bytes, unique_bytes);
  row.Set(at + col::lines, lines);
  row.Set(at + col::unique_lines, unique_lines);
  row.SetRaw(at + col::reuse_type_kLoopMultipleRead + reuse.type, 1);
  row.Set(at + col::reuse_dis_iter, reuse.distance_iterations);
  row.Set(at + col::reuse_dis_bytes, reuse.distance_bytes);
  row.Set(at + col::reuse_ct, reuse.count);
  row.Set(at + col::bytes_d_reuse_ct, bytes * share);
  row.Set(at + col::unique_bytes_d_reuse_ct, unique_bytes * share);
  row.Set(at + col::lines_d_reuse_ct, lines * share);
  row.Set(at + col::unique_lines_d_reuse_ct, unique_lines * share);
  row.Set(at + col::stride, stride);
}

void WriteAccess(const Access& access, Scope scope, int at, Row row) {
  row.SetRaw(at + (scope < Scope::kShared   ? col::is_global
                   : scope == Scope::kLocal ? col::is_local
                                            : col::is_shared),
             1);
  row.Set(at + col::accesses, access.accesses);
  row.Set(at + col::body_elements, access.body_elements);
  row.Set(at + col::vector_bytes, access.vector_bytes);
  row.Set(at + col::sectors, access.sectors);
  row.Set(at + col::wavefronts, access.wavefronts);
  row.Set(at + col::unrolled_run, access.unrolled_run);
}

}  // namespace

void WriteBufferColumns(const KernelFeatures& record, const StoreFeatures& store, Row row) {
  struct Slot {
    const Access* access;
    double lines, bytes, stride;
  };
  absl::InlinedVector<Slot, 8> slots;
  for (const Access& access : store.accesses) {
    Slot slot{&access, 0, store.trips * record.ElementBytes(access), 0};
    slot.lines = LinesOf(record, store, access, slot.stride);
    slots.push_back(slot);
  }
  std::stable_sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) {
    return std::pair(a.lines, a.bytes) > std::pair(b.lines, b.bytes);
  });
  const int count = std::min(kNumSlots, static_cast<int>(slots.size()));
  for (int i = 0; i < count; ++i) {
    const Access& access = *slots[i].access;
    WriteBuffer(record, store, access, slots[i].lines, slots[i].stride,
                col::kBuffers + i * col::kNumBuffer, row);
    WriteAccess(access, record.ScopeOf(access), col::kAccesses + i * col::kNumAccess, row);
  }
}

}  // namespace kiln::features
