// Tests leases of the registry: how they end, come back, and are wanted by others.
#include <functional>
#include <random>

#include "tracker/registry_testing.h"

namespace kiln::tracker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(RegistryTest, AnUnrenewedLeaseGoesToTheNext) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  Waits(Ask("r2", "bob"));
  now_ms_ += 9'000;
  Announce(Worker("w", 1, {"cuda"}));
  now_ms_ += 1'000;
  registry_.Advance(now_ms_);
  EXPECT_THAT(registry_.TakeGranted(), ElementsAre("r2"));
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).lost_lease_ids(), ElementsAre(lease.id()));
}

TEST_F(RegistryTest, AnExpiredLeaseComesBackIfTheSlotIsFree) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  now_ms_ += 9'000;
  Announce(Worker("w", 1, {"cuda"}));
  now_ms_ += 5'000;
  EXPECT_EQ(registry_.List(now_ms_).busy_slots(0), 0u);
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).lost_lease_ids(), IsEmpty());
  EXPECT_EQ(registry_.List(now_ms_).busy_slots(0), 1u);
}

TEST_F(RegistryTest, AReleasedLeaseDoesNotComeBack) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  registry_.Release(ReleaseOf("ann", {lease.id()}), now_ms_);
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).lost_lease_ids(), ElementsAre(lease.id()));
  EXPECT_EQ(registry_.List(now_ms_).busy_slots(0), 0u);
}

TEST_F(RegistryTest, OnlyTheHolderRenewsAndReleases) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  EXPECT_THAT(Renew(RenewOf("bob", {lease})).lost_lease_ids(), ElementsAre(lease.id()));
  registry_.Release(ReleaseOf("bob", {lease.id()}, {"r1"}), now_ms_);
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).lost_lease_ids(), IsEmpty());
}

v1::AnnounceRequest Drifting(std::string_view id, int spans, double first_s = 100) {
  v1::AnnounceRequest request = Worker(id, 1, {"cuda"});
  for (int i = 0; i < spans; ++i) {
    v1::DriftSpan& span = *request.mutable_worker()->add_drifts();
    span.set_worker("another");
    span.set_from_s(first_s + i);
    span.set_reason("slow");
  }
  return request;
}

TEST_F(RegistryTest, EverySchedulerLearnsOfDriftsAlsoWithoutLeases) {
  Announce(Worker("steady", 1, {"cuda"}));
  EXPECT_THAT(Renew(RenewOf("ann", {})).drifts(), IsEmpty());
  Announce(Drifting("w", 2));
  const v1::RenewReply reply = Renew(RenewOf("ann", {}));
  ASSERT_EQ(reply.drifts_size(), 2);
  EXPECT_EQ(reply.drifts(0).worker(), "w") << "a worker speaks for itself only";
  EXPECT_EQ(reply.drifts(0).reason(), "slow");
  EXPECT_EQ(Renew(RenewOf("bob", {})).drifts_size(), 2);
  // They do not travel with each lease.
  Announce(Drifting("steady", 1));
  EXPECT_THAT(Granted(Ask("r1", "ann")).worker().drifts(), IsEmpty());
}

TEST_F(RegistryTest, TheNewestDriftsAreTold) {
  for (int i = 0; i < 15; ++i) Announce(Drifting(fmt::format("w{}", i), 100, 1000 * i));
  const v1::RenewReply reply = Renew(RenewOf("ann", {}));
  ASSERT_EQ(reply.drifts_size(), 1000);
  for (const v1::DriftSpan& span : reply.drifts()) EXPECT_GE(span.from_s(), 5000);
}

TEST_F(RegistryTest, ManyHoldersRenewSeldomer) {
  Announce(Worker("w", 1'000, {"cuda"}));
  std::vector<v1::Lease> leases;
  const auto hold = [&](int holders) {
    for (int i = static_cast<int>(leases.size()); i < holders; ++i) {
      leases.push_back(Granted(Ask(fmt::format("r{}", i), fmt::format("user{}", i))));
    }
    return Renew(RenewOf("user0", {leases[0]})).next_renew_ms();
  };
  EXPECT_EQ(hold(1), 500u);
  EXPECT_EQ(hold(100), 500u);
  EXPECT_EQ(hold(200), 1'000u);
  EXPECT_EQ(hold(1'000), 2'000u) << "a turn";
  for (int i = 1; i < 1'000; ++i) {
    registry_.Release(ReleaseOf(fmt::format("user{}", i), {leases[i].id()}), now_ms_);
  }
  EXPECT_EQ(hold(1), 500u);
}

TEST_F(RegistryTest, HigherPriorityWantsALeaseAtOnce) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).wanted_lease_ids(), IsEmpty());
  Waits(Ask("r2", "ann", "cuda", 1));
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).wanted_lease_ids(), ElementsAre(lease.id()));
  registry_.Release(ReleaseOf("ann", {}, {"r2"}), now_ms_);
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).wanted_lease_ids(), IsEmpty());
}

