#include "scheduler/dispatch/builder_trust.h"

#include <gtest/gtest.h>

#include <string>

namespace kiln::scheduler {
namespace {

int DueOf(BuilderTrust& trust, const std::string& builder, int programs) {
  int due = 0;
  for (int i = 0; i < programs; ++i) due += trust.IsDue(builder);
  return due;
}

TEST(BuilderTrust, TheFirstProgramsAndAFewLaterOnesAreChecked) {
  BuilderTrust trust;
  EXPECT_EQ(DueOf(trust, "a", BuilderTrust::kFirst), BuilderTrust::kFirst);
  EXPECT_EQ(DueOf(trust, "a", 10 * BuilderTrust::kOneOf), 10);
  EXPECT_EQ(DueOf(trust, "b", BuilderTrust::kFirst), BuilderTrust::kFirst) << "another builder";
}

TEST(BuilderTrust, ABuilderThatIsDoubtedIsCheckedAnew) {
  BuilderTrust trust;
  DueOf(trust, "a", 3 * BuilderTrust::kFirst);
  trust.Doubt("a");
  EXPECT_EQ(DueOf(trust, "a", BuilderTrust::kFirst), BuilderTrust::kFirst);
}

TEST(BuilderTrust, BuildersWithoutEndTakeNoMemoryWithoutEnd) {
  BuilderTrust trust;
  DueOf(trust, "first", 2 * BuilderTrust::kFirst);
  for (int i = 0; i < 20'000; ++i) EXPECT_TRUE(trust.IsDue(std::to_string(i)));
  // It was forgotten, and is checked again.
  EXPECT_TRUE(trust.IsDue("first"));
}

}  // namespace
}  // namespace kiln::scheduler
