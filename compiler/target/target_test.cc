#include "compiler/target/target.h"

#include <map>
#include <set>

#include "base/status_testing.h"
#include "compiler/target/math.h"
#include "compiler/target/recorded.h"

namespace kiln::target {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Target, PrintIsCanonicalAndParses) {
  for (const auto& [text, canonical] : std::vector<std::pair<std::string, std::string>>{
           {"llvm", "llvm"},
           {"  llvm   -num-cores=2  -mcpu=znver4 ", "llvm -mcpu=znver4 -num-cores=2"},
           {"llvm -mattr=+avx2,-avx512f", "llvm -mattr=+avx2,-avx512f"},
           {"cuda -keys=cuda,gpu -arch=sm_86 -max_num_threads=1024 -thread_warp_size=32",
            "cuda -arch=sm_86 -keys=cuda,gpu -max_num_threads=1024 -thread_warp_size=32"},
           {"cuda --arch=sm_90a", "cuda -arch=sm_90a"},
           {"cuda -math=tf32 -arch=sm_90", "cuda -arch=sm_90 -math=tf32"},
           {"null -num-cores=4", "null -num-cores=4"}}) {
    ASSERT_OK_AND_ASSIGN(const Target target, ParseTarget(text));
    EXPECT_EQ(PrintTarget(target), canonical);
    ASSERT_OK_AND_ASSIGN(const Target again, ParseTarget(canonical));
    EXPECT_EQ(again, target);
  }
}

TEST(Target, RefusesWithTheReason) {
  auto refused = [](std::string_view text, auto message) {
    EXPECT_THAT(ParseTarget(text), StatusIs(StatusCode::kInvalidArgument, message)) << text;
  };
  refused("", HasSubstr("the target is empty"));
  refused("opencl", AllOf(HasSubstr("unknown target 'opencl'"), HasSubstr("llvm, cuda or null")));
  refused("llvm -arch=sm_90", AllOf(HasSubstr("no option 'arch'"), HasSubstr("mcpu")));
  refused("cuda -mcpu=x", AllOf(HasSubstr("no option 'mcpu'"), HasSubstr("arch")));
  refused("llvm znver4", HasSubstr("expected options like -mcpu=znver4"));
  refused("llvm -mcpu", HasSubstr("has no value"));
  refused("llvm -mcpu=a -mcpu=b", HasSubstr("given twice"));
  refused("llvm -num-cores=0", HasSubstr("positive whole number"));
  refused("llvm -num-cores=99999999999", HasSubstr("positive whole number"));
  refused("cuda -arch=90", HasSubstr("like sm_90"));
  refused("cuda -arch=sm_", HasSubstr("like sm_90"));
  refused("cuda -math=fast", HasSubstr("expected tf32"));
  refused("llvm -math=tf32", HasSubstr("no option 'math'"));
  refused("llvm -mcpu=\"x\"", HasSubstr("printable ASCII"));
  refused("llvm -", HasSubstr("no option ''"));
  refused("llvm -opt-level=3", AllOf(HasSubstr("-opt-level=3"), HasSubstr("leave it out")));
  refused("llvm -mabi=lp64d", HasSubstr("-mabi=lp64d"));
  refused("null -mfloat-abi=hard", HasSubstr("-mfloat-abi=hard"));
  refused("llvm -vector-width=100", HasSubstr("128, 256 or 512"));
  refused("cuda -registers_per_block=100", HasSubstr("768 or more"));
  refused("cuda -vector_unit_bytes=3", HasSubstr("4, 8 or 16"));
}

