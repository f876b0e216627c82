// Compares the table of device/x86_cpus.cc with LLVM.
#include "device/x86_cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include <memory>
#include <random>

#include "base/status_testing.h"
#include "compiler/codegen/llvm/llvm.h"
#include "compiler/target/target.h"
#include "runner/cpu_target.h"
#include "tests/targets/cpuid_testing.h"

namespace kiln {
namespace {

using device::Cpuid;
using device::CpuidRegisters;

constexpr const char* kNames[] = {"core2",
                                  "penryn",
                                  "nehalem",
                                  "westmere",
                                  "sandybridge",
                                  "ivybridge",
                                  "haswell",
                                  "broadwell",
                                  "skylake",
                                  "skylake-avx512",
                                  "cascadelake",
                                  "cooperlake",
                                  "cannonlake",
                                  "icelake-client",
                                  "icelake-server",
                                  "rocketlake",
                                  "tigerlake",
                                  "alderlake",
                                  "sapphirerapids",
                                  "graniterapids",
                                  "graniterapids-d",
                                  "bonnell",
                                  "silvermont",
                                  "goldmont",
                                  "goldmont-plus",
                                  "tremont",
                                  "gracemont",
                                  "sierraforest",
                                  "grandridge",
                                  "clearwaterforest",
                                  "arrowlake",
                                  "arrowlake-s",
                                  "pantherlake",
                                  "knl",
                                  "knm",
                                  "amdfam10",
                                  "btver1",
                                  "btver2",
                                  "bdver1",
                                  "bdver2",
                                  "bdver3",
                                  "bdver4",
                                  "znver1",
                                  "znver2",
                                  "znver3",
                                  "znver4",
                                  "znver5",
                                  "generic",
                                  "x86-64",
                                  "x86-64-v2",
                                  "x86-64-v3",
                                  "x86-64-v4"};

// Makes a processor of a vendor with random flags: most of them set, or few.
Cpuid MakeCpuid(bool is_amd, uint32_t family, uint32_t model, uint32_t seed) {
  const auto flags = [seed](uint32_t leaf, uint32_t subleaf, uint32_t reg) {
    // The other leaves are the same whatever the subleaf.
    if (leaf != 7 && leaf != 0xd) subleaf = 0;
    std::mt19937 random(seed ^ (leaf * 31 + subleaf * 7 + reg) * 2654435761u);
    const uint32_t a = random(), b = random();
    return seed % 3 == 0 ? ~0u : seed % 3 == 1 ? a | b : a & b;
  };
  return {.leaf = [=](uint32_t leaf, uint32_t subleaf) -> CpuidRegisters {
            if (leaf == 0) {
              return is_amd ? CpuidRegisters{0x24, 0x68747541, 0x444d4163, 0x69746e65}
                            : CpuidRegisters{0x24, 0x756e6547, 0x6c65746e, 0x49656e69};
            }
            if (leaf == 0x80000000u) return {0x80000021u, 0, 0, 0};
            CpuidRegisters registers{flags(leaf, subleaf, 0), flags(leaf, subleaf, 1),
                                     flags(leaf, subleaf, 2), flags(leaf, subleaf, 3)};
            if (leaf == 7 && subleaf == 0) registers.eax = seed % 5 == 4 ? 0 : 2;
            if (leaf == 1) {
              const uint32_t base = std::min<uint32_t>(family, 15);
              registers.eax = ((family - base) << 20) | ((model >> 4) << 16) | (base << 8) |
                              ((model & 15) << 4) | 1;
            }
            return registers;
          },
          .saved_registers =
              [seed] {
                constexpr uint64_t kSaved[] = {0x602e7, 0xe7, 0x7, 0x3, 0x60003};
                return kSaved[seed % std::size(kSaved)];
              }};
}

// LLVM's name and features for the answers of CPUID.
struct LlvmAnswer {
  std::string name;
  std::map<std::string, bool> features;
};

LlvmAnswer AskLlvm(const Cpuid& cpuid) {
  llvm::StringRef name;
  llvm::StringMap<bool> features;
  RunOnPretendedCpu(cpuid, [&] {
    name = llvm::sys::getHostCPUName();
    features = llvm::sys::getHostCPUFeatures();
  });
  LlvmAnswer answer{.name = name.str(), .features = {}};
  for (const auto& feature : features) answer.features[feature.getKey().str()] = feature.getValue();
  return answer;
}

const llvm::Target& X86() {
  llvm::InitializeNativeTarget();
  std::string error;
  return *llvm::TargetRegistry::lookupTarget(llvm::sys::getProcessTriple(), error);
}

// Returns "+avx": the -mattr of the features that LLVM reports for the processor and its name does
// not imply.
std::string DifferencesByLlvm(const LlvmAnswer& answer) {
  const std::unique_ptr<llvm::MCSubtargetInfo> model(
      X86().createMCSubtargetInfo(llvm::sys::getProcessTriple(), answer.name, ""));
  std::string text;
  for (const auto& [name, on] : answer.features) {
    if (model->checkFeatures("+" + name) != on)
      text += (text.empty() ? "" : ",") + std::string(on ? "+" : "-") + name;
  }
  return text;
}

void ExpectLlvmAgrees(const Cpuid& cpuid, const std::string& what) {
  const LlvmAnswer answer = AskLlvm(cpuid);
  const device::X86Cpu cpu = device::ReadX86Cpu(cpuid);
  EXPECT_EQ(cpu.name, answer.name) << what;
  EXPECT_EQ(device::FeatureDifferences({answer.name, cpu.features}), DifferencesByLlvm(answer))
      << what << ", " << answer.name;
}

TEST(X86Cpus, ThisMachineIsWhatTheCompilerNames) {
  ASSERT_OK_AND_ASSIGN(const target::Target named, codegen::ResolveCpu({}));
  EXPECT_EQ(runner::CpuTarget(2), target::PrintTarget(named) + " -num-cores=2");
}

TEST(X86Cpus, NamesHaveTheFeaturesThatTheyHaveInLlvm) {
  LlvmAnswer none;
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    none.features[feature.getKey().str()] = false;
  // LLVM does not report it without AVX-512.
  none.features["evex512"] = false;
  for (const char* name : kNames) {
    none.name = name;
    ASSERT_TRUE(device::FeaturesOfX86Cpu(name).has_value()) << name;
    EXPECT_EQ(device::FeatureDifferences({name, {}}), DifferencesByLlvm(none)) << name;
  }
}

TEST(X86Cpus, ModelsAreNamedAsLlvmNamesThem) {
  for (uint32_t model = 0; model < 256; ++model) {
    for (const bool is_amd : {false, true}) {
      for (const uint32_t family : {6u, 0x15u, 0x17u, 0x19u, 0x1au}) {
        if (is_amd == (family == 6)) continue;
        const Cpuid cpuid = MakeCpuid(is_amd, family, model, 3 * model);
        llvm::StringRef name;
        RunOnPretendedCpu(cpuid, [&] { name = llvm::sys::getHostCPUName(); });
        EXPECT_EQ(device::ReadX86Cpu(cpuid).name, name.str())
            << (is_amd ? "AMD " : "Intel ") << family << "/" << model;
      }
    }
  }
}

TEST(X86Cpus, FlagsAreReadAsLlvmReadsThem) {
  for (uint32_t seed = 0; seed < 9; ++seed) {
    const bool is_amd = seed % 2 == 0;
    const uint32_t model = is_amd ? 0x11 : seed % 4 == 1 ? 0x8f : 0xfe;
    ExpectLlvmAgrees(MakeCpuid(is_amd, is_amd ? 0x19 : 6, model, seed),
                     "seed " + std::to_string(seed));
  }
}

TEST(X86Cpus, LevelsAreTheHighestThatAProcessorHas) {
  const auto level_of = [](std::string_view name, std::string_view attributes = "") {
    return device::X86LevelOf(device::WithDifferences(
        device::FeaturesOfX86Cpu(name).value_or(device::X86Features()), attributes));
  };
  EXPECT_EQ(level_of("znver4"), "x86-64-v4");
  EXPECT_EQ(level_of("znver4", "-pku,-avx512bw"), "x86-64-v3");
  EXPECT_EQ(level_of("znver3"), "x86-64-v3");
  EXPECT_EQ(level_of("nehalem"), "x86-64-v2");
  EXPECT_EQ(level_of("core2"), "x86-64");
  EXPECT_EQ(level_of("unheard-of"), "");
}

}  // namespace
}  // namespace kiln