TEST_F(RegistryTest, FairShareWantsOneLeasePerWaitingRequestAndNotTooEarly) {
  Announce(Worker("w", 3, {"cuda"}));
  const v1::Lease l1 = Granted(Ask("r1", "ann"));
  const v1::Lease l2 = Granted(Ask("r2", "ann"));
  const v1::Lease l3 = Granted(Ask("r3", "ann"));
  Waits(Ask("r4", "bob"));
  Waits(Ask("r5", "ann"));
  EXPECT_THAT(Renew(RenewOf("ann", {l1, l2, l3})).wanted_lease_ids(), IsEmpty());
  now_ms_ += 5'000;
  EXPECT_THAT(Renew(RenewOf("ann", {l1, l2, l3})).wanted_lease_ids(), ElementsAre(l1.id()));
  // 3 : 0 can become 2 : 1, but 1 : 2 is no fairer than that.
  Waits(Ask("r6", "bob"));
  EXPECT_THAT(Renew(RenewOf("ann", {l1, l2, l3})).wanted_lease_ids(), ElementsAre(l1.id()));
}

TEST_F(RegistryTest, TwoSchedulersOfOneUserShareToo) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  v1::AcquireRequest other = Ask("r2", "ann");
  Waits(other);
  now_ms_ += 5'000;
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).wanted_lease_ids(), IsEmpty()) << "its own request";
  other.set_request_id("r3");
  other.set_scheduler_id("another");
  Waits(other);
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).wanted_lease_ids(), ElementsAre(lease.id()));
}

TEST_F(RegistryTest, ARestartedSchedulerDoesNotWaitForItsOwnOldLeases) {
  Announce(Worker("a", 2, {"cuda"}));
  v1::AcquireRequest first = Ask("1", "ada"), second = Ask("2", "ada");
  first.set_incarnation(4);
  second.set_incarnation(4);
  const v1::Lease old = Granted(first);
  // Two leases of one incarnation live side by side.
  Granted(second);
  v1::AcquireRequest waiting = Ask("3", "ada");
  waiting.set_incarnation(4);
  Waits(waiting);
  v1::AcquireRequest stranger = Ask("4", "bob");
  stranger.set_incarnation(9);
  Waits(stranger);
  v1::AcquireRequest restarted = Ask("5", "ada");
  restarted.set_incarnation(5);
  registry_.TakeGranted();
  EXPECT_TRUE(registry_.Acquire(restarted, now_ms_)->has_lease());
  EXPECT_THAT(registry_.TakeGranted(), testing::UnorderedElementsAre("4", "5"));
  EXPECT_THAT(registry_.TakeEvents(), testing::Contains(HasSubstr("s-ada has started again")));
  // The dead incarnation's lease does not come back, and its request is gone.
  EXPECT_THAT(Renew(RenewOf("ada", {old})).lost_lease_ids(), ElementsAre(old.id()));
  EXPECT_EQ(registry_.List(now_ms_).keys(0).pending(), 0u);
}

// The registry gives out unused ids, whatever ids clients make up.
TEST(RegistryIdTest, ANameInUseIsDrawnAgain) {
  const std::vector<std::string> drawn = {"a", "a", "b", "a", "b", "c"};
  size_t next = 0;
  Registry registry({.new_lease_id = [&] { return drawn.at(next++); }}, 0);
  ASSERT_OK(registry.Announce(Worker("w", 4, {"cuda"}), 0));
  v1::Lease made_up;
  made_up.set_id("a");
  *made_up.mutable_worker() = Worker("w", 4, {"cuda"}).worker();
  ASSERT_OK_AND_ASSIGN(const v1::RenewReply renewed, registry.Renew(RenewOf("eve", {made_up}), 0));
  EXPECT_THAT(renewed.lost_lease_ids(), IsEmpty()) << "the slot is free: it is hers";
  EXPECT_EQ(registry.Acquire(Ask("r1", "ann"), 0)->lease().id(), "b");
  registry.Release(ReleaseOf("eve", {"a"}), 0);
  EXPECT_EQ(registry.Acquire(Ask("r2", "ann"), 0)->lease().id(), "c") << "a was just released";
}

// Makes a seal for tests.
std::string Sealed(std::string_view key, std::string_view text) {
  return fmt::format("{:016x}{:016x}", std::hash<std::string>()(fmt::format("{}{}", key, text)),
                     std::hash<std::string>()(fmt::format("{}{}", text, key)));
}

