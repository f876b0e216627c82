// The flags of `kiln fleet slurm`.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "client/fleet/fleet.h"
#include "client/fleet/worker_jobs.h"
#include "client/session.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

struct FleetFlags {
  std::string name = "slurm";
  std::string tracker;
  FleetLimits runners, builders;
  int runner_slots = 1;
  int runner_cpus = 0, builder_cpus = 4;
  std::string device = "cpu";
  std::vector<std::string> keys_wanted;
  // Options of sbatch for both kinds of workers; builders may have a partition of their own.
  std::string partition, builder_partition, account, qos, time;
  std::string constraint, gres;
  std::vector<std::string> sbatch_arguments, runner_sbatch_arguments, builder_sbatch_arguments;
  std::vector<std::string> runner_arguments, builder_arguments;
  std::string program, listen = "0.0.0.0:0", worker_keys, log_folder;
  double look_every_s = 5, grow_after_s = 10, shrink_after_s = 120;
  bool keep = false, dry_run = false;

  // Adds all flags. They must outlive the parse.
  void Add(CLI::App& command);
  // Returns the fleet that the flags describe. InvalidArgument says which flag is wrong.
  StatusOr<FleetOptions> Complete(const Session& session) const;

 private:
  void AddSize(CLI::App& command);
  void AddSlurm(CLI::App& command);
  void AddWorkers(CLI::App& command);
  void AddTimes(CLI::App& command);
  StatusOr<WorkerProgram> ProgramOf(const Session& session) const;
  Status Check() const;
  WorkerJob RunnerJob() const;
  WorkerJob BuilderJob() const;
};

}  // namespace kiln::client
