// A stack on which the calling thread runs a function, for functions that need more stack than the
// threads of a caller have: the main thread mostly has 8 MiB, and a compiled program may use
// KILN_CPU_STACK_BYTES.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace kiln::runtime {

class CallStack {
 public:
  // ResourceExhausted if there is no address space, Unimplemented unless IsSupported. Pages take
  // memory when they are first used. The page below the stack is not accessible.
  static StatusOr<CallStack> Allocate(size_t bytes);
  CallStack() = default;
  CallStack(CallStack&& other) noexcept;
  CallStack& operator=(CallStack&& other) noexcept;
  ~CallStack();

  // Runs body(closure) on the calling thread and on this stack, and returns when it has. One call
  // at a time. `body` throws no exception. Takes some nanoseconds.
  void Call(void (*body)(void*), void* closure) const;

  // Returns false on other processors than x86-64 and arm64, and with a sanitizer that follows
  // stacks.
  static bool IsSupported();

 private:
  // The mapping, with the page that is not accessible.
  std::byte* memory_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace kiln::runtime
