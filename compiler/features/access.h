// The accesses of one store to one buffer.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "compiler/features/index_values.h"
#include "compiler/ir/program.h"

namespace kiln::features {

// The loops around a store, and the number of those that become straight-line code.
struct Nest {
  // From outermost to innermost.
  absl::InlinedVector<EnclosingLoop, 24> loops;
  // Loops from here on are unrolled and vectorized.
  int first_unrolled = 0;
  // Like first_unrolled, but includes short loops that any compiler unrolls.
  int first_of_body = 0;
  int depth() const { return static_cast<int>(loops.size()); }
};

// True for loops that are bound to blocks or threads.
bool IsBound(ir::LoopKind kind);
// True for loops that are bound to threads.
bool IsThread(ir::LoopKind kind);

struct Access {
  int32_t slot = -1;
  bool reads = false, writes = false;
  // Bits as in IndexValue::loops, for all indices together.
  uint64_t loops = 0;
  // Indexed by level: the elements that are touched while the loops from that level inward run, and
  // the bytes of the cache lines in which these elements lie.
  absl::InlinedVector<double, 24> region, line_bytes;
  // Indexed by loop, in elements: the smallest stride that is not 0.
  absl::InlinedVector<int64_t, 24> strides;
  // Number of instructions of one thread that read or write.
  double accesses = 0;
  double body_elements = 0;
  double vector_bytes = 0;
  // Numbers for one request of a warp.
  double sectors = 0, wavefronts = 0;
  // Number of accesses times sectors or wavefronts.
  double thread_sectors = 0, thread_wavefronts = 0;
  double unrolled_run = 0;
  double stack_trips = 0;

  bool depends_on(int loop) const { return (loops >> (loop < 63 ? loop : 63)) & 1; }
};

// The lanes of a CPU's vector with a stride up to this are read as whole vectors and shuffles
// (codegen/llvm).
inline constexpr int64_t kMaxShuffledStride = 4;

// Returns the innermost loop around the store in which another statement writes the buffer. An
// element read inside that loop cannot be kept in a register from one iteration to the next. -1:
// there is none.
using RewrittenIn = absl::FunctionRef<int(int32_t slot)>;

// Returns the accesses of a store: first the one that it writes, then those that its value reads,
// in the order in which they are found. `loaded` are loads that stand in registers already, which
// are no accesses. `values` has begun with the store's nest. `active` marks the lanes of a warp
// that execute the store. cpu_vector_bytes is the size of a vector register, 0 for a GPU.
std::vector<Access> FindAccesses(const ir::Program& program, ir::Stmt store, const Nest& nest,
                                 std::span<const ir::Expr> loaded, int cpu_vector_bytes,
                                 uint32_t active, RewrittenIn rewritten_in, IndexValues& values);

}  // namespace kiln::features
