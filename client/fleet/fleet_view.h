// A fleet as its farm and its cluster see it: the Slurm jobs of its name, the workers in them, and
// the slots that jobs of the farm want of it. Functions of values.
//
// The names join the two sides, so that a fleet that is started again finds what it has: the fleet
// "night" has the Slurm jobs "kiln-night-runner" and "kiln-night-builder", and the worker in the
// job 17 has an id that ends with ".kiln-night-17" (--name of a worker).
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/fleet/fleet_plan.h"
#include "client/fleet/slurm_cluster.h"
#include "proto/tracker.pb.h"

namespace kiln::client {

// Returns "kiln-night-runner" or "kiln-night-builder".
std::string SlurmJobName(std::string_view fleet, v1::WorkerKind kind);

// Returns the number of the Slurm job in which a worker of the fleet runs; nullopt = the worker is
// of another fleet, or of none.
std::optional<int64_t> SlurmJobOf(std::string_view worker_id, std::string_view fleet);

// Returns the reason with which the fleet drains its workers (AskedBy::why).
std::string DrainReason(std::string_view fleet);

// The keys by which jobs ask for the workers of a fleet.
struct FleetKeys {
  // Keys that the user has named; empty: those that `announced` has, or before any worker has
  // announced itself those that fit `device`.
  std::vector<std::string> named = {};
  // --device of the fleet's runners: "cpu", "cuda", "null"; "" = any, as of builders.
  std::string device = {};
  std::set<std::string> announced = {};

  bool Serve(std::string_view key) const;
};

// One kind of workers of a fleet.
struct FleetView {
  std::vector<FleetJob> jobs = {};
  // Leased slots of the fleet's workers that serve, and requests that wait for a slot as the fleet
  // has it.
  int wanted_slots = 0;
  // Keys of all its workers.
  std::set<std::string> announced = {};
};

FleetView ViewFleet(std::string_view fleet, v1::WorkerKind kind, const v1::ListReply& farm,
                    const std::vector<SlurmJob>& jobs, const FleetKeys& keys);

// Returns the ids of the workers in a Slurm job of the fleet.
std::vector<std::string> WorkersOfJob(std::string_view fleet, int64_t job,
                                      const v1::ListReply& farm);

}  // namespace kiln::client
