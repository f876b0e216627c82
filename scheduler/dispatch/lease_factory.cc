#include "scheduler/dispatch/lease_factory.h"

#include "rpc/lease_keeper.h"

namespace kiln::scheduler {
namespace {

std::string WhyWaiting(const LeaseKeeper& keeper, const LeaseSpec& spec,
                       const std::string& tracker) {
  const LeaseKeeper::Snapshot snapshot = keeper.snapshot();
  const std::string_view kind = spec.kind == v1::BUILDER ? "builder" : "runner";
  if (!snapshot.tracker_error.empty()) {
    return fmt::format("waiting for the tracker at {}: {}", tracker, snapshot.tracker_error);
  }
  if (snapshot.matching_slots == 0) {
    return fmt::format("waiting for a {} for '{}': none is registered with the tracker at {}", kind,
                       spec.key, tracker);
  }
  return fmt::format("waiting for a {} for '{}': all {} slots are busy, position {} in the queue",
                     kind, spec.key, snapshot.matching_slots, snapshot.queue_position);
}

}  // namespace

LeaseFactory TrackerLeases(std::string tracker, std::string scheduler_id, uint64_t incarnation,
                           FarmAccess access) {
  return [tracker = std::move(tracker), scheduler_id = std::move(scheduler_id), incarnation,
          access = std::move(access)](const LeaseSpec& spec) {
    LeaseKeeper::Options options;
    options.tracker = tracker;
    options.access = access;
    options.scheduler_id = fmt::format("{}/{}", scheduler_id, spec.job_id);
    options.incarnation = incarnation;
    options.kind = spec.kind;
    options.key = spec.key;
    options.user = spec.user;
    options.priority = spec.priority;
    options.use = spec.use;
    options.max_leases = spec.max_leases;
    auto keeper = std::make_unique<LeaseKeeper>(options);
    Leases leases;
    leases.why_waiting = [keeper = keeper.get(), spec, tracker] {
      return WhyWaiting(*keeper, spec, tracker);
    };
    leases.source = std::move(keeper);
    return leases;
  };
}

}  // namespace kiln::scheduler
