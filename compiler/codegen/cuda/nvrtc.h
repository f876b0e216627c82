// NVRTC, loaded at run time. Internal to compile.cc.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/codegen/cuda/compile.h"

namespace kiln::codegen {

class Nvrtc {
 public:
  enum class Output : uint8_t { kCubin, kPtx };

  // Loads it on the first call, for the life of the process; a failure is remembered as well.
  static StatusOr<const Nvrtc*> Get();

  const NvrtcInfo& info() const { return info_; }
  // The option --minimal: CUDA 12.4.
  bool KnowsMinimal() const { return info_.major > 12 || (info_.major == 12 && info_.minor >= 4); }

  // Thread-safe. log: what the compiler said when it succeeded.
  StatusOr<std::string> Compile(const std::string& source, std::span<const std::string> options,
                                Output output, std::string* log) const;

  // The folder of a header of the toolkit, "" when there is none.
  std::string FindInclude(std::string_view header) const;

 private:
  using Program = void*;
  struct Functions {
    int (*CreateProgram)(Program*, const char*, const char*, int, const char* const*,
                         const char* const*);
    int (*DestroyProgram)(Program*);
    int (*CompileProgram)(Program, int, const char* const*);
    int (*GetProgramLogSize)(Program, size_t*);
    int (*GetProgramLog)(Program, char*);
    int (*GetCUBINSize)(Program, size_t*);
    int (*GetCUBIN)(Program, char*);
    int (*GetPTXSize)(Program, size_t*);
    int (*GetPTX)(Program, char*);
    int (*Version)(int*, int*);
    int (*GetNumSupportedArchs)(int*);
    int (*GetSupportedArchs)(int*);
    const char* (*GetErrorString)(int);
  };

  static StatusOr<Nvrtc> Load();
  Status Bind(void* library);

  Functions call_{};
  NvrtcInfo info_;
};

}  // namespace kiln::codegen
