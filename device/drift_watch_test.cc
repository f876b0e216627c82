#include "device/drift_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace kiln::device {
namespace {

using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;
using testing::SizeIs;
using State = DriftWatch::State;

constexpr double kStart_s = 1.8e9;
constexpr double kPeriod_s = 60;
constexpr double kRepeat_s = 0.25;

// A runner that reads the canary every minute, and at once again where the watch wants more.
class Runner {
 public:
  // `device` returns the reading at a time since the start.
  explicit Runner(std::function<double(double since_s)> device) : device_(std::move(device)) {}

  void Read() {
    watch.Feed(kStart_s + since_s, device_(since_s));
    ++readings;
  }

  // Goes one period on, and reads.
  void Step() {
    since_s += kPeriod_s;
    Read();
    for (int i = 0; i < 20 && watch.wants_more(); ++i) {
      since_s += kRepeat_s;
      Read();
    }
  }
  void Steps(int count) {
    for (int i = 0; i < count; ++i) Step();
  }
  std::vector<Drift> Spans() { return watch.Spans(kStart_s + since_s); }

  DriftWatch watch;
  double since_s = 0;
  int readings = 0;

 private:
  const std::function<double(double)> device_;
};

// Readings of a device that takes usual_s, with normal noise.
class Noise {
 public:
  Noise(double share, unsigned seed) : random_(seed), normal_(1, share) {}
  double operator()(double usual_s) { return usual_s * std::max(0.5, normal_(random_)); }
  bool Chance(double share) { return std::bernoulli_distribution(share)(random_); }

 private:
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
};

TEST(DriftWatch, LearnsFromTheFirstReadings) {
  DriftWatch watch;
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(watch.Feed(kStart_s + i, 1e-3), State::kLearning);
    EXPECT_TRUE(watch.wants_more());
    EXPECT_EQ(watch.high_s(), 0);
  }
  EXPECT_EQ(watch.Feed(kStart_s + 8, 1e-3), State::kWell);
  EXPECT_FALSE(watch.wants_more());
  EXPECT_NEAR(watch.low_s(), 0.96e-3, 1e-9);
  EXPECT_NEAR(watch.high_s(), 1.04e-3, 1e-9);
  EXPECT_EQ(watch.Sentence(), "");
  EXPECT_THAT(watch.Spans(kStart_s + 9), IsEmpty());
}

// Outliers among the first readings do not count.
TEST(DriftWatch, LearnsBesideOutliers) {
  DriftWatch watch;
  for (int i = 0; i < 9; ++i) watch.Feed(kStart_s + i, i % 4 == 3 ? 9e-3 : 1e-3 + i * 1e-6);
  EXPECT_EQ(watch.state(), State::kWell);
  EXPECT_THAT(watch.high_s(), Le(1.06e-3));
}

