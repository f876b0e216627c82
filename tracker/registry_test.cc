#include "tracker/registry.h"

#include <algorithm>
#include <optional>
#include <random>

#include "base/status_testing.h"

namespace kiln::tracker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using v1::BUILDER;
using v1::RUNNER;

v1::AnnounceRequest Worker(std::string_view id, uint32_t slots, std::vector<std::string> keys,
                           v1::WorkerKind kind = RUNNER) {
  v1::AnnounceRequest request;
  v1::WorkerState& state = *request.mutable_worker();
  state.set_id(std::string(id));
  state.set_kind(kind);
  state.set_address(fmt::format("{}:1", id));
  for (std::string& key : keys) state.add_keys(std::move(key));
  state.set_slots(slots);
  return request;
}

v1::AcquireRequest Ask(std::string_view id, std::string_view user, std::string_view key = "cuda",
                       int priority = 0) {
  v1::AcquireRequest request;
  request.set_request_id(std::string(id));
  request.set_scheduler_id(fmt::format("s-{}", user));
  request.set_kind(RUNNER);
  request.set_key(std::string(key));
  request.set_user(std::string(user));
  request.set_priority(priority);
  request.set_wait_ms(30'000);
  return request;
}

v1::RenewRequest RenewOf(std::string_view user, std::vector<v1::Lease> leases) {
  v1::RenewRequest request;
  request.set_scheduler_id(fmt::format("s-{}", user));
  for (v1::Lease& lease : leases) *request.add_leases() = std::move(lease);
  return request;
}

v1::ReleaseRequest ReleaseOf(std::string_view user, std::vector<std::string> leases,
                             std::vector<std::string> requests = {}) {
  v1::ReleaseRequest request;
  request.set_scheduler_id(fmt::format("s-{}", user));
  for (std::string& id : leases) request.add_lease_ids(std::move(id));
  for (std::string& id : requests) request.add_request_ids(std::move(id));
  return request;
}

class RegistryTest : public testing::Test {
 protected:
  v1::Lease Granted(const v1::AcquireRequest& request) {
    const auto reply = registry_.Acquire(request, now_ms_);
    EXPECT_OK(reply);
    EXPECT_TRUE(reply->has_lease()) << request.request_id();
    return reply->lease();
  }
  uint32_t Waits(const v1::AcquireRequest& request) {
    const auto reply = registry_.Acquire(request, now_ms_);
    EXPECT_OK(reply);
    EXPECT_FALSE(reply->has_lease()) << request.request_id();
    return reply->queue_position();
  }
  void Announce(const v1::AnnounceRequest& request) {
    EXPECT_OK(registry_.Announce(request, now_ms_));
    registry_.TakeGranted();
  }
  v1::RenewReply Renew(const v1::RenewRequest& request) {
    auto reply = registry_.Renew(request, now_ms_);
    EXPECT_OK(reply);
    return *std::move(reply);
  }
  std::vector<std::string> GrantedBy(const v1::ReleaseRequest& request) {
    registry_.TakeGranted();
    registry_.Release(request, now_ms_);
    return registry_.TakeGranted();
  }

  int64_t now_ms_ = 1'000;
  Registry registry_{RegistryOptions(), now_ms_};
};

TEST_F(RegistryTest, GrantsAFreeSlotAtOnce) {
  Announce(Worker("w", 1, {"cuda", "NVIDIA H200"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  EXPECT_EQ(lease.worker().id(), "w");
  EXPECT_EQ(lease.user(), "ann");
  EXPECT_EQ(lease.lease_ms(), 10'000u);
  EXPECT_EQ(Waits(Ask("r2", "bob", "NVIDIA H200")), 1u);
}

TEST_F(RegistryTest, KeyAndKindMustMatch) {
  Announce(Worker("b", 4, {"cuda"}, BUILDER));
  Announce(Worker("w", 4, {"llvm"}));
  const auto reply = registry_.Acquire(Ask("r1", "ann"), now_ms_);
  ASSERT_OK(reply);
  EXPECT_FALSE(reply->has_lease());
  EXPECT_EQ(reply->matching_slots(), 0u);
  EXPECT_EQ(registry_.Acquire(Ask("r2", "ann", "llvm"), now_ms_)->lease().worker().id(), "w");
}

TEST_F(RegistryTest, ARepeatedIdQueuesOnceAndAnswersTheSameLease) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  EXPECT_EQ(Granted(Ask("r1", "ann")).id(), lease.id());
  EXPECT_EQ(Waits(Ask("r2", "ann")), 1u);
  EXPECT_EQ(Waits(Ask("r2", "ann")), 1u);
  EXPECT_EQ(registry_.List(now_ms_).keys(0).pending(), 1u);
}

TEST_F(RegistryTest, AnIdInUseForSomethingElseIsRefused) {
  Waits(Ask("r1", "ann"));
  EXPECT_THAT(registry_.Acquire(Ask("r1", "bob"), now_ms_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("'r1' is in use")));
}

TEST_F(RegistryTest, OrderIsPriorityThenFewestLeasesThenArrival) {
  Announce(Worker("w", 3, {"cuda"}));
  const v1::Lease a1 = Granted(Ask("a1", "ann"));
  const v1::Lease a2 = Granted(Ask("a2", "ann"));
  const v1::Lease b1 = Granted(Ask("b1", "bob"));
  Waits(Ask("ann-first", "ann"));
  Waits(Ask("bob", "bob"));
  Waits(Ask("cid", "cid"));
  Waits(Ask("dan", "dan"));
  EXPECT_EQ(Waits(Ask("ann-urgent", "ann", "cuda", 5)), 1u);
  EXPECT_EQ(Waits(Ask("ann-first", "ann")), 5u);
  EXPECT_THAT(GrantedBy(ReleaseOf("ann", {a1.id()})), ElementsAre("ann-urgent"));
  EXPECT_THAT(GrantedBy(ReleaseOf("ann", {a2.id()})), ElementsAre("cid"));
  EXPECT_THAT(GrantedBy(ReleaseOf("bob", {b1.id()})), ElementsAre("bob"))
      << "bob holds none now and came before dan";
}

TEST_F(RegistryTest, ARequestThatNobodyServesHoldsUpNobody) {
  Waits(Ask("r1", "ann", "cuda/sm_100", 9));
  Announce(Worker("w", 1, {"cuda"}));
  Granted(Ask("r2", "bob"));
}

TEST_F(RegistryTest, LoadGoesRound) {
  Announce(Worker("w1", 2, {"cuda"}));
  Announce(Worker("w2", 2, {"cuda"}));
  const std::string first = Granted(Ask("r1", "ann")).worker().id();
  EXPECT_NE(Granted(Ask("r2", "ann")).worker().id(), first);
}

TEST_F(RegistryTest, SilencePastTheDeadlineRemovesWorkerAndLeases) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  now_ms_ += 9'999;
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).lost_lease_ids(), IsEmpty());
  now_ms_ += 1;
  EXPECT_EQ(registry_.List(now_ms_).workers_size(), 0);
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).lost_lease_ids(), ElementsAre(lease.id()));
}

