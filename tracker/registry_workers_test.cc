// Tests workers of the registry: how they come, go and come back, and what is reported of them.
#include "tracker/registry_testing.h"

namespace kiln::tracker {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using v1::BUILDER;
using v1::RUNNER;

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
  // Past the start, when unknown workers are taken from leases.
  now_ms_ += 20'000;
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).lost_lease_ids(), ElementsAre(lease.id()));
}

v1::AnnounceRequest WorkerAt(std::string_view id, std::string_view address) {
  v1::AnnounceRequest request = Worker(id, 1, {"cuda"});
  request.mutable_worker()->set_address(std::string(address));
  return request;
}

TEST_F(RegistryTest, ANewProcessAtTheSameAddressReplacesTheDeadOne) {
  Announce(Worker("old", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  // The worker should have announced itself after 2,500 ms.
  now_ms_ += 3'750;
  Announce(WorkerAt("new", "old:1"));
  EXPECT_THAT(Renew(RenewOf("ann", {lease})).lost_lease_ids(), ElementsAre(lease.id()));
  EXPECT_EQ(Granted(Ask("r2", "ann")).worker().id(), "new");
}

TEST_F(RegistryTest, AWorkerThatAnnouncesItselfKeepsItsAddress) {
  Announce(Worker("w", 1, {"cuda"}));
  const v1::Lease lease = Granted(Ask("r1", "ann"));
  for (int i = 0; i < 10; ++i) {
    now_ms_ += 2'500;
    EXPECT_THAT(registry_.Announce(WorkerAt("eve", "w:1"), now_ms_),
                StatusIs(StatusCode::kFailedPrecondition,
                         HasSubstr("worker 'w' is at w:1 and announced itself 2500 ms ago")));
    Announce(Worker("w", 1, {"cuda"}));
    EXPECT_THAT(Renew(RenewOf("ann", {lease})).lost_lease_ids(), IsEmpty());
  }
  EXPECT_EQ(registry_.List(now_ms_).workers_size(), 1);
}

TEST_F(RegistryTest, AWorkerHasOneAddress) {
  Announce(Worker("w", 1, {"cuda"}));
  EXPECT_THAT(registry_.Announce(WorkerAt("w", "eve:1"), now_ms_),
              StatusIs(StatusCode::kInvalidArgument,
                       "worker 'w' was announced at w:1 and now at eve:1; one process has one "
                       "address"));
  EXPECT_EQ(registry_.List(now_ms_).workers(0).address(), "w:1");
}

TEST_F(RegistryTest, TellsOperatorsWhatHappened) {
  Announce(Worker("w", 1, {"cuda", "null"}));
  Granted(Ask("r1", "ann"));
  now_ms_ += 10'000;
  registry_.Advance(now_ms_);
  EXPECT_THAT(registry_.TakeEvents(),
              ElementsAre("worker w at w:1 joins: RUNNER, 1 slots, keys cuda, null",
                          "worker w at w:1 is gone: silent for 10000 ms; 1 leases lost"));
  EXPECT_THAT(registry_.TakeEvents(), IsEmpty());
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

  Registry again({}, 0);
  v1::AnnounceRequest rejoin =
      a.worker().id() == "w1" ? Worker("w1", 1, {"cuda"}) : Worker("w2", 1, {"cuda"});
  rejoin.set_rejoining(true);
  // Worker a comes back first.
  ASSERT_OK(again.Announce(rejoin, 10));
  ASSERT_OK(again.Acquire(Ask("r3", "cid"), 20));
  EXPECT_THAT(again.TakeGranted(), IsEmpty()) << "its holder has not had time to renew";
  EXPECT_THAT(again.Renew(RenewOf("ann", {a}), 30)->lost_lease_ids(), IsEmpty());
  // Bob's lease comes back before its worker.
  EXPECT_THAT(again.Renew(RenewOf("bob", {b}), 40)->lost_lease_ids(), IsEmpty());
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
  // A runner of an older version, and a hostile runner.
  refused([](auto& w) { w.clear_device_model(); }, "announces no device model");
  refused([](auto& w) { w.mutable_device_model()->set_cores(-1); }, "cores is -1, expected 0 to");
  refused([](auto& w) { w.mutable_device_model()->set_clock_mhz(1 << 30); }, "clock_mhz is");
  refused([](auto& w) { w.mutable_device_model()->clear_name(); }, "no name");

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

}  // namespace
}  // namespace kiln::tracker