TEST(DriftWatch, SteadyNoiseIsNoDrift) {
  for (const double share : {0.001, 0.01, 0.05, 0.2}) {
    for (const unsigned seed : {1u, 2u, 3u}) {
      Noise noise(share, seed);
      Runner runner([&](double) { return noise(1e-3); });
      while (runner.readings < 10'000) runner.Step();
      EXPECT_EQ(runner.watch.state(), State::kWell) << share;
      EXPECT_THAT(runner.Spans(), IsEmpty()) << share << ", seed " << seed;
    }
  }
}

// One reading in fifty is far too long, because something else ran.
TEST(DriftWatch, OutliersAreNoDrift) {
  for (const unsigned seed : {4u, 5u, 6u}) {
    Noise noise(0.01, seed);
    Runner runner([&](double) { return noise(noise.Chance(0.02) ? 3e-3 : 1e-3); });
    while (runner.readings < 10'000) runner.Step();
    EXPECT_THAT(runner.Spans(), IsEmpty()) << "seed " << seed;
  }
}

TEST(DriftWatch, AStepOfTenPercentIsFoundAtOnce) {
  for (const double noise_share : {0.0, 0.005, 0.01}) {
    for (const unsigned seed : {7u, 8u, 9u, 10u}) {
      Noise noise(noise_share, seed);
      double slower = 1;
      Runner runner([&](double) { return noise(1e-3) * slower; });
      runner.Steps(70);
      ASSERT_THAT(runner.Spans(), IsEmpty());
      const double before_s = kStart_s + runner.since_s;
      slower = 1.1;
      runner.Step();
      EXPECT_EQ(runner.watch.state(), State::kDrifting) << noise_share << ", seed " << seed;
      ASSERT_THAT(runner.Spans(), SizeIs(1));
      EXPECT_EQ(runner.Spans()[0].from_s, before_s);
      EXPECT_EQ(runner.Spans()[0].to_s, 0);
      EXPECT_THAT(runner.watch.Sentence(), HasSubstr("the canary took 1."));
    }
  }
}

TEST(DriftWatch, SaysWhatItFound) {
  double reading_s = 1e-3;
  Runner runner([&](double) { return reading_s; });
  runner.Step();
  reading_s = 1.312e-3;
  runner.Step();
  EXPECT_EQ(runner.watch.Sentence(), "the canary took 1.31 ms; 0.96 to 1.04 ms are usual");
  EXPECT_EQ(runner.Spans()[0].reason, runner.watch.Sentence());
  // The sentence is of now, the span's of its begin.
  reading_s = 2e-3;
  runner.Step();
  EXPECT_EQ(runner.watch.Sentence(), "the canary took 2.00 ms; 0.96 to 1.04 ms are usual");
  EXPECT_THAT(runner.Spans()[0].reason, HasSubstr("1.31 ms"));
  EXPECT_EQ(FormatInterval(96e-6, 104e-6), "96.0 to 104 us");
  EXPECT_EQ(FormatInterval(0, 2), "0.00 to 2.00 s");
}

TEST(DriftWatch, TwoSlowReadingsAreNoDrift) {
  DriftWatch watch;
  double now_s = kStart_s;
  for (int i = 0; i < 9; ++i) watch.Feed(++now_s, 1e-3);
  for (int round = 0; round < 100; ++round) {
    EXPECT_EQ(watch.Feed(++now_s, 2e-3), State::kWell);
    EXPECT_TRUE(watch.wants_more());
    EXPECT_EQ(watch.Feed(++now_s, 2e-3), State::kWell);
    EXPECT_EQ(watch.Feed(++now_s, 1e-3), State::kWell);
    EXPECT_FALSE(watch.wants_more());
  }
  EXPECT_NEAR(watch.high_s(), 1.04e-3, 1e-9) << "what is usual has not moved";
}

TEST(DriftWatch, IsWellAgainAfterSomeReadings) {
  double reading_s = 1e-3;
  Runner runner([&](double) { return reading_s; });
  runner.Steps(10);
  const double well_s = kStart_s + runner.since_s;
  reading_s = 1.2e-3;
  runner.Steps(5);
  ASSERT_EQ(runner.watch.state(), State::kDrifting);
  // One good reading between bad ones changes nothing.
  runner.watch.Feed(kStart_s + (runner.since_s += 1), 1e-3);
  EXPECT_TRUE(runner.watch.wants_more());
  EXPECT_EQ(runner.watch.state(), State::kDrifting);
  runner.Step();
  ASSERT_EQ(runner.watch.state(), State::kDrifting);
  reading_s = 1e-3;
  const double again_s = kStart_s + runner.since_s + kPeriod_s;
  runner.Step();
  EXPECT_EQ(runner.watch.state(), State::kWell);
  EXPECT_EQ(runner.watch.Sentence(), "");
  EXPECT_THAT(
      runner.Spans(),
      ElementsAre(Drift{well_s, again_s, "the canary took 1.20 ms; 0.96 to 1.04 ms are usual"}));
  // It can drift again, and then there are two spans.
  reading_s = 1.2e-3;
  runner.Step();
  EXPECT_THAT(runner.Spans(), SizeIs(2));
}

// 0.05% an hour: no two readings differ, and after some hours the device is far slower.
TEST(DriftWatch, ASlowRampIsFound) {
  for (const unsigned seed : {11u, 12u, 13u}) {
    Noise noise(0.003, seed);
    Runner runner([&](double since_s) {
      return noise(1e-3) * (1 + 0.0005 * std::max(0.0, since_s / 3600 - 2));
    });
    double found_at = 0;
    for (int i = 0; i < 60 * 24 * 14 && found_at == 0; ++i) {
      runner.Step();
      if (runner.watch.state() == State::kDrifting) found_at = 0.0005 * (runner.since_s / 3600 - 2);
    }
    EXPECT_THAT(found_at, testing::AllOf(Gt(0.02), Le(0.08))) << "seed " << seed;
  }
}

// The device was busy with something else when the runner joined.
TEST(DriftWatch, ADeviceThatWasSlowWhenItJoinedIsFound) {
  double reading_s = 1.3e-3;
  Runner runner([&](double) { return reading_s; });
  runner.Steps(5);
  ASSERT_THAT(runner.Spans(), IsEmpty()) << "nobody knows yet";
  reading_s = 1e-3;
  const double fast_s = kStart_s + runner.since_s + kPeriod_s;
  runner.Step();
  EXPECT_EQ(runner.watch.state(), State::kWell);
  EXPECT_NEAR(runner.watch.high_s(), 1.04e-3, 1e-9);
  EXPECT_THAT(runner.Spans(),
              ElementsAre(Drift{kStart_s + kPeriod_s, fast_s,
                                "the canary took 1.30 ms; 0.96 to 1.04 ms are usual"}));
  // From then on the old time is a drift.
  reading_s = 1.3e-3;
  runner.Step();
  EXPECT_EQ(runner.watch.state(), State::kDrifting);
}

// A device that gets faster after hours was not slow before.
TEST(DriftWatch, ADeviceMayBecomeFaster) {
  double reading_s = 1e-3;
  Runner runner([&](double) { return reading_s; });
  runner.Steps(100);
  reading_s = 0.8e-3;
  runner.Step();
  EXPECT_EQ(runner.watch.state(), State::kWell);
  EXPECT_THAT(runner.Spans(), IsEmpty());
  EXPECT_NEAR(runner.watch.high_s(), 0.832e-3, 1e-9);
}

// A few fast readings do not move the interval.
TEST(DriftWatch, AFastOutlierChangesNothing) {
  DriftWatch watch;
  double now_s = kStart_s;
  for (int i = 0; i < 100; ++i) watch.Feed(++now_s, i % 10 == 9 ? 0.5e-3 : 1e-3);
  EXPECT_EQ(watch.state(), State::kWell);
  EXPECT_NEAR(watch.low_s(), 0.96e-3, 1e-9);
}

TEST(DriftWatch, OldSpansAreForgottenAndTheirNumberIsBounded) {
  double reading_s = 1e-3;
  Runner runner([&](double) { return reading_s; });
  for (int i = 0; i < 150; ++i) {
    reading_s = 1e-3;
    runner.Step();
    reading_s = 2e-3;
    runner.Step();
  }
  EXPECT_THAT(runner.Spans(), SizeIs(100));
  EXPECT_EQ(runner.Spans().back().to_s, 0);
  const double later_s = kStart_s + runner.since_s + 25 * 3600;
  EXPECT_THAT(runner.watch.Spans(later_s), SizeIs(1)) << "the one that goes on";
}

}  // namespace
}  // namespace kiln::device
