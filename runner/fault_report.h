// Says what a fatal signal was about, on stderr, before the process dies of it: the address, the
// argument it is next to (guarded_memory.h), or that a stack ran over. For a runner's child; its
// daemon reads its stderr.
#pragma once

#include <memory>

namespace kiln::runner {

// SIGSEGV, SIGBUS, SIGILL, SIGFPE: one line, then the default action. Once, at the start of the
// child.
void InstallFaultReport();

// A second stack for this thread's signal handlers, without which nobody could report that the
// first ran over. Made and destroyed by the thread it is for.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::unique_ptr<char[]> memory_;
};

}  // namespace kiln::runner
