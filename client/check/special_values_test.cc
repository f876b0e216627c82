#include "client/check/special_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/status_testing.h"
#include "compiler/dag/ops/registry.h"

namespace kiln::client {
namespace {

TEST(SpecialValuesTest, EveryOperatorHasAWorkload) {
  std::set<std::string> covered;
  for (const dag::KnownWorkload& workload : SpecialValueWorkloads()) {
    EXPECT_OK(workload.Build());
    covered.insert(workload.op);
  }
  for (const dag::OpInfo& op : dag::AllOps()) EXPECT_TRUE(covered.contains(op.name)) << op.name;
}

TEST(SpecialValuesTest, OfThisCpu) {
  for (const char* only : {"max 37,60", "softmax 19,128"}) {
    ASSERT_OK_AND_ASSIGN(const int status,
                         CheckSpecialValues({.target = "llvm", .only = only, .candidates = 1},
                                            /*json=*/false));
    EXPECT_EQ(status, 0);
  }
  EXPECT_THAT(CheckSpecialValues({.target = "llvm", .only = "nothing"}, false),
              StatusIs(StatusCode::kNotFound, testing::HasSubstr("nothing")));
}

}  // namespace
}  // namespace kiln::client
