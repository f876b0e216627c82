// A cluster whose machines Slurm gives out, as far as a fleet needs it: jobs are submitted, listed
// and cancelled. SlurmPrograms is the real one, FakeSlurmCluster the one for tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::client {

enum class SlurmJobState {
  // The job waits for a machine, for the first time or again after a requeue.
  kPending,
  // The job has a machine. Its program may not have begun yet.
  kRunning,
  // The job's program has ended or is being ended. A job that is requeued becomes pending again.
  kEnding,
};

struct SlurmJob {
  // Slurm's number of the job, which a requeue keeps.
  int64_t id = 0;
  SlurmJobState state = SlurmJobState::kPending;
  // The job's name: --job-name of sbatch.
  std::string name = {};
  // The reason why a pending job waits, in Slurm's word ("Resources"), or the node of a running
  // job; "" = Slurm does not say.
  std::string detail = {};

  bool operator==(const SlurmJob&) const = default;
};

struct SlurmJobRequest {
  std::string name = {};
  // Arguments of sbatch besides the name.
  std::vector<std::string> arguments = {};
  // Text of the batch script.
  std::string script = {};
};

// All functions belong to one thread, and wait for Slurm's answer.
class SlurmCluster {
 public:
  virtual ~SlurmCluster() = default;

  // Returns the number of the new job. An error says what Slurm answered, and what to do.
  virtual StatusOr<int64_t> Submit(const SlurmJobRequest& request) = 0;
  // Returns this user's jobs of these names that Slurm has not ended yet, in any order.
  virtual StatusOr<std::vector<SlurmJob>> List(const std::vector<std::string>& names) = 0;
  // Ends the jobs: their programs get SIGTERM, and SIGKILL after Slurm's KillWait. OK for a job
  // that has ended already.
  virtual Status Cancel(const std::vector<int64_t>& ids) = 0;
};

}  // namespace kiln::client
