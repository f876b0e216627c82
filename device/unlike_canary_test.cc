#include "device/unlike_canary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::device {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<bool> Unlike(const std::vector<double>& canaries_s) {
  return UnlikeCanaries(canaries_s, kUnlikeGpuShare);
}

TEST(UnlikeCanary, DevicesThatAreAboutAsFastAreAlike) {
  EXPECT_THAT(Unlike({}), IsEmpty());
  EXPECT_THAT(Unlike({1e-3}), ElementsAre(false));
  EXPECT_THAT(Unlike({1e-3, 1.07e-3, 0.94e-3}), ElementsAre(false, false, false));
}

TEST(UnlikeCanary, OneOfSeveralIsUnlikeTheOthers) {
  EXPECT_THAT(Unlike({1e-3, 1.02e-3, 1.3e-3, 0.99e-3}), ElementsAre(false, false, true, false));
  EXPECT_THAT(Unlike({1e-3, 1.02e-3, 0.8e-3}), ElementsAre(false, false, true));
}

TEST(UnlikeCanary, TheSlowerOfTwoIsUnlike) {
  EXPECT_THAT(Unlike({1.2e-3, 1e-3}), ElementsAre(true, false));
}

TEST(UnlikeCanary, ADeviceThatWasNotTimedIsNotJudged) {
  EXPECT_THAT(Unlike({0, 1e-3, 0, 1.5e-3}), ElementsAre(false, false, false, true));
  EXPECT_THAT(Unlike({0, 0}), ElementsAre(false, false));
  EXPECT_EQ(UsualCanary(std::vector<double>{0, 0}), 0);
  EXPECT_EQ(UsualCanary(std::vector<double>{0, 2e-3, 1e-3}), 1e-3);
}

}  // namespace
}  // namespace kiln::device
