// Tests the shares of users: the order of requests by priority, use, leases and arrival, which
// leases go to others, and what comes of it over minutes.
#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <tuple>

#include "tracker/registry_testing.h"

namespace kiln::tracker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A user of the cases below, who asks for one more lease than he holds.
struct User {
  int priority = 0;
  double use = 0;
  int held = 0;
  auto Rank() const { return std::make_tuple(-priority, use, held); }
};

std::vector<User> AllUsers() {
  std::vector<User> all;
  for (const int priority : {0, 1}) {
    for (const double use : {-1.0, 0.0, 2.5}) {
      for (const int held : {0, 1}) all.push_back({priority, use, held});
    }
  }
  return all;
}

// Gives the users what they hold, lets all of them ask for one slot that somebody has, and returns
// in which order they get it.
std::vector<size_t> OrderOfGrants(const std::vector<User>& users) {
  Registry registry(RegistryOptions(), 0);
  uint32_t slots = 1;
  for (const User& user : users) slots += static_cast<uint32_t>(user.held);
  EXPECT_OK(registry.Announce(Worker("w", slots, {"cuda"}), 0));
  std::vector<std::string> leases;
  for (size_t u = 0; u < users.size(); ++u) {
    if (users[u].held == 0) continue;
    EXPECT_TRUE(registry.Acquire(AskWithUse(fmt::format("h{}", u), fmt::format("u{}", u), 0), 0)
                    ->has_lease());
  }
  std::string slot = registry.Acquire(Ask("slot", "other"), 0)->lease().id();
  std::string holder = "other";
  for (size_t u = 0; u < users.size(); ++u) {
    const v1::AcquireRequest ask =
        AskWithUse(fmt::format("r{}", u), fmt::format("u{}", u), users[u].use, users[u].priority);
    EXPECT_FALSE(registry.Acquire(ask, 0)->has_lease());
  }
  registry.TakeGranted();
  std::vector<size_t> order;
  while (order.size() < users.size()) {
    registry.Release(ReleaseOf(holder, {slot}), 0);
    const std::vector<std::string> granted = registry.TakeGranted();
    if (granted.size() != 1) return {};
    order.push_back(static_cast<size_t>(std::stoi(granted[0].substr(1))));
    holder = fmt::format("u{}", order.back());
    slot = registry.Poll(granted[0], 0).lease().id();
  }
  return order;
}

TEST(RegistryOrderTest, EveryCaseOfThreeUsers) {
  const std::vector<User> all = AllUsers();
  for (const User& a : all) {
    for (const User& b : all) {
      for (const User& c : all) {
        const std::vector<User> users = {a, b, c};
        std::vector<size_t> expected = {0, 1, 2};
        std::ranges::stable_sort(
            expected, [&](size_t x, size_t y) { return users[x].Rank() < users[y].Rank(); });
        ASSERT_EQ(OrderOfGrants(users), expected)
            << fmt::format("({}, {}, {}) ({}, {}, {}) ({}, {}, {})", a.priority, a.use, a.held,
                           b.priority, b.use, b.held, c.priority, c.use, c.held);
      }
    }
  }
}

TEST(RegistryOrderTest, EveryCaseOfALeaseThatAnotherUserWants) {
  const RegistryOptions options;
  for (const int ours : {0, 1}) {
    for (const int theirs : {0, 1}) {
      for (const double our_use : {0.0, 1.0, 2.0}) {
        for (const double their_use : {0.0, 1.0, 2.0}) {
          for (const int64_t age : {options.turn_ms - 1, options.turn_ms}) {
            Registry registry(options, 0);
            ASSERT_OK(registry.Announce(Worker("w", 1, {"cuda"}), 0));
            v1::Lease lease = registry.Acquire(AskWithUse("h", "ann", 0, ours), 0)->lease();
            ASSERT_OK(registry.Acquire(AskWithUse("r", "bob", their_use, theirs), 0));
            lease.set_use(our_use);
            const auto reply = registry.Renew(RenewOf("ann", {lease}), age);
            ASSERT_OK(reply);
            // With equal use, the slot goes round: bob has none.
            const bool wanted =
                theirs != ours ? theirs > ours : age >= options.turn_ms && their_use <= our_use;
            EXPECT_EQ(reply->wanted_lease_ids_size() == 1, wanted) << fmt::format(
                "priorities {} {}, uses {} {}, age {}", ours, theirs, our_use, their_use, age);
          }
        }
      }
    }
  }
}

TEST_F(RegistryTest, TheNewestUseOfAUserCountsForAllHisRequests) {
  Announce(Worker("w", 1, {"cuda"}));
  Announce(Worker("v", 1, {"llvm"}));
  const v1::Lease other = Granted(Ask("r0", "other"));
  v1::Lease ann = Granted(Ask("r1", "ann", "llvm"));
  Waits(AskWithUse("r2", "ann", 1));
  Waits(AskWithUse("r3", "bob", 2));
  ann.set_use(3);
  Renew(RenewOf("ann", {ann}));
  EXPECT_THAT(GrantedBy(ReleaseOf("other", {other.id()})), ElementsAre("r3"));
}

