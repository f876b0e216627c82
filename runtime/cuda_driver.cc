#include "runtime/cuda_driver.h"

#include <dlfcn.h>

namespace kiln::runtime {
namespace {

constexpr char kLibrary[] = "libcuda.so.1";

StatusOr<const CudaDriver*> Open() {
  // The library is never closed, because the driver keeps threads of its own.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    return FailedPrecondition(
        "no NVIDIA driver here: {}; install the driver, or use the CPU (tune for --target llvm, "
        "run with "
        "--device cpu)",
        reason != nullptr ? reason : kLibrary);
  }
  static CudaDriver driver;
#define KILN_CUDA_FIND(member, symbol, parameters)                                   \
  driver.member = reinterpret_cast<decltype(driver.member)>(dlsym(library, symbol)); \
  if (driver.member == nullptr) {                                                    \
    return FailedPrecondition(                                                       \
        "the NVIDIA driver has no {}, expected one for CUDA 11.4 "                   \
        "or newer: upgrade it",                                                      \
        symbol);                                                                     \
  }
  KILN_CUDA_FUNCTIONS(KILN_CUDA_FIND)
#undef KILN_CUDA_FIND
#define KILN_CUDA_FIND(member, symbol, parameters) \
  driver.member = reinterpret_cast<decltype(driver.member)>(dlsym(library, symbol));
  KILN_CUDA_OPTIONAL_FUNCTIONS(KILN_CUDA_FIND)
#undef KILN_CUDA_FIND
  const Status status = driver.Check(driver.Init(0), "initialize the NVIDIA driver");
  if (!status.ok()) return FailedPrecondition("{}", Message(status));
  return &driver;
}

}  // namespace

Status CudaDriver::Check(CuResult result, std::string_view what) const {
  if (result == 0) return OkStatus();
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(result, &name) != 0 || name == nullptr) name = "unknown CUDA error";
  if (GetErrorString(result, &text) != 0 || text == nullptr) text = "no text";
  const StatusCode code =
      result == kCuOutOfMemory ? StatusCode::kResourceExhausted : StatusCode::kInternal;
  return MakeStatus(code, "cannot {}: {} ({}): {}", what, name, result, text);
}

StatusOr<const CudaDriver*> LoadCudaDriver() {
  static const StatusOr<const CudaDriver*> driver = Open();
  return driver;
}

}  // namespace kiln::runtime