TEST_F(RegistryTest, LeavingRemovesAtOnce) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  v1::AnnounceRequest bye = Worker("w", 1, {"cuda"});
  bye.set_leaving(true);
  Announce(bye);
  now_ms_ += 20'000;  // past the start, when unknown workers are taken from leases
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).lost_lease_ids(), ElementsAre(lease.id()));
}

TEST_F(RegistryTest, ANewProcessAtTheSameAddressReplacesTheDeadOne) {
  Announce(Worker("old", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  v1::AnnounceRequest fresh = Worker("new", 1, {"cuda"});
  fresh.mutable_worker()->set_address("old:1");
  Announce(fresh);
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).lost_lease_ids(), ElementsAre(lease.id()));
  EXPECT_EQ(Granted(Ask("r2", "ann")).worker().id(), "new");
}

TEST_F(RegistryTest, TellsOperatorsWhatHappened) {
  Announce(Worker("w", 1, {"cuda", "null"}));
  Granted(Ask("r1", "ann"));
  now_ms_ += 10'000;
  registry_.Advance(now_ms_);
  EXPECT_THAT(registry_.TakeNews(),
              ElementsAre("worker w at w:1 joins: RUNNER, 1 slots, keys cuda, null",
                          "worker w at w:1 is gone: silent for 10000 ms; 1 leases lost"));
  EXPECT_THAT(registry_.TakeNews(), IsEmpty());
}

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

TEST_F(RegistryTest, ReleasingARequestReleasesWhatItWasGranted) {
  Announce(Worker("w", 1, {"cuda"}));
  Granted(Ask("r1", "ann"));
  Waits(Ask("r2", "bob"));
  EXPECT_THAT(GrantedBy(ReleaseOf("ann", {}, {"r1"})), ElementsAre("r2"));
}

