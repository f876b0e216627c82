// x86 processors by the names and features that LLVM gives them, without LLVM, so that a runner and
// a compiler describe a CPU in the same way. The tables hold facts; a test compares them with
// LLVM's answers (tests/targets/x86_cpus_test.cc). Pure functions.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::device {

struct CpuidRegisters {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// The instructions that describe a processor.
struct Cpuid {
  std::function<CpuidRegisters(uint32_t leaf, uint32_t subleaf)> leaf;
  // Returns XGETBV 0: the registers that the operating system saves. Called only if CPUID says that
  // this instruction exists.
  std::function<uint64_t()> saved_registers;
};

// A bit for each row of a table in x86_cpus.cc.
using X86Features = std::bitset<128>;

struct X86Cpu {
  // "znver4". A processor that is not known gets the name of a known one with its features, or
  // "generic".
  std::string name;
  X86Features features;
};
X86Cpu ReadX86Cpu(const Cpuid& cpuid);

// Returns nothing if there is no such processor or level here.
std::optional<X86Features> FeaturesOfX86Cpu(std::string_view name);

// Returns the differences between the processor's features and those that its name implies, in the
// form of -mattr: "-mwaitx,-pku,+xsaves". Hypervisors hide some features.
std::string FeatureDifferences(const X86Cpu& cpu);
// Returns the features after such changes. Unknown words have no effect.
X86Features WithDifferences(X86Features features, std::string_view attributes);

// Returns whether the name is a level of the x86-64 psABI. Levels can stand for processors, too:
// "x86-64", "x86-64-v2", "x86-64-v3" (AVX2, FMA), "x86-64-v4" (AVX-512 F, BW, CD, DQ, VL).
bool IsX86Level(std::string_view name);
// Returns the highest level whose features are all there; "": none.
std::string_view X86LevelOf(const X86Features& features);

}  // namespace kiln::device
