#include "base/process/containment_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr ContainmentFacts kAllMeans = {
    .filters_calls = true, .restricts_files = true, .has_nobody = true};
const std::vector<Contained> kEverybody = {Contained::kCpuProgram, Contained::kCCompiler,
                                           Contained::kNvrtc, Contained::kGpuProgram,
                                           Contained::kAll};

TEST(ContainmentTableTest, AllHoldsForRootAndForOthers) {
  ContainmentFacts facts = kAllMeans;
  for (const bool is_root : {false, true}) {
    facts.is_root = is_root;
    EXPECT_EQ(BrokenContainmentLines(facts, kEverybody), "");
  }
}

TEST(ContainmentTableTest, SaysWhichLinesDoNotHoldAndWhy) {
  ContainmentFacts facts = kAllMeans;
  facts.restricts_files = false;
  const std::string files = BrokenContainmentLines(facts, {Contained::kCpuProgram});
  EXPECT_EQ(
      files,
      "not limited: a CPU program opens files while it is loaded (this kernel has no Landlock)");
  EXPECT_THAT(BrokenContainmentLines(facts, {Contained::kCCompiler, Contained::kNvrtc}),
              AllOf(HasSubstr("a C compiler reads files"), HasSubstr("a NVRTC writes files"),
                    Not(HasSubstr("CPU program"))));
  facts = kAllMeans;
  facts.filters_calls = false;
  EXPECT_THAT(BrokenContainmentLines(facts, {Contained::kCpuProgram}),
              AllOf(HasSubstr("signals"), HasSubstr("no seccomp")));
  facts = kAllMeans;
  facts.is_root = true;
  facts.has_nobody = false;
  facts.namespaces = "no namespaces here";
  EXPECT_THAT(BrokenContainmentLines(facts, {Contained::kCpuProgram}),
              AllOf(HasSubstr("is root"), HasSubstr("no user but root to run programs as")));
  facts.namespaces = "";
  EXPECT_EQ(BrokenContainmentLines(facts, {Contained::kCpuProgram}), "");
  facts.is_root_outside = true;
  EXPECT_THAT(BrokenContainmentLines(facts, {Contained::kCpuProgram}),
              HasSubstr("no user but root to run programs as"));
  facts.drops_privileges = false;
  EXPECT_THAT(BrokenContainmentLines(facts, {Contained::kCpuProgram}),
              HasSubstr("because --no-drop-privileges is given"));
}

}  // namespace
}  // namespace kiln
