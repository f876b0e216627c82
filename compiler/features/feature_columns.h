// The columns of a feature row, in order: first the 164 of Ansor under the names that TVM gives
// them (TVM v0.14, src/auto_scheduler/feature.cc), then Kiln's own. Columns are scaled by Slog
// unless their comment says "raw".
//
// Columns of one store are `row.*`; those of one of its (up to five) buffers are `B0.*` .. `B4.*`.
// Columns of the store's kernel, which are the same in all rows of the kernel, are `kernel.*`, and
// those of the program `program.*`.
#pragma once

#include <span>
#include <string_view>

namespace kiln::features {

inline constexpr int kNumSlots = 5;
inline constexpr int kNumCurve = 10;

// Operations (each times the iterations of the store), annotated loops, launch.
// clang-format off
#define KILN_FEATURE_OPERATIONS(X) \
  X(float_mad)                     \
  X(float_addsub)                  \
  X(float_mul)                     \
  X(float_divmod)                  \
  X(float_cmp)                     \
  X(float_mathfunc)                \
  X(float_otherfunc)               \
  X(int_mad)                       \
  X(int_addsub)                    \
  X(int_mul)                       \
  X(int_divmod)                    \
  X(int_cmp)                       \
  X(int_mathfunc)                  \
  X(int_otherfunc)                 \
  X(bool_op)                       \
  X(select_op)
// One-hot positions are raw.
#define KILN_FEATURE_POSITIONS(X, p) \
  X(p##_num)                         \
  X(p##_prod)                        \
  X(p##_len)                         \
  X(p##_type_kPosNone)               \
  X(p##_type_kPosInnerSpatial)       \
  X(p##_type_kPosMiddleSpatial)      \
  X(p##_type_kPosOuterSpatial)       \
  X(p##_type_kPosInnerReduce)        \
  X(p##_type_kPosMiddleReduce)       \
  X(p##_type_kPosOuterReduce)        \
  X(p##_type_kPosMixed)
// is_gpu is raw.
#define KILN_FEATURE_LAUNCH(X) \
  X(is_gpu)                    \
  X(blockIdx_x_len)            \
  X(blockIdx_y_len)            \
  X(blockIdx_z_len)            \
  X(threadIdx_x_len)           \
  X(threadIdx_y_len)           \
  X(threadIdx_z_len)           \
  X(vthread_len)
// Columns of each buffer slot. The one-hot types are raw.
#define KILN_FEATURE_BUFFER(X)           \
  X(acc_type_kRead)                      \
  X(acc_type_kWrite)                     \
  X(acc_type_kReadWrite)                 \
  X(bytes)                               \
  X(unique_bytes)                        \
  X(lines)                               \
  X(unique_lines)                        \
  X(reuse_type_kLoopMultipleRead)        \
  X(reuse_type_kSerialMultipleReadWrite) \
  X(reuse_type_kNoReuse)                 \
  X(reuse_dis_iter)                      \
  X(reuse_dis_bytes)                     \
  X(reuse_ct)                            \
  X(bytes_d_reuse_ct)                    \
  X(unique_bytes_d_reuse_ct)             \
  X(lines_d_reuse_ct)                    \
  X(unique_lines_d_reuse_ct)             \
  X(stride)
#define KILN_FEATURE_NEST(X) \
  X(alloc_size)              \
  X(alloc_prod)              \
  X(alloc_outer_prod)        \
  X(alloc_inner_prod)        \
  X(outer_prod)              \
  X(num_loops)               \
  X(auto_unroll_max_step)

// Kiln's own columns of each buffer slot, in the order of the slots above.
//   is_*            raw
//   accesses        load and store instructions of one thread, after reuse in registers
//   body_elements   different elements that one pass through the unrolled body touches
//   vector_bytes    bytes of one instruction, at most a vector register
//   sectors         32-byte sectors that one request of a warp touches (global memory, GPU)
//   wavefronts      passes that one request of a warp takes (shared memory, GPU): more than
//                   vector_bytes/4 are bank conflicts
//   unrolled_run    extent of an unrolled loop over consecutive elements, which could be a vector
#define KILN_FEATURE_ACCESS(X) \
  X(is_global)                 \
  X(is_shared)                 \
  X(is_local)                  \
  X(accesses)                  \
  X(body_elements)             \
  X(vector_bytes)              \
  X(sectors)                   \
  X(wavefronts)                \
  X(unrolled_run)

// Columns of the store.
//   work             raw: share of the iterations whose guards hold
//   active_lanes     threads of a full warp that execute the store
//   thread_trips     iterations in one thread (CPU: in all threads)
//   thread_flops     floating-point operations of one thread, guards considered
//   flops            floating-point operations of all threads
//   serial_trips     product of the loops that stay loops
//   body             statements in the innermost unrolled loops
//   reduce_len       iterations that go into one element
//   chains           independent sums in the body
//   stack_trips      iterations of loops that index registers without being unrolled: such
//                    "registers" lie in memory
//   lanes            iterations of the vectorized loop
//   vector_bytes     bytes of the vectorized loop, and for a tile that the copy engine brings those
//                    of a piece of a row
//   register_buffering   raw: 0, 1, 2: the register double buffering of operands
//                    (Hint::kRegisterBuffering)
//   async            raw: 1 for an asynchronous copy to shared memory, 1 + Hint::kBulkCopies if a
//                    product in the program has that hint; 4 more in an online softmax by units
//                    of four warps
//   register_bytes   bytes of operands and results of the body
//   register_share   raw: register_bytes as a share of a CPU's registers
//   miss_*           bytes from beyond a cache of this size
#define KILN_FEATURE_ROW(X)  \
  X(row_work)                \
  X(row_active_lanes)        \
  X(row_thread_trips)        \
  X(row_thread_flops)        \
  X(row_flops)               \
  X(row_thread_instructions) \
  X(row_thread_special)      \
  X(row_serial_trips)        \
  X(row_body)                \
  X(row_reduce_len)          \
  X(row_chains)              \
  X(row_stack_trips)         \
  X(row_lanes)               \
  X(row_vector_bytes)        \
  X(row_register_bytes)      \
  X(row_register_share)      \
  X(row_thread_accesses)     \
  X(row_global_read_bytes)   \
  X(row_global_write_bytes)  \
  X(row_sectors_worst)       \
  X(row_sectors_mean)        \
  X(row_wavefronts_worst)    \
  X(row_wavefronts_mean)     \
  X(row_innermost_stride)    \
  X(row_miss_32k)            \
  X(row_miss_1m)             \
  X(row_miss_32m)            \
  X(row_async)               \
  X(row_register_buffering)

// Columns of the kernel.
//   blocks           blocks that are launched
//   waves            rounds of blocks (CPU: of parallel tasks) over the cores, not rounded
//   wave_share       raw: waves / rounds up
//   occupancy        raw: resident warps / most warps that a multiprocessor holds
//   thread_*         in one thread
//   barriers         barriers that one thread meets
//   stages           how often shared memory is filled
//   copies_ahead     groups of asynchronous copies in flight
//   cluster          blocks of a cluster
//   cluster_cores    multiprocessors that such clusters can fill
//   cluster_barriers   barriers of the cluster that one thread meets
//   thread_remote_bytes   bytes read from the shared memory of the cluster's blocks
//   registers        registers that one thread needs
//   register_limit   registers that a thread may have, given the size of the block and min_blocks
//   spilled          registers that are needed beyond the limit
//   stage_loads      global loads of a thread between two barriers
//   unique_bytes     different bytes of global buffers: the least that must be transferred
//   global_bytes     bytes moved between multiprocessors and the L2 cache
//   split_bytes      bytes of workspaces that the kernel writes, such as partial results of split
//                    reductions
//   *_per_flop       bytes / floating-point operations, times 1024
#define KILN_FEATURE_KERNEL(X)       \
  X(kernel_index)                    \
  X(kernel_blocks)                   \
  X(kernel_threads)                  \
  X(kernel_shared_bytes)             \
  X(kernel_registers)                \
  X(kernel_blocks_per_core)          \
  X(kernel_occupancy)                \
  X(kernel_waves)                    \
  X(kernel_wave_share)               \
  X(kernel_thread_flops)             \
  X(kernel_flops)                    \
  X(kernel_thread_instructions)      \
  X(kernel_thread_special)           \
  X(kernel_thread_shared_wavefronts) \
  X(kernel_thread_global_requests)   \
  X(kernel_thread_sectors)           \
  X(kernel_barriers)                 \
  X(kernel_stages)                   \
  X(kernel_stage_loads)              \
  X(kernel_unique_bytes)             \
  X(kernel_global_bytes)             \
  X(kernel_split_bytes)              \
  X(kernel_shared_bytes_per_flop)    \
  X(kernel_global_bytes_per_flop)    \
  X(kernel_parallel_tasks)           \
  X(program_kernels)                 \
  X(program_cores)                   \
  X(program_vector_bytes)            \
  X(kernel_copies_ahead)             \
  X(kernel_cluster)                  \
  X(kernel_cluster_cores)            \
  X(kernel_cluster_barriers)         \
  X(kernel_thread_remote_bytes)      \
  X(kernel_register_limit)           \
  X(kernel_spilled)
// clang-format on

namespace col {
#define KILN_COLUMN(name) name,
// Columns within a buffer slot.
enum Buffer : int { KILN_FEATURE_BUFFER(KILN_COLUMN) kNumBuffer };
enum Access : int { KILN_FEATURE_ACCESS(KILN_COLUMN) kNumAccess };
// Columns of a row.
enum Row : int {
  KILN_FEATURE_OPERATIONS(KILN_COLUMN)  //
  KILN_FEATURE_POSITIONS(KILN_COLUMN, vec) KILN_FEATURE_POSITIONS(KILN_COLUMN, unroll)
      KILN_FEATURE_POSITIONS(KILN_COLUMN, parallel) KILN_FEATURE_LAUNCH(KILN_COLUMN)  //
  kBuffers,
  kCurve = kBuffers + kNumSlots * kNumBuffer,
  kNestBefore = kCurve + kNumCurve - 1,
  KILN_FEATURE_NEST(KILN_COLUMN)  //
  kAccesses,
  kRowBefore = kAccesses + kNumSlots * kNumAccess - 1,
  KILN_FEATURE_ROW(KILN_COLUMN)     //
  KILN_FEATURE_KERNEL(KILN_COLUMN)  //
  kNumColumns
};
#undef KILN_COLUMN
inline constexpr int kFirstOfKernel = kernel_index;
}  // namespace col

static_assert(col::kAccesses == 164);

// Returns sign(x) * log2(|x| + 1).
float Slog(double x);

}  // namespace kiln::features