TEST_F(RegistryTest, ARequestThatIsNotPolledIsDropped) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  Waits(Ask("r2", "bob"));
  registry_.StopPolling("r2", now_ms_);
  EXPECT_EQ(registry_.List(now_ms_).keys(0).pending(), 1u);
  now_ms_ += 5'000;
  EXPECT_EQ(registry_.List(now_ms_).keys(0).pending(), 0u);
}

TEST_F(RegistryTest, AGrantThatNobodyFetchesIsTakenBack) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  Waits(Ask("r2", "bob"));
  registry_.StopPolling("r2", now_ms_);
  EXPECT_THAT(GrantedBy(ReleaseOf("ann", {lease.id()})), ElementsAre("r2"));
  now_ms_ += 4'999;
  EXPECT_EQ(registry_.List(now_ms_).busy_slots(0), 1u);
  now_ms_ += 1;
  EXPECT_EQ(registry_.List(now_ms_).busy_slots(0), 0u);
}

TEST_F(RegistryTest, FewerSlotsRevokeTheNewestLeases) {
  Announce(Worker("w", 2, {"cuda"}));
  const v1::Lease first = Granted(Ask("r1", "ann"));
  const v1::Lease second = Granted(Ask("r2", "ann"));
  Announce(Worker("w", 1, {"cuda"}));
  EXPECT_THAT(Renew(RenewOf("ann", {first, second})).lost_lease_ids(), ElementsAre(second.id()));
}

