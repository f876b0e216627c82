#include "runner/cpu_target.h"

#include <fmt/format.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "device/x86_cpus.h"
#include "runner/cpu_description.h"

namespace kiln::runner {

#if defined(__x86_64__)
namespace {

device::CpuidRegisters ReadLeaf(uint32_t leaf, uint32_t subleaf) {
  device::CpuidRegisters registers;
  __cpuid_count(leaf, subleaf, registers.eax, registers.ebx, registers.ecx, registers.edx);
  return registers;
}

uint64_t ReadSavedRegisters() {
  uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

}  // namespace

std::string CpuTarget(int threads) {
  const device::X86Cpu cpu =
      device::ReadX86Cpu({.leaf = ReadLeaf, .saved_registers = ReadSavedRegisters});
  const std::string differences = device::FeatureDifferences(cpu);
  return fmt::format("llvm{}{} -mcpu={} -num-cores={}",
                     differences.empty() ? "" : " -mattr=", differences, cpu.name, threads);
}
#else
std::string CpuTarget(int threads) {
  return fmt::format("llvm -mcpu={} -num-cores={}", CpuLevel(), threads);
}
#endif

}  // namespace kiln::runner