TEST(Target, RecordedOnesMayHaveOptionsOfOtherCompilers) {
  ASSERT_OK_AND_ASSIGN(
      const RecordedTarget recorded,
      ParseRecordedTarget("llvm -keys=cpu -opt-level=3 -mcpu=znver4 --link-params=0"));
  EXPECT_EQ(PrintTarget(recorded.target), "llvm -keys=cpu -mcpu=znver4");
  EXPECT_THAT(recorded.dropped, ::testing::ElementsAre("-opt-level=3", "--link-params=0"));
  EXPECT_THAT(ParseRecordedTarget("llvm -nonsense=1"),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no option 'nonsense'")));
}

// Each option with an effect changes a value that is derived from the target.
TEST(Target, EveryOptionWithAnEffectIsReadSomewhere) {
  const std::map<std::string_view, std::string_view> values = {
      {"arch", "sm_80"},
      {"cache_line_bytes", "128"},
      {"math", "tf32"},
      {"max_local_memory_per_block", "4096"},
      {"max_num_threads", "256"},
      {"max_shared_memory_per_block", "1024"},
      {"max_threads_per_block", "256"},
      {"max_vthread_extent", "4"},
      {"num-cores", "3"},
      {"registers_per_block", "1536"},
      {"thread_warp_size", "16"},
      {"vector-width", "128"},
      {"vector_unit_bytes", "8"}};
  // LLVM reads these options in compiler/codegen/llvm/machine.cc, which has tests for them.
  const std::set<std::string_view> elsewhere = {"mattr", "mcpu", "mtriple"};
  for (const TargetKind* kind : {&kLlvm, &kCuda}) {
    for (const TargetOption& option : kind->options) {
      if (option.effect == OptionEffect::kNone || elsewhere.contains(option.name)) continue;
      ASSERT_TRUE(values.contains(option.name))
          << option.name << ": say here what it is read for, or make it a foreign one";
      const Target plain{.kind = kind};
      Target with = plain;
      with.options[std::string(option.name)] = values.at(option.name);
      EXPECT_TRUE(DefaultHardware(plain, 8) != DefaultHardware(with, 8) ||
                  plain.GpuArch() != with.GpuArch() || AllowsTf32(plain) != AllowsTf32(with))
          << option.name;
    }
  }
}

TEST(Target, WhatADeviceDidNotSayIsTheTargets) {
  ASSERT_OK_AND_ASSIGN(const Target gpu, ParseTarget("cuda -arch=sm_90"));
  EXPECT_EQ(FillHardware(gpu, HardwareParams()), DefaultHardware(gpu, 0));
  HardwareParams want = DefaultHardware(gpu, 0);
  want.max_threads_per_block = 512;
  want.max_shared_memory_per_block_bytes = 232448;
  HardwareParams known = HardwareParamsOf(HardwareRow{});
  known.max_threads_per_block = 512;
  known.max_shared_memory_per_block_bytes = 232448;
  EXPECT_EQ(FillHardware(gpu, known), want);
  ASSERT_OK_AND_ASSIGN(const Target cpu, ParseTarget("llvm"));
  EXPECT_EQ(FillHardware(cpu, known), known);
}

TEST(Target, Hardware) {
  ASSERT_OK_AND_ASSIGN(const Target cpu, ParseTarget("llvm"));
  EXPECT_EQ(DefaultHardware(cpu, 6), (HardwareParams{.num_cores = 6}));
  ASSERT_OK_AND_ASSIGN(const Target two, ParseTarget("llvm -num-cores=2"));
  EXPECT_EQ(DefaultHardware(two, 6).num_cores, 2);
  ASSERT_OK_AND_ASSIGN(const Target gpu, ParseTarget("cuda -arch=sm_90"));
  EXPECT_EQ(DefaultHardware(gpu, 6), (HardwareParams{.num_cores = -1,
                                                     .vector_unit_bytes = 16,
                                                     .cache_line_bytes = 64,
                                                     .max_shared_memory_per_block_bytes = 49152,
                                                     .max_local_memory_per_block_bytes = 2147483647,
                                                     .max_threads_per_block = 1024,
                                                     .max_vthread_extent = 8,
                                                     .warp_size = 32}));
  EXPECT_THAT(HardwareRowOf(DefaultHardware(gpu, 6)), testing::Each(testing::Ne(0)));
  EXPECT_TRUE(gpu.is_gpu());
  EXPECT_EQ(gpu.Option("arch"), "sm_90");
  EXPECT_EQ(gpu.Option("model"), "");
}

}  // namespace
}  // namespace kiln::target
