#include "scheduler/lease_factory.h"

#include "proto/lease_keeper.h"

namespace kiln::scheduler {
namespace {

std::string WhyWaiting(const LeaseKeeper& keeper, const LeaseWish& wish,
                       const std::string& tracker) {
  const LeaseKeeper::Snapshot snapshot = keeper.snapshot();
  const std::string_view kind = wish.kind == v1::BUILDER ? "builder" : "runner";
  if (!snapshot.tracker_error.empty()) {
    return fmt::format("waiting for the tracker at {}: {}", tracker, snapshot.tracker_error);
  }
  if (snapshot.matching_slots == 0) {
    return fmt::format("waiting for a {} for '{}': none is registered with the tracker at {}", kind,
                       wish.key, tracker);
  }
  return fmt::format("waiting for a {} for '{}': all {} slots are busy, position {} in the queue",
                     kind, wish.key, snapshot.matching_slots, snapshot.queue_position);
}

}  // namespace

LeaseFactory TrackerLeases(std::string tracker, std::string scheduler_id, uint64_t incarnation,
                           Secret secret) {
  return [tracker = std::move(tracker), scheduler_id = std::move(scheduler_id), incarnation,
          secret = std::move(secret)](const LeaseWish& wish) {
    LeaseKeeper::Options options;
    options.tracker = tracker;
    options.secret = secret;
    options.scheduler_id = fmt::format("{}/{}", scheduler_id, wish.job_id);
    options.incarnation = incarnation;
    options.kind = wish.kind;
    options.key = wish.key;
    options.user = wish.user;
    options.priority = wish.priority;
    options.max_leases = wish.max_leases;
    auto keeper = std::make_unique<LeaseKeeper>(options);
    Leases leases;
    leases.why_waiting = [keeper = keeper.get(), wish, tracker] {
      return WhyWaiting(*keeper, wish, tracker);
    };
    leases.source = std::move(keeper);
    return leases;
  };
}

}  // namespace kiln::scheduler
