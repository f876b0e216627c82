#include "compiler/instructions/async_copy.h"

namespace kiln::instructions {

bool IsAsyncCopySize(int64_t bytes) {
  return bytes == kLeastAsyncCopyBytes || bytes == 8 || bytes == 16;
}

std::string_view AsyncCopyDefinitions() {
  return R"cuda(#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// 4, 8 or 16 bytes.
template <int kBytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(from), "n"(kBytes)
                 : "memory");
  }
}
// Zeros where the condition does not hold; then nothing is read.
template <int kBytes>
__device__ __forceinline__ void copy_async_if(bool condition, void* to, const void* from) {
  const unsigned shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = condition ? kBytes : 0;
  if (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(from),
                 "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(from),
                 "n"(kBytes), "r"(bytes)
                 : "memory");
  }
}
// The copies of this thread since the last time are a group.
__device__ __forceinline__ void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits for all groups of this thread but the newest kPending.
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
#else
template <int kBytes>
struct __align__(kBytes) copied { unsigned words[kBytes / 4]; };
template <int kBytes>
__device__ __forceinline__ void copy_async(void* to, const void* from) {
  *static_cast<copied<kBytes>*>(to) = *static_cast<const copied<kBytes>*>(from);
}
template <int kBytes>
__device__ __forceinline__ void copy_async_if(bool condition, void* to, const void* from) {
  *static_cast<copied<kBytes>*>(to) =
      condition ? *static_cast<const copied<kBytes>*>(from) : copied<kBytes>();
}
__device__ __forceinline__ void commit_copies() {}
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {}
#endif

)cuda";
}

}  // namespace kiln::instructions
