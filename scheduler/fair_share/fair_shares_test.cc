#include "scheduler/fair_share/fair_shares.h"

#include <thread>

#include "base/status_testing.h"
#include "store/memory_store.h"

namespace kiln::scheduler {
namespace {

using testing::HasSubstr;

constexpr double kNear = 0.05;

class FairSharesTest : public testing::Test {
 protected:
  void SetUp() override { Restart(); }

  // Ends the process in order, and starts another one.
  void Restart() {
    shares_.reset();
    // No thread writes in the middle of a test.
    shares_.emplace(*store_, FairShares::Options{.write_every = std::chrono::hours(1)}, clock_);
    ASSERT_OK(shares_->Start());
  }
  void Pass(double seconds) { clock_.Advance(absl::Seconds(seconds)); }
  void Take(const std::string& user) {
    ASSERT_TRUE(shares_->Reserve(user, std::chrono::steady_clock::now(), {}));
    shares_->BeginDevice(user);
  }
  // Lets the user hold a device for so long, alone.
  void Had(const std::string& user, double seconds) {
    Take(user);
    Pass(seconds);
    shares_->EndDevice(user);
  }
  double DeviceSeconds(const std::string& user) {
    for (const FairShares::User& one : shares_->Users()) {
      if (one.name == user) return one.device_s;
    }
    return -1;
  }
  // How far the user is behind `other`; the one with less is next.
  double Behind(const std::string& user, const std::string& other) {
    return shares_->Use(user) - shares_->Use(other);
  }

