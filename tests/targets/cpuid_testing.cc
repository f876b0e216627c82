#include "tests/targets/cpuid_testing.h"

#include <signal.h>
#include <ucontext.h>

#include <cstdint>

namespace kiln {
namespace {

constexpr long long kTrapFlag = 0x100;

const device::Cpuid* pretended = nullptr;
volatile bool is_over = false;

// The kernel calls this behind every instruction, before the next instruction runs.
void BeforeInstruction(int, siginfo_t*, void* context) {
  auto* registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (is_over) {
    registers[REG_EFL] &= ~kTrapFlag;
    return;
  }
  for (;;) {
    const auto* code = reinterpret_cast<const unsigned char*>(registers[REG_RIP]);
    if (code[0] == 0x0f && code[1] == 0xa2) {
      const device::CpuidRegisters answer = pretended->leaf(
          static_cast<uint32_t>(registers[REG_RAX]), static_cast<uint32_t>(registers[REG_RCX]));
      registers[REG_RAX] = answer.eax;
      registers[REG_RBX] = answer.ebx;
      registers[REG_RCX] = answer.ecx;
      registers[REG_RDX] = answer.edx;
      registers[REG_RIP] += 2;
    } else if (code[0] == 0x0f && code[1] == 0x01 && code[2] == 0xd0) {
      const uint64_t saved = pretended->saved_registers();
      registers[REG_RAX] = static_cast<uint32_t>(saved);
      registers[REG_RDX] = static_cast<uint32_t>(saved >> 32);
      registers[REG_RIP] += 3;
    } else {
      return;
    }
  }
}

}  // namespace

void RunOnPretendedCpu(const device::Cpuid& cpuid, const std::function<void()>& code) {
  pretended = &cpuid;
  is_over = false;
  struct sigaction action = {}, before = {};
  action.sa_sigaction = BeforeInstruction;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, &before);
  asm volatile("sub $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; add $128, %%rsp" ::
                   : "memory", "cc");
  code();
  is_over = true;
  asm volatile("nop; nop" ::: "memory");
  sigaction(SIGTRAP, &before, nullptr);
}

}  // namespace kiln
