#include "client/fleet/submit_pause.h"

#include <gtest/gtest.h>

namespace kiln::client {
namespace {

TEST(SubmitPause, DoublesUpToItsLimit) {
  SubmitPause pause;
  EXPECT_FALSE(pause.Lasts(0));
  double now_s = 100;
  for (const double expected_s : {10, 20, 40, 80, 160, 300, 300}) {
    EXPECT_EQ(pause.Begin(now_s), expected_s);
    EXPECT_TRUE(pause.Lasts(now_s + expected_s - 0.1));
    now_s += expected_s;
    EXPECT_FALSE(pause.Lasts(now_s));
  }
}

TEST(SubmitPause, SeveralFailuresAtOnceAreOne) {
  SubmitPause pause;
  EXPECT_EQ(pause.Begin(100), 10);
  EXPECT_EQ(pause.Begin(103), 7);
  EXPECT_EQ(pause.Begin(110), 20);
}

TEST(SubmitPause, ASuccessEndsIt) {
  SubmitPause pause;
  pause.Begin(0);
  pause.Begin(10);
  pause.Reset();
  EXPECT_FALSE(pause.Lasts(11));
  EXPECT_EQ(pause.Begin(11), 10);
}

}  // namespace
}  // namespace kiln::client
