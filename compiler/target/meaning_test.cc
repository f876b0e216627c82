#include "compiler/target/meaning.h"

#include <gtest/gtest.h>

namespace kiln::target {
namespace {

constexpr const char kHere[] = "llvm -mattr=-pku,-rdpru -mcpu=znver4 -num-cores=2";

HardwareParams Cores(int cores) {
  HardwareParams hardware;
  hardware.num_cores = cores;
  return hardware;
}

bool Same(std::string_view a, std::string_view b, int cores_a = 0, int cores_b = 0) {
  const bool same = MeanSame(a, Cores(cores_a), b, Cores(cores_b));
  EXPECT_EQ(MeanSame(b, Cores(cores_b), a, Cores(cores_a)), same) << a << " / " << b;
  return same;
}

TEST(Meaning, WhatHasNoEffectOnCodeIsNoDifference) {
  EXPECT_TRUE(Same("llvm -keys=cpu -mcpu=znver4", kHere));
  EXPECT_TRUE(Same(
      "llvm -keys=cpu -libs=mkl -model=epyc -device=x -tag=t -mcpu=znver4 -num-cores=2", kHere));
  EXPECT_TRUE(Same("llvm -num-cores=2 -mcpu=znver4 -mattr=-rdpru,-pku", kHere));
  EXPECT_TRUE(Same("cuda -keys=cuda,gpu -arch=sm_90 -max_num_threads=1024 -thread_warp_size=32",
                   "cuda -arch=sm_90"));
  EXPECT_TRUE(Same("cuda -arch=sm_90 -registers_per_block=65536", "cuda -arch=sm_90"));
}

TEST(Meaning, OptionsOfOtherCompilersAreNoDifference) {
  EXPECT_TRUE(Same("llvm -mcpu=znver4 -opt-level=0 -mfloat-abi=hard -link-params=0", kHere));
}

TEST(Meaning, ALevelIsEachProcessorThatHasNoHigherOne) {
  EXPECT_TRUE(Same("llvm -mcpu=x86-64-v4 -num-cores=2", kHere));
  EXPECT_TRUE(Same("llvm -mcpu=x86-64-v4 -num-cores=2", "llvm -mcpu=sapphirerapids -num-cores=2"));
  EXPECT_TRUE(Same("llvm -mcpu=x86-64-v3", "llvm -mcpu=znver3"));
  EXPECT_TRUE(Same("llvm -mcpu=x86-64-v3", "llvm -mattr=-avx512f,-evex512 -mcpu=znver4"));
  EXPECT_FALSE(Same("llvm -mcpu=x86-64-v4 -num-cores=4", kHere)) << "another machine";
  EXPECT_FALSE(Same("llvm -mcpu=x86-64-v3", kHere)) << "code for less than it has";
  EXPECT_FALSE(Same("llvm -mcpu=x86-64-v4", "llvm -mcpu=znver3")) << "code for more than it has";
  EXPECT_FALSE(Same("llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3"));
  EXPECT_FALSE(Same("llvm -mcpu=x86-64-v4", "llvm -mcpu=unheard-of"));
  EXPECT_FALSE(Same("llvm -mcpu=x86-64-v4 -mattr=+avx512vnni", kHere)) << "both say features";
}

TEST(Meaning, OptionsThatChangeCodeAreADifference) {
  EXPECT_FALSE(Same("llvm -keys=cpu -mcpu=sapphirerapids", kHere));
  EXPECT_FALSE(Same("llvm -keys=cpu", kHere)) << "for any processor";
  EXPECT_FALSE(Same("llvm -mcpu=znver4 -mattr=+avx512vnni", kHere));
  EXPECT_FALSE(Same("llvm -mcpu=znver4 -num-cores=64", kHere));
  EXPECT_FALSE(Same("llvm -mcpu=znver4 -vector-width=256", kHere));
  EXPECT_FALSE(Same("cuda -arch=sm_86", "cuda -arch=sm_90"));
  EXPECT_FALSE(Same("cuda -arch=sm_90 -math=tf32", "cuda -arch=sm_90"));
  EXPECT_FALSE(Same("cuda -arch=sm_90", "llvm -mcpu=znver4"));
  EXPECT_FALSE(Same("cuda", "cuda -arch=sm_90"));
}

// A log of a machine with more cores tells this only in its hardware.
TEST(Meaning, CoresAreThoseOfTheHardwareWhereTheTextDoesNotSay) {
  EXPECT_TRUE(Same("llvm -keys=cpu -mcpu=znver4", kHere, 2));
  EXPECT_TRUE(Same("llvm -keys=cpu -mcpu=znver4", kHere, 1)) << "of two threads each";
  EXPECT_FALSE(Same("llvm -keys=cpu -mcpu=znver4", kHere, 64));
  EXPECT_FALSE(Same("llvm -mcpu=znver4 -num-cores=1", "llvm -mcpu=znver4", 0, 2))
      << "fewer are used";
  EXPECT_TRUE(Same("llvm -mcpu=znver4 -num-cores=2", "llvm -mcpu=znver4", 64, 2));
}

TEST(Meaning, TextsThatAreNoTargetsAreComparedAsTheyStand) {
  EXPECT_TRUE(Same("vulkan -x", "vulkan -x"));
  EXPECT_FALSE(Same("vulkan -x", "vulkan  -x"));
  EXPECT_FALSE(Same("vulkan -x", "llvm"));
}

}  // namespace
}  // namespace kiln::target
