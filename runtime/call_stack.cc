#include "runtime/call_stack.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/errno_status.h"

namespace kiln::runtime {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__x86_64__)
constexpr bool kSupported = true;

// The function keeps the thread's own stack pointer in rbx, which calls preserve, and has a frame
// pointer, so that debuggers find the way back. `top` is a multiple of 16, as a call wants it.
[[gnu::noinline]] void SwitchAndCall(std::byte* top, void (*body)(void*), void* closure) {
  asm volatile(
      "movq %%rsp, %%rbx\n\t"
      "movq %[top], %%rsp\n\t"
      "callq *%[body]\n\t"
      "movq %%rbx, %%rsp"
      : "+D"(closure), [top] "+S"(top), [body] "+d"(body)
      :
      : "rbx", "rax", "rcx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13",
        "xmm14", "xmm15");
}
#elif !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__aarch64__)
constexpr bool kSupported = true;

// The stack pointer is in x19 meanwhile.
[[gnu::noinline]] void SwitchAndCall(std::byte* top, void (*body)(void*), void* closure) {
  register void* first asm("x0") = closure;
  register std::byte* second asm("x1") = top;
  register void (*third)(void*) asm("x2") = body;
  asm volatile(
      "mov x19, sp\n\t"
      "mov sp, %[top]\n\t"
      "blr %[body]\n\t"
      "mov sp, x19"
      : "+r"(first), [top] "+r"(second), [body] "+r"(third)
      :
      : "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16",
        "x17", "x19", "x30", "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8",
        "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21",
        "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}
#else
constexpr bool kSupported = false;

void SwitchAndCall(std::byte*, void (*)(void*), void*) { KILN_CHECK(kSupported); }
#endif

}  // namespace

bool CallStack::IsSupported() { return kSupported; }

StatusOr<CallStack> CallStack::Allocate(size_t bytes) {
  if (!kSupported)
    return Unimplemented("calls change no stack on this processor or with a sanitizer");
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  CallStack stack;
  stack.bytes_ = (bytes + page - 1) / page * page + page;
  void* memory = mmap(nullptr, stack.bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) {
    return ResourceExhausted("no memory for a stack of {} bytes: {}", bytes, ErrnoText(errno));
  }
  stack.memory_ = static_cast<std::byte*>(memory);
  if (mprotect(memory, page, PROT_NONE) != 0) return ErrnoStatus(errno, "cannot guard a stack");
  return stack;
}

CallStack::CallStack(CallStack&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

CallStack& CallStack::operator=(CallStack&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

CallStack::~CallStack() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

void CallStack::Call(void (*body)(void*), void* closure) const {
  SwitchAndCall(memory_ + bytes_, body, closure);
}

}  // namespace kiln::runtime