// A lease that no tracker of the farm has given is lost, whatever a client says that it holds.
TEST(RegistrySealTest, OnlyLeasesThatWereGivenAreRecreated) {
  RegistryOptions options;
  options.seal = [](std::string_view text) { return Sealed("ours", text); };
  Registry before(options, 0);
  ASSERT_OK(before.Announce(Worker("w", 4, {"cuda"}), 0));
  const v1::Lease given = before.Acquire(Ask("r1", "ann", "cuda", 1), 0)->lease();
  RegistryOptions others = options;
  others.seal = [](std::string_view text) { return Sealed("theirs", text); };
  Registry another(others, 0);
  ASSERT_OK(another.Announce(Worker("w", 4, {"cuda"}), 0));
  const v1::Lease of_another = another.Acquire(Ask("r1", "ann", "cuda", 1), 0)->lease();

  const auto comes_back = [&](std::string_view user, const v1::Lease& lease) {
    Registry again(options, 0);
    const auto reply = again.Renew(RenewOf(user, {lease}), 10);
    EXPECT_OK(reply);
    const bool back = reply->lost_lease_ids().empty();
    EXPECT_EQ(again.List(10).workers_size(), back ? 1 : 0);
    return back;
  };
  EXPECT_TRUE(comes_back("ann", given));
  EXPECT_FALSE(comes_back("bob", given));
  EXPECT_FALSE(comes_back("ann", of_another));
  const auto changed = [&](const auto& change) {
    v1::Lease lease = given;
    change(lease);
    return comes_back("ann", lease);
  };
  EXPECT_TRUE(changed([](v1::Lease& l) { l.set_lease_ms(500); }));
  EXPECT_FALSE(changed([](v1::Lease& l) { l.set_id("made-up"); }));
  EXPECT_FALSE(changed([](v1::Lease& l) { l.set_id("x" + l.id()); }));
  EXPECT_FALSE(changed([](v1::Lease& l) { l.mutable_id()->pop_back(); }));
  EXPECT_FALSE(changed([](v1::Lease& l) { l.set_user("eve"); }));
  EXPECT_FALSE(changed([](v1::Lease& l) { l.set_priority(9); }));
  EXPECT_FALSE(changed([](v1::Lease& l) { l.mutable_worker()->set_id("v"); }));
  EXPECT_FALSE(changed([](v1::Lease& l) { l.mutable_worker()->set_address("v:1"); }));
  EXPECT_FALSE(changed([](v1::Lease& l) { l.mutable_worker()->set_slots(4096); }));
  EXPECT_FALSE(changed([](v1::Lease& l) { l.mutable_worker()->set_kind(v1::BUILDER); }));
}

TEST(RegistryIdTest, IdsCannotBeForeseen) {
  Registry registry({}, 0);
  ASSERT_OK(registry.Announce(Worker("w", 2, {"cuda"}), 0));
  const std::string first = registry.Acquire(Ask("r1", "ann"), 0)->lease().id();
  const std::string second = registry.Acquire(Ask("r2", "ann"), 0)->lease().id();
  EXPECT_GE(first.size(), 16u);
  EXPECT_NE(first.substr(0, 8), second.substr(0, 8));
}

TEST(RegistryIdTest, ReleasedIdsAreRememberedUpToALimit) {
  Registry registry({.max_remembered = 3}, 0);
  ASSERT_OK(registry.Announce(Worker("w", 1, {"cuda"}), 0));
  registry.Release(ReleaseOf("eve", {"1", "2", "3", "4"}), 0);
  const auto comes_back = [&](const std::string& id) {
    v1::Lease lease;
    lease.set_id(id);
    *lease.mutable_worker() = Worker("w", 1, {"cuda"}).worker();
    const bool back = registry.Renew(RenewOf("eve", {lease}), 0)->lost_lease_ids().empty();
    if (back) registry.Release(ReleaseOf("eve", {id}), 0);
    return back;
  };
  EXPECT_FALSE(comes_back("4"));
  EXPECT_TRUE(comes_back("1"));
}

