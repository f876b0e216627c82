#include "store/log_version.h"

#include <gtest/gtest.h>

namespace kiln::store {
namespace {

TEST(LogVersion, KnownVersionsAreNotReported) {
  for (const char* line : {R"({"i": [["k", "t"], [[], []]], "r": [[1], 0, 1, 1], "v": "v0.6"})",
                           R"({"v":"v0.1","i":[],"r":[]})", R"({"i": [], "r": []})", "", "{",
                           "\"v\"", R"({"input": [], "version": 0.2, "tvm_version": "0.8.dev0"})",
                           R"({"i": [["[\"v\", 8]", "t"], [[], []]], "r": []})"}) {
    EXPECT_EQ(UnknownLogVersion(line), "") << line;
  }
}

TEST(LogVersion, UnknownVersionsAreReported) {
  EXPECT_EQ(UnknownLogVersion(R"({"i": [], "r": [], "v": "v0.9"})"), "v0.9");
  EXPECT_EQ(UnknownLogVersion(R"({"v":"7","i":[],"r":[]})"), "7");
  EXPECT_EQ(UnknownLogVersion(R"({"input": [], "version": 0.3, "tvm_version": "0.9"})"), "0.3");
  EXPECT_EQ(UnknownLogVersion("{\"v\": \"v0.9\"}\r"), "v0.9");
}

}  // namespace
}  // namespace kiln::store
