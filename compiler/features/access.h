// The accesses of one store to one buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "compiler/features/index_values.h"
#include "compiler/ir/program.h"

namespace kiln::features {

// Loops around a store, and which of them end up as one straight piece of code.
struct Nest {
  absl::InlinedVector<EnclosingLoop, 24> loops;  // from outermost to innermost
  int first_unrolled = 0;                        // unrolled and vectorized from here on
  int first_of_body = 0;  // the same, with short loops that any compiler unrolls
  int depth() const { return static_cast<int>(loops.size()); }
};

bool IsBound(ir::LoopKind kind);   // to blocks or threads
bool IsThread(ir::LoopKind kind);  // to threads

struct Access {
  int32_t slot = -1;
  bool reads = false, writes = false;
  uint64_t loops = 0;  // as IndexValue::loops, of any index
  // Per level: elements touched while the loops from that level inward run; bytes of the cache
  // lines they lie in.
  absl::InlinedVector<double, 24> region, line_bytes;
  absl::InlinedVector<int64_t, 24> strides;  // per loop, elements; the smallest one that is not 0
  double accesses = 0;                       // instructions of one thread, reads and writes
  double body_elements = 0;
  double vector_bytes = 0;
  double sectors = 0, wavefronts = 0;                // of one request of a warp
  double thread_sectors = 0, thread_wavefronts = 0;  // accesses times the above
  double unrolled_run = 0;
  double stack_trips = 0;

  bool depends_on(int loop) const { return (loops >> (loop < 63 ? loop : 63)) & 1; }
};

// Of what the lanes of a CPU's vector read: up to this stride as whole vectors and shuffles
// (codegen/llvm).
inline constexpr int64_t kMostShuffledStride = 4;

// The innermost loop around the store in which another statement writes the buffer. An element read
// inside that loop cannot be kept in a register from one iteration to the next. -1: there is none.
using RewrittenIn = absl::FunctionRef<int(int32_t slot)>;

// The accesses of a store: what it writes first, then what its value reads, in the order found.
// `values` has begun with the store's nest; `active` says which lanes of a warp get to the store;
// cpu_vector_bytes: of a vector register, 0 for a GPU.
std::vector<Access> FindAccesses(const ir::Program& program, ir::Stmt store, const Nest& nest,
                                 int cpu_vector_bytes, uint32_t active, RewrittenIn rewritten_in,
                                 IndexValues& values);

}  // namespace kiln::features
