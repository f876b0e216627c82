// Explains a fatal signal on stderr before the process dies of it: the address, the argument next
// to it (guarded_memory.h), or that a stack ran over. For a runner's child, whose stderr its daemon
// reads.
#pragma once

#include <memory>

namespace kiln::runner {

// Installs handlers for SIGSEGV, SIGBUS, SIGILL and SIGFPE that print one line before the default
// action. Called once, at the start of the child.
void InstallFaultReport();

// A second stack for this thread's signal handlers, without which nothing could report that the
// first stack ran over. The thread that uses it makes and destroys it.
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
