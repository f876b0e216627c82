#include "search/space/gpu_validity.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/numbers/integers.h"
#include "compiler/instructions/bulk_copy.h"
#include "compiler/instructions/matrix_unit.h"
#include "compiler/schedule/async_copy.h"
#include "compiler/schedule/buffer_shape.h"
#include "search/space/bulk_copies.h"
#include "search/space/matrix_product.h"
#include "search/space/matrix_tile.h"
#include "search/space/online_tiles.h"
#include "search/space/sketch_rules/rules.h"

namespace kiln::search {
namespace {

using schedule::Annotation;
using schedule::Attach;
using schedule::Stage;
using schedule::State;

int RootOf(const State& state, int s) {
  while (state.attach(s).kind == Attach::kIter) s = state.attach(s).stage;
  return s;
}

using instructions::kWarpThreads;

constexpr int64_t kWordBytes = 4;

bool IsThread(Annotation a) {
  return a == Annotation::kThreadX || a == Annotation::kThreadY || a == Annotation::kThreadZ;
}

// As lowering decides (lower/nest.h).
bool IsShared(const State& state, int s) {
  if (state.attach(s).kind != Attach::kIter) return false;
  if (state.stage(s).asks_for_shared()) return true;
  for (Attach at = state.attach(s); at.kind == Attach::kIter; at = state.attach(at.stage)) {
    for (int loop = 0; loop <= at.loop; ++loop) {
      if (IsThread(state.stage(at.stage).annotation(loop))) return false;
    }
  }
  return true;
}

// Of a shared stage: more than one where it is fetched more than once and ahead, no more than it is
// fetched.
int64_t Buffers(const State& state, int s) {
  const Attach& at = state.attach(s);
  const Stage& reader = state.stage(at.stage);
  if (!state.stage(s).asks_for_shared()) return 1;
  int64_t fetches = 1;
  for (int loop = 0; loop <= at.loop && fetches < reader.buffering; ++loop) {
    if (reader.loop(loop).kind == schedule::IterKind::kReduce)
      fetches *= std::max<int64_t>(reader.loop(loop).extent, 1);
  }
  return std::min<int64_t>(fetches, reader.buffering);
}

// Returns the bytes of all outputs of the stage.
int64_t BytesOf(const Stage& stage, std::span<const int64_t> shape) {
  int64_t bytes = 0;
  for (int k = 0; k < stage.op->num_outputs(); ++k) bytes += stage.op->type(k).bytes();
  return MultiplyCounts(ProductOfCounts(shape), bytes);
}

// Blocks of a cluster that have a part each of what the stage computes: its first axis numbers
// them.
int64_t BlocksThatHold(const Stage& stage) {
  for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
    if (stage.annotation(i) == Annotation::kCluster)
      return std::max<int64_t>(stage.loop(i).extent, 1);
  }
  return 1;
}

// In a block, all of its buffers.
int64_t SharedBytes(const State& state, int s) {
  constexpr int64_t kPeriod = 1024;  // a swizzled buffer starts at a multiple of it
  const Stage& stage = state.stage(s);
  const bool is_swizzled = schedule::IsSwizzled(state, s);
  const int64_t bytes =
      BytesOf(stage, schedule::BufferShape(stage, schedule::RegionOf(stage), is_swizzled)) *
      Buffers(state, s) / BlocksThatHold(stage);
  return is_swizzled ? RoundUp(bytes, kPeriod) : bytes;
}

int64_t RegionBytes(const Stage& stage) { return BytesOf(stage, schedule::RegionOf(stage)); }

}  // namespace

