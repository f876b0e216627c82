// CUDA C -> cubin, by NVRTC. The library is looked for at run time: this program is built and
// started without a GPU, a driver or a toolkit.
//
// Searched: the file KILN_NVRTC names; lib64 and lib of CUDA_HOME and CUDA_PATH; ../lib beside this
// executable; the loader's own path; /usr/local/cuda. Newest major version first.
//
// Thread-safe; a compilation takes 0.1 to some seconds on one core. NVRTC may abort the process on
// hostile source: builders call this in child processes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/compiled.h"
#include "compiler/codegen/cuda/source.h"
#include "compiler/target/target.h"

namespace kiln::codegen {

// The resources of a kernel, as ptxas reports them.
struct KernelResources {
  std::string name;
  int registers = 0;  // per thread
  int64_t stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0;
  int64_t static_shared_bytes = 0;  // per block
};

struct Cubin {
  std::string binary;  // ELF
  std::string arch;    // "sm_90"
  std::string log;     // warnings
  std::vector<KernelResources> kernels;
};

struct NvrtcInfo {
  std::string path;
  int major = 0, minor = 0;
  std::vector<int> archs;  // 75, 80, ...
};

// Keeps what it compiled in the driver's cache. A cubin from there comes without the report of its
// resources, and to look for it starts the driver, which a process that only compiles has no use
// for: it is told not to (--no-cache).
bool KeepsCubins(const NvrtcInfo& nvrtc);

// FailedPrecondition if there is no NVRTC; the message lists the places searched.
StatusOr<NvrtcInfo> FindNvrtc();

// What this NVRTC opens as it compiles: the folders of its libraries and of the toolkit's headers.
std::vector<std::string> FoldersOf(const NvrtcInfo& nvrtc);

// "sm_70" to "sm_90a". Refuses what is no architecture, and what this NVRTC does not know.
// InvalidArgument with the compiler's log when the source does not compile. `flags`: further
// options of NVRTC.
StatusOr<Cubin> CompileCubin(const std::string& source, std::string_view arch,
                             const CudaOptions& options = {},
                             std::span<const std::string> flags = {});
// The same of what GenerateCuda made, somewhat faster: NVRTC leaves out declarations that such text
// does not use (textures, the CUDA runtime), which changes nothing in the code.
StatusOr<Cubin> CompileSource(const CudaSource& source, std::string_view arch,
                              const CudaOptions& options = {},
                              std::span<const std::string> flags = {});
// The PTX instead, to look into.
StatusOr<std::string> CompilePtx(const std::string& source, std::string_view arch,
                                 const CudaOptions& options = {});

// A comment line per kernel: registers, what is spilled, stack, shared memory.
std::string ResourceComment(const CudaSource& source, const Cubin& cubin);

// The text of a program for the target, and the interface of the compiled program without a binary
// and without figures of the compiler. The checks of checks.h are the caller's. Needs no NVRTC.
struct CudaGenerated {
  CudaSource source;
  Compiled interface;
};
StatusOr<CudaGenerated> GenerateForTarget(const ir::Program& program, const target::Target& target,
                                          const CudaOptions& options = {});

struct CudaCompiled {
  Compiled compiled;
  CudaSource source;
  Cubin cubin;  // without the binary, which is in compiled
  double generate_s = 0, compile_s = 0;
};

// The architecture comes from the target's -arch. The checks of checks.h are the caller's.
StatusOr<CudaCompiled> CompileCudaWithReport(const ir::Program& program,
                                             const target::Target& target,
                                             const CudaOptions& options = {});
StatusOr<Compiled> CompileCuda(const ir::Program& program, const target::Target& target,
                               const CudaOptions& options = {});

}  // namespace kiln::codegen
