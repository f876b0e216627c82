// Program -> CUDA C. The text is meant to be read and kept: named indices, a comment per stage, no
// macros.
//
// Accepts every program that CheckCudaProgram (checks.h) accepts; the limits of a device are
// that function's matter. Errors: InvalidArgument for what GPU code cannot express,
// ResourceExhausted for expressions of absurd size. Pure: the same program gives the same text, on
// any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/arrays/tensor_map.h"
#include "base/status.h"
#include "compiler/codegen/compiled.h"
#include "compiler/ir/pass.h"
#include "compiler/ir/program.h"

namespace kiln::codegen {

struct CudaOptions {
  // Approximate expf, division and square root, denormals flushed to zero. Off: results are those
  // of the IEEE operations, a multiply and an add may still become one fused multiply-add.
  bool fast_math = false;
  Fault fault = Fault::kNone;
  // CompileOptions; for sm_90 and later.
  bool waits_for_previous = false;
  // Instructions of this architecture may be used: 90 is sm_90. All targets have those of sm_70.
  int arch = 70;
  // The threads of a block have so many in all (target/registers.h); 0: as many as the device has.
  int64_t registers_per_block = 0;
  // What watches the passes; null: what the environment asks for.
  const ir::PassInstruments* instruments = nullptr;
};

struct CudaKernel {
  std::string name;
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  int64_t copying_threads = 0;  // the last ones of them: they compute nothing (bulk_copies.h)
  int64_t cluster =
      1;  // blocks, consecutive along x; known to the kernel, which is launched as any
  int64_t static_shared_bytes = 0;
  int64_t dynamic_shared_bytes = 0;    // to be given at launch
  int64_t unrolled_cost = 0;           // of compiling it: unroll.h
  std::vector<int32_t> args;           // buffers of the program, in the order of the parameters
  std::vector<TensorMap> tensor_maps;  // further parameters; of buffers of the program
};

struct CudaSource {
  std::string text;
  std::vector<CudaKernel> kernels;  // run in order
  bool uses_warpgroups = false;     // instructions of sm_90a, which no other architecture has
  bool is_stateful = false;         // Compiled::is_stateful
};

// What the source is to be compiled for: instructions of warpgroups need sm_90a, which all devices
// of sm_90 are.
std::string ArchFor(const CudaSource& source, std::string_view arch);

// Static shared memory above this does not exist: more is dynamic.
inline constexpr int64_t kMaxStaticSharedBytes = 48 << 10;

StatusOr<CudaSource> GenerateCuda(const ir::Program& program, const CudaOptions& options = {});

}  // namespace kiln::codegen
