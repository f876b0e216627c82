#include "compiler/dag/ops/known_workloads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/status_testing.h"

namespace kiln::dag {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(KnownWorkloads, AreFoundByTheirKeys) {
  EXPECT_EQ(Resnet18Tasks().size(), 24u);
  EXPECT_THAT(KnownByKey("[\"none\"]"), IsEmpty());
  const auto winograd = KnownByKey(
      R"(["1097323f3970e5c881ad3a0028ca79cb", [1, 14, 14, 256], [4, 4, 256, 256], [1, 1, 1, 256], [1, 14, 14, 256]])");
  ASSERT_THAT(winograd, SizeIs(1)) << "line 1 of the log";
  EXPECT_EQ(winograd[0]->workload->Description(),
            "conv2d_winograd_nhwc 1,14,14,256,256 + bias + relu");
  const auto pool =
      KnownByKey(R"(["8c53ca2904398da2889aa7508082d7bb", [1, 7, 7, 512], [1, 1, 1, 512]])");
  ASSERT_THAT(pool, SizeIs(1)) << "line 5";
  EXPECT_STREQ(pool[0]->workload->op, "global_avg_pool2d_nhwc");
}

TEST(KnownWorkloads, EachComputationIsThereOnceForEachKey) {
  std::set<std::pair<std::string, std::string>> all;
  for (const KnownComputation& computation : KnownComputations()) {
    EXPECT_TRUE(all.emplace(computation.id, computation.key).second)
        << computation.workload->Description();
  }
  // The key of TVM 0.19.
  const auto dense = KnownByKey(
      R"(["4498039d22bebcc401f6980d4f42290e", [1024, 1024], [1024, 1024], [1024, 1024]])");
  ASSERT_THAT(dense, SizeIs(1));
  EXPECT_EQ(dense[0]->workload->Description(), "matmul 1024,1024,1024");
  EXPECT_THAT(KnownByKey(KnownComputations().front().key), SizeIs(1));
}

TEST(KnownWorkloads, MatrixProductsAreThereInEachType) {
  for (const char* dtype :
       {"float32", "float16", "bfloat16", "int8", "float8_e4m3fn", "float8_e5m2"}) {
    const std::vector<KnownWorkload> workloads = MatrixWorkloads(dtype);
    EXPECT_GE(workloads.size(), 12u);
    for (const KnownWorkload& workload : workloads) {
      SCOPED_TRACE(workload.Description());
      EXPECT_OK(workload.Build().status());
    }
  }
}

}  // namespace
}  // namespace kiln::dag
