#include "runner/fault_report.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "runner/guarded_memory.h"

namespace kiln::runner {
namespace {

constexpr size_t kSignalStackBytes = 64 << 10;
// A thread that comes this close to the end of its stack counts as having run over it. This is
// libc's own guard and a margin.
constexpr uintptr_t kStackEndBytes = 64 << 10;

thread_local uintptr_t lowest_stack_address = 0;

uintptr_t StackPointer(const void* context) {
#if defined(__x86_64__)
  return static_cast<uintptr_t>(
      static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
#elif defined(__aarch64__)
  return static_cast<const ucontext_t*>(context)->uc_mcontext.sp;
#else
  return UINTPTR_MAX;
#endif
}

void Write(const char* text) {
  // Nothing can be done about a failed write here.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, strlen(text));
}

void WriteHex(uintptr_t value) {
  char digits[2 + 16 + 1] = "0x";
  int at = 2;
  bool started = false;
  for (int shift = 60; shift >= 0; shift -= 4) {
    const int digit = static_cast<int>((value >> shift) & 15);
    started |= digit != 0 || shift == 0;
    if (started) digits[at++] = "0123456789abcdef"[digit];
  }
  digits[at] = 0;
  Write(digits);
}

// Async-signal-safe. SA_RESETHAND has restored the default action, so returning repeats the
// instruction, and the process dies of the same signal.
void Report(int signal, siginfo_t* info, void* context) {
  if (signal == SIGSEGV || signal == SIGBUS) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
    const uintptr_t stack_pointer = StackPointer(context);
    char place[160];
    if (lowest_stack_address != 0 && stack_pointer < lowest_stack_address + kStackEndBytes) {
      Write("stack overflow, at address ");
      WriteHex(address);
    } else {
      Write(address < 4096 ? "access through a null pointer, at address " : "access to address ");
      WriteHex(address);
      if (DescribeAddress(info->si_addr, place, sizeof(place))) {
        Write(", ");
        Write(place);
      }
    }
    Write("\n");
  }
  // A signal that was sent rather than caused does not come again by itself.
  if (info->si_code <= 0) raise(signal);
}

}  // namespace

void InstallFaultReport() {
  struct sigaction action{};
  action.sa_sigaction = Report;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  sigemptyset(&action.sa_mask);
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(signal, &action, nullptr);
}

SignalStack::SignalStack() : memory_(new char[kSignalStackBytes]) {
  stack_t stack{};
  stack.ss_sp = memory_.get();
  stack.ss_size = kSignalStackBytes;
  sigaltstack(&stack, nullptr);
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    void* lowest = nullptr;
    size_t bytes = 0;
    pthread_attr_getstack(&attributes, &lowest, &bytes);
    lowest_stack_address = reinterpret_cast<uintptr_t>(lowest);
    pthread_attr_destroy(&attributes);
  }
}

SignalStack::~SignalStack() {
  lowest_stack_address = 0;
  stack_t stack{};
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
}

}  // namespace kiln::runner
