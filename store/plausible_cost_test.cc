#include "store/plausible_cost.h"

#include "base/status_testing.h"
#include "store/record_testing.h"

namespace kiln::store {
namespace {

using testing::HasSubstr;

Record WithCost(double cost_s, std::string key = R"(["hash", [4, 4], [64, 64]])") {
  Record record = TestRecord("j", 0, cost_s);
  record.workload_key = std::move(key);
  return record;
}

TEST(Plausible, WhatNoDeviceCanDoIsRefused) {
  EXPECT_OK(CheckPlausible(WithCost(1e-3), 1e12));
  EXPECT_OK(CheckPlausible(WithCost(1e-3), 9e12));
  EXPECT_THAT(CheckPlausible(WithCost(1e-3), 2e13),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("2e+13 operations would be 2.0e+16 a second")));
  EXPECT_THAT(CheckPlausible(WithCost(1e-15), 0),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("cost 1e-15 s is not plausible: expected at least 1e-09 s")));
  Record one = WithCost(1e-3);
  one.costs_s.push_back(1e-12);
  EXPECT_THAT(CheckPlausible(one, 0), StatusIs(StatusCode::kInvalidArgument, HasSubstr("1e-12")));
  one.error = 5;
  EXPECT_OK(CheckPlausible(one, 1e30));
}

TEST(Plausible, TheOutputIsWritten) {
  const std::string large = R"(["hash", [4], [100000, 100000]])";
  EXPECT_OK(CheckPlausible(WithCost(1e-3, large), 0));
  EXPECT_THAT(CheckPlausible(WithCost(1e-6, large), 0),
              StatusIs(StatusCode::kInvalidArgument,
                       HasSubstr("1e+10 elements of its output would be 1.0e+16 bytes a second")));
  // Keys that tell no output shape.
  for (const char* key : {"", "[]", "[\"pool\", 3]", "[\"a\", [1, x]]", "[\"a\", []]", "["}) {
    SCOPED_TRACE(key);
    EXPECT_OK(CheckPlausible(WithCost(1e-8, key), 0));
  }
}

}  // namespace
}  // namespace kiln::store