TEST_F(RegistryTest, RestartRefillsFromHeartbeatsInAnyOrder) {
  Announce(Worker("w1", 1, {"cuda"}));
  Announce(Worker("w2", 1, {"cuda"}));
  const v1::Lease a = Granted(Ask("r1", "ann"));
  const v1::Lease b = Granted(Ask("r2", "bob"));

  Registry again({.instance = "second"}, 0);
  v1::AnnounceRequest rejoin =
      a.worker().id() == "w1" ? Worker("w1", 1, {"cuda"}) : Worker("w2", 1, {"cuda"});
  rejoin.set_rejoining(true);
  ASSERT_OK(again.Announce(rejoin, 10));  // the worker first ...
  ASSERT_OK(again.Acquire(Ask("r3", "cid"), 20));
  EXPECT_THAT(again.TakeGranted(), IsEmpty()) << "its holder has not had time to renew";
  EXPECT_THAT(again.Renew(RenewOf("ann", {a}), 30)->lost_lease_ids(), IsEmpty());
  EXPECT_THAT(again.Renew(RenewOf("bob", {b}), 40)->lost_lease_ids(),
              IsEmpty());  // ... or the lease
  again.Advance(6'000);
  EXPECT_THAT(again.TakeGranted(), IsEmpty());
  EXPECT_EQ(again.List(6'000).busy_slots(0), 1u);
  EXPECT_EQ(again.List(6'000).busy_slots(1), 1u);
  // Bob's worker never came back.
  EXPECT_THAT(again.Renew(RenewOf("bob", {b}), 10'000)->lost_lease_ids(), ElementsAre(b.id()));
}

TEST_F(RegistryTest, ARejoiningWorkerGrantsAfterTheRefill) {
  v1::AnnounceRequest rejoin = Worker("w", 1, {"cuda"});
  rejoin.set_rejoining(true);
  Announce(rejoin);
  Waits(Ask("r1", "ann"));
  EXPECT_EQ(registry_.NextEventMs(), now_ms_ + 5'000);
  now_ms_ += 5'000;
  Granted(Ask("r1", "ann"));
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
  Waits(Ask("r6", "bob"));  // 3 : 0 can become 2 : 1, but 1 : 2 is no fairer than that
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

TEST_F(RegistryTest, ListCountsSlotsAndQueuePerKindAndKey) {
  Announce(Worker("b", 8, {"llvm"}, BUILDER));
  Announce(Worker("r", 2, {"llvm", "llvm", "llvm/x86-64-v4"}));
  Granted(Ask("r1", "ann", "llvm"));
  Waits(Ask("r2", "ann", "cuda"));
  const v1::ListReply list = registry_.List(now_ms_);
  std::vector<std::string> rows;
  for (const v1::KeyState& row : list.keys()) {
    rows.push_back(fmt::format("{} {} {}/{} {}", v1::WorkerKind_Name(row.kind()), row.key(),
                               row.free(), row.total(), row.pending()));
  }
  EXPECT_THAT(rows, ElementsAre("BUILDER llvm 8/8 0", "RUNNER cuda 0/0 1", "RUNNER llvm 1/2 0",
                                "RUNNER llvm/x86-64-v4 1/2 0"));
}

TEST_F(RegistryTest, RefusesWhatItCannotUse) {
  const auto refused = [&](auto change, std::string_view message) {
    v1::AnnounceRequest request = Worker("w", 1, {"cuda"});
    change(*request.mutable_worker());
    EXPECT_THAT(registry_.Announce(request, now_ms_),
                StatusIs(StatusCode::kInvalidArgument, HasSubstr(std::string(message))));
    EXPECT_EQ(registry_.List(now_ms_).workers_size(), 0);
  };
  refused([](auto& w) { w.clear_id(); }, "worker id is empty");
  refused([](auto& w) { w.clear_kind(); }, "worker kind is 0");
  refused([](auto& w) { w.set_address("localhost"); }, "'localhost'; expected HOST:PORT");
  refused([](auto& w) { w.set_address(":80"); }, "expected HOST:PORT");
  refused([](auto& w) { w.set_address("h:0"); }, "expected HOST:PORT");
  refused([](auto& w) { w.set_address("h:65536"); }, "expected HOST:PORT");
  refused([](auto& w) { w.set_address("h:8x"); }, "expected HOST:PORT");
  refused([](auto& w) { w.clear_keys(); }, "lists 0 keys");
  refused([](auto& w) { w.add_keys(""); }, "worker key is empty");
  refused([](auto& w) { w.set_slots(0); }, "has 0 slots");
  refused([](auto& w) { w.set_slots(5'000); }, "has 5000 slots; expected 1 to 4096");
  refused([](auto& w) { w.set_id(std::string(300, 'x')); }, "300 bytes");

  v1::AcquireRequest ask = Ask("", "ann");
  EXPECT_THAT(registry_.Acquire(ask, now_ms_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("request_id is empty")));
  ask = Ask("r", "ann", "");
  EXPECT_THAT(registry_.Acquire(ask, now_ms_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("key is empty")));
  EXPECT_THAT(registry_.Renew({}, now_ms_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("scheduler_id is empty")));
  Announce(Worker("w", 1, {"cuda"}));
  EXPECT_THAT(registry_.Announce(Worker("w", 1, {"cuda"}, BUILDER), now_ms_),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("one process is one kind")));
}

TEST_F(RegistryTest, TheQueueIsBounded) {
  Registry small({.max_waiting = 2, .max_workers = 1}, 0);
  ASSERT_OK(small.Acquire(Ask("r1", "ann"), 0));
  ASSERT_OK(small.Acquire(Ask("r2", "ann"), 0));
  EXPECT_THAT(small.Acquire(Ask("r3", "ann"), 0),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("2 requests are waiting")));
  ASSERT_OK(small.Acquire(Ask("r2", "ann"), 0));
  ASSERT_OK(small.Announce(Worker("w", 1, {"llvm"}), 0));
  EXPECT_THAT(small.Announce(Worker("x", 1, {"llvm"}), 0),
              StatusIs(StatusCode::kResourceExhausted, HasSubstr("1 workers")));
}

// Users who always want more than there is, and give back what is wanted: nobody starves, and the
// shares come out even.
TEST(RegistryShareTest, SlotsGoRoundBetweenUsers) {
  for (const int slots : {1, 2, 3}) {
    constexpr int kUsers = 4;
    Registry registry(RegistryOptions(), 0);
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

// The obvious registry: vectors, searched from end to end. It follows the real one operation by
// operation, checks that each grant was due and goes to a free slot, that none is missing, and that
// the books agree afterwards.
class Model {
 public:
  explicit Model(int64_t now) : start(now) {}

  struct W {
    v1::WorkerState state;
    int64_t gone_at = 0;
    int64_t grantable_from = 0;
    bool announced = false;
  };
  struct L {
    v1::Lease lease;
    std::string scheduler;
    std::string request;
    int64_t expires;
  };
  struct R {
    v1::AcquireRequest ask;
    int64_t keep_until;
  };

  W* FindWorker(std::string_view id) {
    for (W& w : workers) {
      if (w.state.id() == id) return &w;
    }
    return nullptr;
  }
  L* FindLease(std::string_view id) {
    for (L& l : leases) {
      if (l.lease.id() == id) return &l;
    }
    return nullptr;
  }
  int64_t Busy(const W& w) const {
    return std::count_if(leases.begin(), leases.end(),
                         [&](const L& l) { return l.lease.worker().id() == w.state.id(); });
  }
  int64_t Free(const W& w, int64_t now) const {
    if (!w.announced || now < w.grantable_from) return 0;
    return w.state.slots() - Busy(w);
  }
  void DropWorker(const std::string& id) {
    std::erase_if(leases, [&](const L& l) { return l.lease.worker().id() == id; });
    std::erase_if(workers, [&](const W& w) { return w.state.id() == id; });
    departed.insert(id);
  }
  void Advance(int64_t now) {
    std::vector<std::string> gone;
    for (const W& w : workers) {
      if (now >= w.gone_at) gone.push_back(w.state.id());
    }
    for (const std::string& id : gone) DropWorker(id);
    std::erase_if(leases, [&](const L& l) { return now >= l.expires; });
    std::erase_if(waiting, [&](const R& r) { return now >= r.keep_until; });
  }
  int64_t HeldBy(v1::WorkerKind kind, const std::string& user) const {
    return std::count_if(leases.begin(), leases.end(), [&](const L& l) {
      return l.lease.user() == user && l.lease.worker().kind() == kind;
    });
  }
  // The index of the request whose turn it is; nullopt: nobody can be served.
  std::optional<size_t> Due(int64_t now) const {
    std::optional<size_t> best;
    for (size_t i = 0; i < waiting.size(); ++i) {  // in order of arrival
      const v1::AcquireRequest& ask = waiting[i].ask;
      if (std::none_of(workers.begin(), workers.end(), [&](const W& w) {
            return Serves(w.state, ask.kind(), ask.key()) && Free(w, now) > 0;
          })) {
        continue;
      }
      const auto rank = [&](const v1::AcquireRequest& a) {
        return std::make_pair(-a.priority(), HeldBy(a.kind(), a.user()));
      };
      if (!best || rank(ask) < rank(waiting[*best].ask)) best = i;
    }
    return best;
  }

  int64_t start;
  std::vector<W> workers;
  std::set<std::string> departed;
  std::vector<L> leases;   // in order of grants
  std::vector<R> waiting;  // in order of arrival
};

class RegistryRandomTest : public testing::TestWithParam<uint64_t> {
 protected:
  void SetUp() override { rng_.seed(GetParam()); }

  int Uniform(int n) { return static_cast<int>(rng_() % static_cast<uint64_t>(n)); }

  void RandomAnnounce() {
    static const std::vector<std::vector<std::string>> kKeys = {
        {"cuda", "cuda/sm_90", "NVIDIA H200"}, {"cuda", "cuda/sm_80"}, {"llvm"}, {"llvm", "cuda"}};
    const int i = Uniform(7);
    v1::AnnounceRequest request =
        Worker(fmt::format("w{}", i), 1 + (Uniform(20) == 0 ? Uniform(3) : i % 3), kKeys[i % 4],
               i % 2 == 0 ? RUNNER : BUILDER);
    if (Uniform(10) == 0) request.mutable_worker()->set_address("shared:1");
    request.set_leaving(Uniform(25) == 0);
    request.set_rejoining(Uniform(4) == 0);
    ASSERT_OK(registry_->Announce(request, now_));
    model_.Advance(now_);
    Model::W* w = model_.FindWorker(request.worker().id());
    if (request.leaving()) {
      if (w != nullptr) model_.DropWorker(request.worker().id());
      return;
    }
    if (w == nullptr) {
      std::vector<std::string> same;
      for (const Model::W& other : model_.workers) {
        if (other.state.address() == request.worker().address()) same.push_back(other.state.id());
      }
      for (const std::string& id : same) model_.DropWorker(id);
      model_.workers.emplace_back();
      w = &model_.workers.back();
    }
    if (!w->announced && request.rejoining()) w->grantable_from = now_ + options_.refill_ms;
    w->announced = true;
    w->state = request.worker();
    w->gone_at = now_ + options_.deadline_ms;
    while (model_.Busy(*w) > w->state.slots()) {
      const auto newest =
          std::find_if(model_.leases.rbegin(), model_.leases.rend(),
                       [&](const Model::L& l) { return l.lease.worker().id() == w->state.id(); });
      model_.leases.erase(std::next(newest).base());
    }
  }

  void RandomAcquire() {
    static const std::vector<std::string> kKeys = {"cuda", "llvm", "NVIDIA H200", "cuda/sm_80",
                                                   "nobody"};
    v1::AcquireRequest ask;
    if (!model_.waiting.empty() && Uniform(3) == 0) {
      ask = model_.waiting[Uniform(static_cast<int>(model_.waiting.size()))].ask;
    } else {
      ask = Ask(fmt::format("r{}", next_id_++), fmt::format("u{}", Uniform(4)), kKeys[Uniform(5)],
                Uniform(3));
      ask.set_kind(Uniform(2) == 0 ? RUNNER : BUILDER);
    }
    ask.set_wait_ms(Uniform(2) == 0 ? 0 : 20'000);
    ask.set_lease_ms(Uniform(2) == 0 ? 0 : 3'000);
    model_.Advance(now_);
    auto known = std::find_if(model_.waiting.begin(), model_.waiting.end(), [&](const Model::R& r) {
      return r.ask.request_id() == ask.request_id();
    });
    if (known == model_.waiting.end()) {
      model_.waiting.push_back({ask, 0});
      known = std::prev(model_.waiting.end());
    }
    known->ask = ask;
    known->keep_until =
        std::max(known->keep_until, now_ + ask.wait_ms() + options_.request_idle_ms);
    ASSERT_OK(registry_->Acquire(ask, now_));
  }

  bool ModelRenews(const v1::Lease& lease, const std::string& scheduler) {
    if (Model::L* known = model_.FindLease(lease.id())) {
      if (known->scheduler != scheduler) return false;
      known->expires = now_ + known->lease.lease_ms();
      return true;
    }
    if (released_.count(lease.id()) > 0) return false;
    Model::W* w = model_.FindWorker(lease.worker().id());
    if (w == nullptr) {
      if (now_ >= model_.start + options_.deadline_ms) return false;
      if (model_.departed.count(lease.worker().id()) > 0) return false;
      for (const Model::W& other : model_.workers) {
        if (other.state.address() == lease.worker().address()) return false;
      }
      model_.workers.push_back({lease.worker(), model_.start + options_.deadline_ms, 0, false});
      w = &model_.workers.back();
    }
    if (model_.Busy(*w) >= w->state.slots()) return false;
    model_.leases.push_back({lease, scheduler, "", now_ + lease.lease_ms()});
    return true;
  }

  // Schedulers remember every lease they were ever given, also the lost and the released ones.
  void RandomRenew() {
    const std::string user = fmt::format("u{}", Uniform(4));
    std::vector<v1::Lease> mine;
    for (const v1::Lease& lease : given_) {
      const bool own = lease.user() == user;
      if (own ? Uniform(5) != 0 : Uniform(50) == 0) mine.push_back(lease);
    }
    model_.Advance(now_);
    const v1::RenewRequest request = RenewOf(user, mine);
    const auto reply = registry_->Renew(request, now_);
    ASSERT_OK(reply);
    // Grants made by the passing of time come before the renewal.
    CheckGrants();
    std::vector<std::string> lost;
    for (const v1::Lease& lease : mine) {
      if (!ModelRenews(lease, request.scheduler_id())) lost.push_back(lease.id());
    }
    EXPECT_THAT(reply->lost_lease_ids(), testing::ElementsAreArray(lost));
    EXPECT_LE(static_cast<size_t>(reply->wanted_lease_ids_size()), model_.waiting.size());
    for (const std::string& id : reply->wanted_lease_ids()) {
      const Model::L* lease = model_.FindLease(id);
      ASSERT_NE(lease, nullptr);
      EXPECT_TRUE(std::any_of(model_.waiting.begin(), model_.waiting.end(),
                              [&](const auto& r) {
                                const Model::W* w = model_.FindWorker(lease->lease.worker().id());
                                return Serves(w->state, r.ask.kind(), r.ask.key()) &&
                                       r.ask.priority() >= lease->lease.priority();
                              }))
          << "nobody who waits may have lease " << id;
    }
    std::erase_if(given_, [&](const v1::Lease&) { return Uniform(40) == 0; });
  }

  void RandomRelease() {
    v1::ReleaseRequest request = ReleaseOf(fmt::format("u{}", Uniform(4)), {});
    for (const v1::Lease& lease : given_) {
      if (Uniform(6) == 0) request.add_lease_ids(lease.id());
    }
    for (const Model::R& r : model_.waiting) {
      if (Uniform(6) == 0) request.add_request_ids(r.ask.request_id());
    }
    for (const Model::L& l : model_.leases) {
      if (!l.request.empty() && Uniform(10) == 0) request.add_request_ids(l.request);
    }
    for (const std::string& id : request.lease_ids()) {
      const Model::L* lease = model_.FindLease(id);
      if (lease != nullptr && lease->scheduler != request.scheduler_id()) continue;
      released_.insert(id);
      std::erase_if(model_.leases, [&](const Model::L& l) { return l.lease.id() == id; });
    }
    for (const std::string& id : request.request_ids()) {
      std::erase_if(model_.waiting, [&](const Model::R& r) {
        return r.ask.request_id() == id && r.ask.scheduler_id() == request.scheduler_id();
      });
      std::erase_if(model_.leases, [&](const Model::L& l) {
        const bool drop = l.request == id && l.scheduler == request.scheduler_id();
        if (drop) released_.insert(l.lease.id());
        return drop;
      });
    }
    registry_->Release(request, now_);
    model_.Advance(now_);
  }

  void Restart() {
    registry_.emplace(RegistryOptions{.instance = fmt::format("i{}", next_id_++)}, now_);
    model_ = Model(now_);
    released_.clear();
  }

  void CheckGrants() {
    for (const std::string& id : registry_->TakeGranted()) {
      const std::optional<size_t> due = model_.Due(now_);
      ASSERT_TRUE(due.has_value()) << id << " was granted and nothing was due";
      const v1::AcquireRequest ask = model_.waiting[*due].ask;
      ASSERT_EQ(ask.request_id(), id) << "out of order";
      const v1::AcquireReply reply = registry_->Poll(id, now_);
      ASSERT_TRUE(reply.has_lease());
      const v1::Lease& lease = reply.lease();
      Model::W* w = model_.FindWorker(lease.worker().id());
      ASSERT_NE(w, nullptr) << "lease on a worker that is gone";
      ASSERT_TRUE(Serves(w->state, ask.kind(), ask.key()));
      ASSERT_GT(model_.Free(*w, now_), 0) << "slot granted twice";
      ASSERT_EQ(model_.FindLease(lease.id()), nullptr);
      model_.leases.push_back({lease, ask.scheduler_id(), id, now_ + lease.lease_ms()});
      given_.push_back(lease);
      model_.waiting.erase(model_.waiting.begin() + static_cast<ptrdiff_t>(*due));
      ++grants_;
    }
    ASSERT_FALSE(model_.Due(now_).has_value()) << "a free slot and a request that fits it";
  }

  void CheckBooks() {
    const v1::ListReply list = registry_->List(now_);
    ASSERT_EQ(static_cast<size_t>(list.workers_size()), model_.workers.size());
    for (int i = 0; i < list.workers_size(); ++i) {
      const Model::W* w = model_.FindWorker(list.workers(i).id());
      ASSERT_NE(w, nullptr);
      ASSERT_EQ(list.busy_slots(i), model_.Busy(*w)) << w->state.id();
      ASSERT_LE(list.busy_slots(i), w->state.slots());
    }
    size_t pending = 0;
    for (const v1::KeyState& row : list.keys()) {
      ASSERT_LE(row.free(), row.total());
      pending += row.pending();
    }
    ASSERT_EQ(pending, model_.waiting.size());
    ASSERT_GT(registry_->NextEventMs(), now_);
  }

  std::mt19937_64 rng_;
  RegistryOptions options_;
  int64_t now_ = 0;
  std::optional<Registry> registry_{std::in_place, RegistryOptions(), 0};
  Model model_{0};
  std::vector<v1::Lease> given_;
  std::set<std::string> released_;
  int next_id_ = 0;
  int grants_ = 0;
};

TEST_P(RegistryRandomTest, AgreesWithTheModel) {
  for (int step = 0; step < 4'000; ++step) {
    SCOPED_TRACE(fmt::format("seed {} step {} now {}", GetParam(), step, now_));
    const int op = Uniform(100);
    if (op < 30) {
      RandomAnnounce();
    } else if (op < 60) {
      RandomAcquire();
    } else if (op < 75) {
      RandomRenew();
    } else if (op < 80) {
      RandomRelease();
    } else if (op < 99) {
      now_ += Uniform(4) == 0 ? Uniform(6'000) : Uniform(300);
      registry_->Advance(now_);
      model_.Advance(now_);
    } else if (Uniform(4) == 0) {
      Restart();
    }
    // The registry forgets released leases after a minute; so do schedulers here.
    if (step % 200 == 0) given_.clear();
    CheckGrants();
    CheckBooks();
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(grants_, 200) << "the run exercised nothing";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RegistryRandomTest, testing::Range<uint64_t>(1, 33),
                         [](const auto& p) { return fmt::format("seed{}", p.param); });

// Every sequence of six operations on one slot and two users: the slot is never held twice, and it
// is never idle while somebody waits.
TEST(RegistryExhaustiveTest, OneSlotTwoUsers) {
  constexpr int kOps = 8;
  constexpr int kLength = 6;
  int total = 1;
  for (int i = 0; i < kLength; ++i) total *= kOps;
  for (int code = 0; code < total; ++code) {
    Registry registry({.deadline_ms = 3'000, .default_lease_ms = 2'000, .request_idle_ms = 1'500},
                      0);
    int64_t now = 0;
    std::map<std::string, v1::Lease> last;  // by user: what it was last given
    int rest = code;
    for (int i = 0; i < kLength; ++i, rest /= kOps) {
      const int op = rest % kOps;
      const std::string user = op % 2 == 0 ? "ann" : "bob";
      switch (op / 2) {
        case 0: {
          v1::AnnounceRequest request = Worker("w", 1, {"cuda"});
          request.set_leaving(op == 1);
          ASSERT_OK(registry.Announce(request, now));
          break;
        }
        case 1: {
          v1::AcquireRequest ask = Ask("r-" + user, user);
          ask.set_wait_ms(0);
          const auto reply = registry.Acquire(ask, now);
          ASSERT_OK(reply);
          if (reply->has_lease()) last[user] = reply->lease();
          break;
        }
        case 2: {
          if (last.count(user) == 0) break;
          ASSERT_OK(registry.Renew(RenewOf(user, {last[user]}), now));
          break;
        }
        default:
          if (op == 6) {
            now += 1'000;
          } else if (last.count("ann") > 0) {
            registry.Release(ReleaseOf("ann", {last["ann"].id()}), now);
          }
      }
      const v1::ListReply list = registry.List(now);
      ASSERT_LE(list.workers_size(), 1) << code;
      const uint32_t busy = list.workers_size() == 1 ? list.busy_slots(0) : 0;
      ASSERT_LE(busy, 1u) << code;
      for (const v1::KeyState& row : list.keys()) {
        ASSERT_EQ(row.free() + busy, row.total()) << code;
        ASSERT_FALSE(row.free() > 0 && row.pending() > 0) << code;
      }
    }
  }
}

TEST_F(RegistryTest, AvoidedWorkersAreLeftToOthers) {
  Announce(Worker("a", 2, {"cuda"}));
  v1::AcquireRequest picky = Ask("1", "ada");
  picky.add_avoid_worker_ids("a");
  Waits(picky);
  // It holds nobody up, and gets the next one that it does not avoid.
  EXPECT_EQ(Granted(Ask("2", "bob")).worker().id(), "a");
  registry_.TakeGranted();
  EXPECT_OK(registry_.Announce(Worker("b", 1, {"cuda"}), now_ms_));
  EXPECT_THAT(registry_.TakeGranted(), ElementsAre("1"));
  EXPECT_EQ(registry_.Poll("1", now_ms_).lease().worker().id(), "b");
  v1::AcquireRequest again = Ask("3", "ada");
  again.add_avoid_worker_ids("b");
  EXPECT_EQ(Granted(again).worker().id(), "a");
}

TEST_F(RegistryTest, ARestartedSchedulerDoesNotWaitForItsOwnOldLeases) {
  Announce(Worker("a", 2, {"cuda"}));
  v1::AcquireRequest first = Ask("1", "ada"), second = Ask("2", "ada");
  first.set_incarnation(4);
  second.set_incarnation(4);
  const v1::Lease old = Granted(first);
  Granted(second);  // two of one incarnation live side by side
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
  EXPECT_THAT(registry_.TakeNews(), testing::Contains(HasSubstr("s-ada has started again")));
  // The dead one's lease does not come back, and its request is gone.
  EXPECT_THAT(Renew(RenewOf("ada", {old})).lost_lease_ids(), ElementsAre(old.id()));
  EXPECT_EQ(registry_.List(now_ms_).keys(0).pending(), 0u);
}

}  // namespace
}  // namespace kiln::tracker
