#include "compiler/dag/old_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_key.h"

namespace kiln::dag {
namespace {

using testing::Contains;

std::vector<std::string> KeysOf(const std::string& op, const std::string& args,
                                const std::vector<std::string>& epilogue = {}) {
  const auto dag = BuildOp(op, args, {.epilogue = epilogue});
  EXPECT_OK(dag.status());
  return dag.ok() ? OldWorkloadKeys(**dag) : std::vector<std::string>();
}

// Keys of the log of a ResNet-50 that TVM's documentation was built with (v0.5 lines of December
// 2020, keys of 2021).
TEST(OldKeysTest, OfLogsWhoseShapesAreInOneList) {
  EXPECT_THAT(KeysOf("conv2d_nhwc", "1,56,56,64,64,1,1,1,0", {"bias", "relu"}),
              Contains("[\"6b7583cf23c7c37d3212cad9d06e58c1\", 1, 56, 56, 64, 1, 1, 64, 64, 1, 1, "
                       "1, 64, 1, 56, 56, 64]"));
  EXPECT_THAT(KeysOf("conv2d_nhwc", "1,56,56,64,64,3,3,1,1", {"bias", "relu"}),
              Contains("[\"2350d19dc42a0665244368384c66b3a5\", 1, 56, 56, 64, 3, 3, 64, 64, 1, 1, "
                       "1, 64, 1, 56, 56, 64]"));
  EXPECT_THAT(KeysOf("conv2d_nhwc", "1,224,224,64,3,7,7,2,3", {"bias", "relu"}),
              Contains("[\"12b88bedece6984af589a28b43e0f3c4\", 1, 224, 224, 3, 7, 7, 3, 64, 1, 1, "
                       "1, 64, 1, 112, 112, 64]"));
  EXPECT_THAT(KeysOf("conv2d_nhwc", "1,28,28,1024,512,1,1,2,0"),
              Contains("[\"f4380bb1dc62422a69ad4a1a9771f927\", 1, 28, 28, 512, 1, 1, 512, 1024, 1, "
                       "14, 14, 1024]"));
  EXPECT_THAT(KeysOf("softmax", "1,1000"),
              Contains("[\"d7b65649a4dd54becea0a52aabbc5af5\", 1, 1000, 1, 1000]"));
}

// Keys of a log of TLCBench for a MobileNet V2, and of a dense layer in the log of a ResNet-18
// (v0.3 and v0.4 lines of 2020).
TEST(OldKeysTest, OfLogsThatHaveAHashAlone) {
  EXPECT_THAT(KeysOf("conv2d_nchw", "1,7,7,160,480,1,1,1,0", {"bias"}),
              Contains("[\"3cc58ce31c8f1a01567fdcbb2a1fbcbd\"]"));
  EXPECT_THAT(KeysOf("conv2d_nchw", "1,1,1,1000,1280,1,1,1,0"),
              Contains("[\"ac8f944505f7dcb09c9860ca07b4327d\"]"));
  constexpr char kDense[] = R"(
input data: float32[1, 512]
input weight: float32[1000, 512]
T_matmul_NT[i: 1, j: 1000] = sum(k: 512) data[i, k] * weight[j, k]
input bias: float32[1000]
T_add[ax0: 1, ax1: 1000] = T_matmul_NT[ax0, ax1] + bias[ax1]
)";
  ASSERT_OK_AND_ASSIGN(const DagPtr dense, ParseDag(kDense));
  EXPECT_THAT(OldWorkloadKeys(*dense), Contains("[\"d09dc1a6bb90d59c91b68989ad3492ff\"]"));
}

TEST(OldKeysTest, AreEachOnceAndNoneOfToday) {
  for (const char* op : {"matmul", "softmax"}) {
    const auto dag = BuildOp(op, op == std::string("matmul") ? "64,64,64" : "16,16", {});
    ASSERT_OK(dag.status());
    const std::vector<std::string> keys = OldWorkloadKeys(**dag);
    EXPECT_FALSE(keys.empty());
    std::set<std::string> all(keys.begin(), keys.end());
    EXPECT_EQ(all.size(), keys.size());
    for (const std::string& key : WorkloadKeys(**dag)) EXPECT_FALSE(all.contains(key)) << key;
  }
}

TEST(OldKeysTest, WhatWasPrintedInAnUnknownWayHasNoHashAlone) {
  const auto has_hash_alone = [](const DagPtr& dag) {
    const std::vector<std::string> keys = OldWorkloadKeys(*dag);
    // A key has 32 digits in quotes and brackets.
    constexpr size_t kLength = 36;
    return std::any_of(keys.begin(), keys.end(),
                       [](const std::string& key) { return key.size() == kLength; });
  };
  ASSERT_OK_AND_ASSIGN(const DagPtr sum, ParseDag("input A: float32[8, 16]\n"
                                                  "B[i: 8] = sum(k: 16) A[i, k]\n"));
  EXPECT_TRUE(has_hash_alone(sum));
  ASSERT_OK_AND_ASSIGN(const DagPtr product, ParseDag("input A: float32[8, 16]\n"
                                                      "B[i: 8] = prod(k: 16) A[i, k]\n"));
  EXPECT_FALSE(has_hash_alone(product));
}

}  // namespace
}  // namespace kiln::dag
