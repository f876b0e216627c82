#include "scheduler/values/request_trace.h"

#include <gtest/gtest.h>

namespace kiln::scheduler {
namespace {

constexpr char kParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(RequestTraceTest, BothPartsAreFoundAgain) {
  const std::string kept = KeptRequest("4f3a", kParent);
  EXPECT_EQ(RequestIdIn(kept), "4f3a");
  EXPECT_EQ(TraceparentIn(kept), kParent);
}

TEST(RequestTraceTest, EitherPartMayBeMissing) {
  EXPECT_EQ(KeptRequest("", ""), "");
  EXPECT_EQ(KeptRequest("4f3a", ""), "4f3a");
  EXPECT_EQ(TraceparentIn("4f3a"), "");
  EXPECT_EQ(RequestIdIn("an id with blanks"), "an id with blanks");
  const std::string a = KeptRequest("", kParent), b = KeptRequest("", kParent);
  EXPECT_EQ(TraceparentIn(a), kParent);
  EXPECT_NE(RequestIdIn(a), "");
  EXPECT_NE(a, b) << "two submissions in one trace are two jobs";
}

TEST(RequestTraceTest, WhatIsNoTraceparentIsLeftOut) {
  EXPECT_EQ(KeptRequest("4f3a", "nonsense"), "4f3a");
}

}  // namespace
}  // namespace kiln::scheduler