  FakeClock clock_;
  std::unique_ptr<store::Store> store_ = store::NewMemoryStore();
  std::optional<FairShares> shares_;
};

TEST_F(FairSharesTest, UseGrowsAsTimeGoesByAndByTheWeight) {
  ASSERT_OK(shares_->SetLimits("bob", {.weight = 3}));
  Take("ann");
  Take("bob");
  Take("bob");
  Pass(30);
  EXPECT_NEAR(Behind("ann", "bob"), 30 - 20, kNear);
  EXPECT_NEAR(DeviceSeconds("bob"), 60, kNear);
  Pass(30);
  EXPECT_NEAR(Behind("ann", "bob"), 60 - 40, kNear);
}

TEST_F(FairSharesTest, TheUseOfTheLastDaysCountsButForAHeadStartAtMost) {
  Had("carl", 100'000);
  Pass(61);
  Had("ann", 100);
  Pass(61);
  Take("ann");
  shares_->BeginAsking("bob");
  EXPECT_NEAR(Behind("ann", "bob"), 100, kNear);
  shares_->BeginAsking("carl");
  EXPECT_NEAR(Behind("carl", "ann"), 300, kNear) << "carl waits for the head start and no longer";
}

TEST_F(FairSharesTest, AWeekLaterHalfIsForgotten) {
  Had("ann", 100);
  Pass(7 * 24 * 3600);
  EXPECT_NEAR(DeviceSeconds("ann"), 50, kNear);
}

TEST_F(FairSharesTest, AUserWhoComesBackSoonKeepsHisPlace) {
  Had("ann", 1'000);
  Pass(100);
  Take("ann");
  shares_->BeginAsking("bob");
  EXPECT_NEAR(Behind("ann", "bob"), 300, kNear);
  // Bob has had his head start.
  shares_->EndDevice("ann");
  shares_->BeginAsking("ann");
  Had("bob", 300);
  EXPECT_NEAR(Behind("ann", "bob"), 0, kNear);
  shares_->EndAsking("bob");
  Pass(50);
  shares_->BeginAsking("bob");
  EXPECT_NEAR(Behind("ann", "bob"), 0, kNear) << "a second job brings no second head start";
  shares_->EndAsking("bob");
  Pass(61);
  shares_->BeginAsking("bob");
  EXPECT_NEAR(Behind("ann", "bob"), 300, kNear);
}

TEST_F(FairSharesTest, AUserWhomNoDeviceSuitsSavesUpNoMoreThanAHeadStart) {
  shares_->BeginAsking("idle");
  Take("ann");
  Pass(10'000);
  EXPECT_NEAR(Behind("ann", "idle"), 300, kNear);
  shares_->BeginAsking("new");
  EXPECT_LE(Behind("ann", "new"), 300 + kNear) << "places count against those in service";
}

TEST_F(FairSharesTest, ARestartForgetsNothing) {
  ASSERT_OK(shares_->SetLimits("bob", {.weight = 3, .trials_per_day = 7, .devices = 2}));
  Take("ann");
  Take("bob");
  Pass(120);
  const double behind = Behind("ann", "bob"), ann = DeviceSeconds("ann");
  // A scheduler that stops gives all devices back first.
  shares_->EndDevice("ann");
  shares_->EndDevice("bob");
  Restart();
  EXPECT_NEAR(DeviceSeconds("ann"), ann, 1e-9);
  EXPECT_EQ(shares_->LimitsOf("bob"),
            (store::UserLimits{.weight = 3, .trials_per_day = 7, .devices = 2}));
  shares_->BeginAsking("bob");
  shares_->BeginAsking("ann");
  EXPECT_NEAR(Behind("ann", "bob"), behind, 1e-9);
}

TEST_F(FairSharesTest, TheUseThatPassedWhileNoProcessRanDecays) {
  Had("ann", 100);
  shares_.reset();
  Pass(7 * 24 * 3600);
  Restart();
  EXPECT_NEAR(DeviceSeconds("ann"), 50, kNear);
}

TEST_F(FairSharesTest, WritesWhatHasChangedAndAgainAfterAnError) {
  Had("ann", 10);
  ASSERT_OK(shares_->Write());
  ASSERT_OK_AND_ASSIGN(const auto users, store_->Users());
  ASSERT_EQ(users.size(), 1u);
  EXPECT_NEAR(users[0].use.device_s, 10, kNear);
  EXPECT_TRUE(users[0].use.queue_use.has_value()) << "he may come back within a minute";
  Pass(61);
  ASSERT_OK(shares_->Write());
  ASSERT_OK_AND_ASSIGN(const auto later, store_->Users());
  EXPECT_FALSE(later[0].use.queue_use.has_value());
}

TEST_F(FairSharesTest, NobodyHasMoreDevicesThanHeMay) {
  ASSERT_OK(shares_->SetLimits("ann", {.devices = 2}));
  Take("ann");
  const auto now = std::chrono::steady_clock::now;
  ASSERT_TRUE(shares_->Reserve("ann", now(), {}));
  EXPECT_FALSE(shares_->Reserve("ann", now(), {})) << "what is reserved counts";
  EXPECT_THAT(shares_->WhyNoDevice("ann"),
              HasSubstr("'ann' has 2 devices at once, and his limit is 2"));
  EXPECT_TRUE(shares_->Reserve("bob", now(), {}));
  EXPECT_EQ(shares_->WhyNoDevice("bob"), "");
  // One who waits goes on when a device is given back, and when the limit is raised.
  std::jthread waits([&] {
    EXPECT_TRUE(shares_->Reserve("ann", now() + std::chrono::minutes(1), {}));
    EXPECT_TRUE(shares_->Reserve("ann", now() + std::chrono::minutes(1), {}));
  });
  shares_->EndDevice("ann");
  ASSERT_OK(shares_->SetLimits("ann", {.devices = 3}));
}

TEST_F(FairSharesTest, AWaitEndsWhenItIsStopped) {
  ASSERT_OK(shares_->SetLimits("ann", {.devices = 1}));
  Take("ann");
  std::stop_source stop;
  std::jthread waits([&] {
    EXPECT_FALSE(shares_->Reserve("ann", std::chrono::steady_clock::now() + std::chrono::hours(1),
                                  stop.get_token()));
  });
  stop.request_stop();
}

}  // namespace
}  // namespace kiln::scheduler