// Makes all calls, with ids, workers and leases that fit together or do not. The registry must
// survive, and its books must agree.
TEST(RegistryHostileTest, NoClientBreaksIt) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 rng(seed);
    const auto pick = [&](int n) { return static_cast<int>(rng() % static_cast<uint64_t>(n)); };
    const auto name = [&](char c) { return fmt::format("{}{}", c, pick(4)); };
    Registry registry({.deadline_ms = 3'000,
                       .max_waiting = 6,
                       .max_workers = 3,
                       .max_remembered = 4,
                       .new_lease_id = [&] { return fmt::format("l{}", pick(40)); }},
                      0);
    const auto worker = [&] {
      v1::AnnounceRequest request =
          Worker(name('w'), pick(4), {"cuda", "llvm"}, static_cast<v1::WorkerKind>(pick(4)));
      if (pick(3) == 0) request.mutable_worker()->set_address("shared:1");
      if (pick(9) == 0) request.mutable_worker()->clear_keys();
      return request;
    };
    int64_t now = 0;
    for (int step = 0; step < 600; ++step) {
      now += pick(3) == 0 ? pick(2'000) : -pick(50);
      switch (pick(5)) {
        case 0: {
          v1::AnnounceRequest request = worker();
          request.set_leaving(pick(5) == 0);
          request.set_rejoining(pick(2) == 0);
          (void)registry.Announce(request, now);
          break;
        }
        case 1: {
          v1::AcquireRequest ask = Ask(name('r'), name('u'), pick(2) == 0 ? "cuda" : "llvm");
          ask.set_kind(static_cast<v1::WorkerKind>(pick(4)));
          ask.set_priority(pick(3) - 1);
          ask.set_incarnation(static_cast<uint64_t>(pick(3)));
          ask.set_lease_ms(static_cast<uint32_t>(rng()));
          if (pick(3) == 0) ask.add_avoid_worker_ids(name('w'));
          (void)registry.Acquire(ask, now);
          break;
        }
        case 2: {
          std::vector<v1::Lease> leases;
          for (int i = pick(5); i > 0; --i) {
            v1::Lease& lease = leases.emplace_back();
            if (pick(8) != 0) lease.set_id(fmt::format("l{}", pick(60)));
            *lease.mutable_worker() = worker().worker();
            lease.set_user(name('u'));
            lease.set_priority(pick(3) - 1);
          }
          (void)registry.Renew(RenewOf(name('u'), std::move(leases)), now);
          break;
        }
        case 3:
          registry.Release(ReleaseOf(name('u'), {fmt::format("l{}", pick(60))}, {name('r')}), now);
          break;
        default:
          registry.StopPolling(name('r'), now);
          (void)registry.Poll(name('r'), now);
      }
      registry.TakeGranted();
      registry.TakeEvents();
      const v1::ListReply list = registry.List(now);
      ASSERT_LE(list.workers_size(), 3);
      for (int i = 0; i < list.workers_size(); ++i) {
        ASSERT_LE(list.busy_slots(i), list.workers(i).slots()) << "seed " << seed;
      }
    }
  }
}

// The users always want more than there is, and give back leases that are wanted. Schedulers send
// no use, so the leases in hand decide alone: no user starves, and the shares come out even.
TEST(RegistryShareTest, SlotsGoRoundBetweenUsers) {
  for (const int slots : {1, 2, 3}) {
    constexpr int kUsers = 4;
    Registry registry({.turn_ms = 5'000}, 0);
    std::vector<std::vector<v1::Lease>> held(kUsers);
    std::vector<int64_t> slot_ms(kUsers);
    std::vector<std::string> waiting(kUsers);
    int next_id = 0;
    constexpr int64_t kStepMs = 1'000;
    constexpr int64_t kEndMs = 600'000;
    for (int64_t now = 0; now < kEndMs; now += kStepMs) {
      ASSERT_OK(registry.Announce(Worker("w", slots, {"cuda"}), now));
      for (int u = 0; u < kUsers; ++u) {
        const std::string user = fmt::format("u{}", u);
        if (waiting[u].empty()) waiting[u] = fmt::format("r{}", next_id++);
        auto reply = registry.Acquire(Ask(waiting[u], user), now);
        ASSERT_OK(reply);
        if (reply->has_lease()) {
          held[u].push_back(reply->lease());
          waiting[u].clear();
        }
        const auto renewed = registry.Renew(RenewOf(user, held[u]), now);
        ASSERT_OK(renewed);
        ASSERT_THAT(renewed->lost_lease_ids(), IsEmpty());
        for (const std::string& id : renewed->wanted_lease_ids()) {
          registry.Release(ReleaseOf(user, {id}), now);
          std::erase_if(held[u], [&](const v1::Lease& lease) { return lease.id() == id; });
        }
        slot_ms[u] += kStepMs * static_cast<int64_t>(held[u].size());
      }
    }
    for (int u = 0; u < kUsers; ++u) {
      const double share = static_cast<double>(slot_ms[u]) / (kEndMs * slots);
      EXPECT_NEAR(share, 1.0 / kUsers, 0.05) << "slots " << slots << " user " << u;
    }
  }
}

}  // namespace
}  // namespace kiln::tracker
