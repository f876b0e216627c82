#include "scheduler/dispatch/builder_trust.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace kiln::scheduler