BlockUse UseOfKernel(const State& state, int root) {
  BlockUse use;
  if (const schedule::OnlineTile* const tile = state.online()) {
    use.threads = kWarpThreads * tile->warps * tile->parts;
    if (tile->is_cluster) use.cluster = tile->splits;
    return use;
  }
  std::array<int64_t, 3> threads = {1, 1, 1};
  std::vector<int64_t> ahead_bytes;
  for (int s = 0; s < state.num_stages(); ++s) {
    const Stage& stage = state.stage(s);
    if (stage.is_placeholder() || state.attach(s).kind == Attach::kInlined ||
        RootOf(state, s) != root) {
      continue;
    }
    for (int i = 0; i < static_cast<int>(stage.loops.size()); ++i) {
      const int64_t extent = stage.loop(i).extent;
      switch (stage.annotation(i)) {
        case Annotation::kThreadX:
          threads[0] = std::max(threads[0], extent);
          break;
        case Annotation::kThreadY:
          threads[1] = std::max(threads[1], extent);
          break;
        case Annotation::kThreadZ:
          threads[2] = std::max(threads[2], extent);
          break;
        case Annotation::kCluster:
          use.cluster = std::max(use.cluster, extent);
          break;
        case Annotation::kVThread:
          use.vthreads = std::max(use.vthreads, extent);
          break;
        default:
          break;
      }
    }
    if (!IsShared(state, s)) continue;
    use.shared_bytes += SharedBytes(state, s);
    const bool ahead = Buffers(state, s) > 1;
    const bool copied = ahead && state.stage(state.attach(s).stage).asynchronous &&
                        schedule::CanCopyAsync(state, s);
    if (ahead && !copied) ahead_bytes.push_back(RegionBytes(stage));
  }
  use.threads = threads[0] * threads[1] * threads[2];
  const int64_t bytes_at_once = kWordBytes * use.threads;
  for (const int64_t bytes : ahead_bytes) use.ahead_words += CeilDiv(bytes, bytes_at_once);
  return use;
}

namespace {

// Warps are shared out over the four parts of a multiprocessor; a thread has a multiple of 8.
int64_t RegistersOfThread(int64_t threads, int64_t blocks) {
  constexpr int64_t kParts = 4, kUnit = 8;
  const int64_t warps = std::max<int64_t>(1, CeilDiv(threads, kWarpThreads) * blocks);
  return kRegisters / kParts / (CeilDiv(warps, kParts) * kWarpThreads) / kUnit * kUnit;
}

}  // namespace

Status CheckGpuLimits(const State& state, const target::HardwareParams& hardware,
                      int64_t max_cluster_blocks) {
  if (state.online() != nullptr) return CheckOnlineLimits(state, hardware);
  KILN_RETURN_IF_ERROR(CheckMatrixTiles(state));
  const int64_t most_vthreads = MostVThreads(hardware, MatrixStageOf(state).has_value());
  for (int s = 0; s < state.num_stages(); ++s) {
    if (state.stage(s).is_placeholder() || state.attach(s).kind != Attach::kRoot) continue;
    const BlockUse use = UseOfKernel(state, s);
    const auto refuse = [&](std::string_view what, int64_t found, int64_t limit) {
      return FailedPrecondition("stage {} ({}): {} {}, the device has {}", s,
                                state.stage(s).op->name(), found, what, limit);
    };
    if (use.threads > hardware.max_threads_per_block)
      return refuse("threads per block", use.threads, hardware.max_threads_per_block);
    const int64_t blocks = std::max<int64_t>(1, state.stage(s).hints[ir::Hint::kMinBlocks]);
    const int64_t bulk_bytes = BulkBarrierBytes(state, s),
                  threads = use.threads + (bulk_bytes > 0 ? instructions::kCopyingThreads : 0);
    const int64_t registers = RegistersOfThread(threads, blocks);
    if (const int64_t least = LeastRegisters(state, s); least > registers)
      return refuse("registers for the results of a thread", least, registers);
    if (use.cluster > 1 && !IsClusterSize(use.cluster, max_cluster_blocks)) {
      return FailedPrecondition(
          "stage {} ({}): a cluster of {} blocks, expected 2, 4 or 8 and at most {}", s,
          state.stage(s).op->name(), use.cluster, max_cluster_blocks);
    }
    if (use.vthreads > most_vthreads) return refuse("virtual threads", use.vthreads, most_vthreads);
    const int64_t shared_bytes = use.shared_bytes + bulk_bytes;
    if (shared_bytes > hardware.max_shared_memory_per_block_bytes) {
      return refuse("bytes of shared memory per block", shared_bytes,
                    hardware.max_shared_memory_per_block_bytes);
    }
    if (use.ahead_words > kMaxAheadWords) {
      return FailedPrecondition("stage {} ({}): {} words fetched ahead by each thread, at most {}",
                                s, state.stage(s).op->name(), use.ahead_words, kMaxAheadWords);
    }
  }
  return OkStatus();
}

}  // namespace kiln::search
