// Prefetches large packed inputs while they are read. Internal: this header includes LLVM.
//
// The weights of a network are read once a run, and together they are larger than the caches, so
// they come from memory. A packed input is read from its beginning to its end, so the next
// addresses are known: each vector load gets a prefetch of the line kPrefetchBytes behind it into
// the core's second cache. The hardware's own prefetchers stop at the end of each page of 4 KiB. A
// prefetch costs one instruction beside the many multiplications that use the vector, and never
// faults. Measured in docs/experiments/cpu-networks.md.
#pragma once

#include <llvm/IR/PassManager.h>

#include <cstdint>

#include "compiler/ir/program.h"

namespace kiln::codegen {

// Memory answers after some 100 ns, in which a core reads one to two KiB of weights. Larger
// distances are as good up to the size of the second cache, but the first misses of each tile are
// hidden less.
inline constexpr int64_t kPrefetchBytes = 8192;

// Smaller inputs come from memory in no time.
inline constexpr int64_t kMinPrefetchedBytes = 128 << 10;

bool IsPrefetched(const ir::Buffer& buffer);

// Named metadata of a module: the alias scopes (BufferAliases) of the inputs to prefetch.
inline constexpr char kPrefetchedScopes[] = "kiln.prefetched";

// Runs after loops are unrolled and equal loads are one.
struct PrefetchWeightsPass : llvm::PassInfoMixin<PrefetchWeightsPass> {
  llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);
};

}  // namespace kiln::codegen
