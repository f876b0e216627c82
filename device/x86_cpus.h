// x86 processors by the names and features that LLVM gives them, without LLVM: whoever measures on a
// CPU says the same of it as whoever compiles for it. Tables of facts; a test compares them with
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

// What instructions say of a processor.
struct Cpuid {
  std::function<CpuidRegisters(uint32_t leaf, uint32_t subleaf)> leaf;
  // Of XGETBV 0: which registers the operating system saves. Asked only where CPUID says that there
  // is such an instruction.
  std::function<uint64_t()> saved_registers;
};

// By the numbers of a table inside.
using X86Features = std::bitset<128>;

struct X86Cpu {
  std::string name;  // "znver4"; of a processor that is not known one that has what it has, or
                     // "generic"
  X86Features features;
};
X86Cpu ReadX86Cpu(const Cpuid& cpuid);

// Nothing: there is no such processor or level here.
std::optional<X86Features> FeaturesOfX86Cpu(std::string_view name);

// What the processor has and its name has not, or the other way round (hypervisors hide some), in
// the form of -mattr: "-mwaitx,-pku,+xsaves".
std::string FeatureDifferences(const X86Cpu& cpu);
// The features after such changes; of words that it does not know nothing follows.
X86Features WithDifferences(X86Features features, std::string_view attributes);

// The levels of the x86-64 psABI are names, too: "x86-64", "x86-64-v2", "x86-64-v3" (AVX2, FMA),
// "x86-64-v4" (AVX-512 F, BW, CD, DQ, VL).
bool IsX86Level(std::string_view name);
// The highest one of which all features are there; "": none.
std::string_view X86LevelOf(const X86Features& features);

}  // namespace kiln::device