TEST_F(RegistryTest, NobodyButTheHolderSaysAUsersUseByALease) {
  Announce(Worker("w", 1, {"cuda"}));
  Announce(Worker("v", 1, {"llvm"}));
  const v1::Lease other = Granted(Ask("r0", "other"));
  v1::Lease ann = Granted(Ask("r1", "ann", "llvm"));
  Waits(AskWithUse("r2", "ann", 1));
  Waits(AskWithUse("r3", "bob", 2));
  ann.set_use(3);
  Renew(RenewOf("bob", {ann}));
  EXPECT_THAT(GrantedBy(ReleaseOf("other", {other.id()})), ElementsAre("r2"));
}

TEST_F(RegistryTest, AUseThatIsNoNumberIsRefused) {
  for (const double use :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT(registry_.Acquire(AskWithUse("r", "ann", use), now_ms_),
                StatusIs(StatusCode::kInvalidArgument, testing::HasSubstr("finite number")));
  }
}

TEST_F(RegistryTest, ASmallDifferenceMovesOneSlotAndALargeOneMovesAll) {
  Announce(Worker("w", 3, {"cuda"}));
  std::vector<v1::Lease> held;
  for (const char* id : {"r1", "r2", "r3"}) held.push_back(Granted(Ask(id, "ann")));
  for (const char* id : {"b1", "b2", "b3"}) Waits(AskWithUse(id, "bob", 0));
  now_ms_ += 5'000;
  Announce(Worker("w", 3, {"cuda"}));
  const auto wanted_at = [&](double use) {
    for (v1::Lease& lease : held) lease.set_use(use);
    return Renew(RenewOf("ann", held)).wanted_lease_ids_size();
  };
  EXPECT_EQ(wanted_at(1), 1);
  EXPECT_EQ(wanted_at(100), 3);
  EXPECT_EQ(wanted_at(-1), 0);
}

// Users who always want all slots, and are charged for what they hold divided by their weights.
// They renew twice a second, and finish the trial in hand before they give a lease back.
class Farm {
 public:
  Farm(uint64_t seed, std::vector<double> weights, uint32_t slots)
      : rng_(seed), weights_(std::move(weights)), slots_(slots), users_(weights_.size()) {}

  void Run(int64_t from_ms, int64_t to_ms) {
    for (int64_t now = from_ms; now < to_ms; now += kStepMs) {
      if (now % 1'000 == 0) ASSERT_OK(registry_.Announce(Worker("w", slots_, {"cuda"}), now));
      for (size_t u = 0; u < users_.size(); ++u) Step(u, now);
    }
  }
  double device_s(size_t u) const { return users_[u].device_s; }

 private:
  static constexpr int64_t kStepMs = 100;
  struct State {
    std::vector<v1::Lease> held;
    // Lease ids that are given back, and when.
    std::map<std::string, int64_t> leaving;
    std::map<std::string, bool> asks;
    double device_s = 0;
    int64_t renew_ms = 0;
  };

  void Step(size_t u, int64_t now) {
    State& state = users_[u];
    const std::string name = fmt::format("u{}", u);
    const double use = state.device_s / weights_[u];
    std::erase_if(state.held, [&](const v1::Lease& lease) {
      const auto it = state.leaving.find(lease.id());
      if (it == state.leaving.end() || now < it->second) return false;
      registry_.Release(ReleaseOf(name, {lease.id()}), now);
      return true;
    });
    while (state.asks.size() + state.held.size() < slots_) {
      state.asks[fmt::format("r{}", next_id_++)] = true;
    }
    for (auto it = state.asks.begin(); it != state.asks.end();) {
      const auto reply = registry_.Acquire(AskWithUse(it->first, name, use), now);
      ASSERT_OK(reply);
      if (reply->has_lease()) state.held.push_back(reply->lease());
      it = reply->has_lease() ? state.asks.erase(it) : std::next(it);
    }
    if (now >= state.renew_ms) {
      state.renew_ms = now + 500;
      for (v1::Lease& lease : state.held) lease.set_use(use);
      const auto renewed = registry_.Renew(RenewOf(name, state.held), now);
      ASSERT_OK(renewed);
      for (const std::string& id : renewed->wanted_lease_ids()) {
        state.leaving.try_emplace(id, now + static_cast<int64_t>(rng_() % 500));
      }
    }
    state.device_s += 1e-3 * kStepMs * static_cast<double>(state.held.size());
  }

  std::mt19937_64 rng_;
  Registry registry_{RegistryOptions(), 0};
  const std::vector<double> weights_;
  const uint32_t slots_;
  std::vector<State> users_;
  int next_id_ = 0;
};

TEST(RegistryFarmTest, SharesFollowTheWeightsWithin200Seconds) {
  const std::vector<std::vector<double>> farms = {{1, 3}, {1, 1}, {1, 2, 5}, {1, 10}};
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    for (const std::vector<double>& weights : farms) {
      for (const uint32_t slots : {1u, 2u, 4u}) {
        SCOPED_TRACE(
            fmt::format("seed {} slots {} weights {}", seed, slots, fmt::join(weights, ":")));
        Farm farm(seed, weights, slots);
        farm.Run(0, 200'000);
        double sum = 0, total = 0;
        for (const double weight : weights) sum += weight;
        for (size_t u = 0; u < weights.size(); ++u) total += farm.device_s(u);
        EXPECT_GT(total, 0.97 * 200 * slots) << "slots were idle";
        for (size_t u = 0; u < weights.size(); ++u) {
          const double share = farm.device_s(u) / total;
          EXPECT_NEAR(share, weights[u] / sum, 0.025) << "user " << u;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln::tracker
