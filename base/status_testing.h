// gtest matchers and macros for Status and StatusOr.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace kiln {
inline const Status& StatusOf(const Status& status) { return status; }
template <typename T>
const Status& StatusOf(const StatusOr<T>& result) {
  return result.status();
}

// Use: EXPECT_THAT(f(), StatusIs(StatusCode::kInvalidArgument, HasSubstr("axis 3")));
// Both arguments may be values or matchers (testing::_: any).
MATCHER_P2(StatusIs, code_matcher, message_matcher, "") {
  const Status& status = StatusOf(arg);
  *result_listener << status.ToString();
  return testing::ExplainMatchResult(code_matcher, status.code(), result_listener) &&
         testing::ExplainMatchResult(message_matcher, std::string(Message(status)),
                                     result_listener);
}
}  // namespace kiln

#define ASSERT_OK(expr)                                             \
  do {                                                              \
    auto&& kiln_result = (expr);                                    \
    ASSERT_TRUE(kiln_result.ok()) << ::kiln::StatusOf(kiln_result); \
  } while (0)
#define EXPECT_OK(expr)                                             \
  do {                                                              \
    auto&& kiln_result = (expr);                                    \
    EXPECT_TRUE(kiln_result.ok()) << ::kiln::StatusOf(kiln_result); \
  } while (0)
// Use: ASSERT_OK_AND_ASSIGN(auto x, Compute());
#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_INNER(KILN_CONCAT(kiln_or_, __LINE__), lhs, expr)
#define ASSERT_OK_AND_ASSIGN_INNER(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  ASSERT_TRUE(tmp.ok()) << tmp.status();           \
  lhs = std::move(tmp).value()
