// Slurm by its programs sbatch, squeue and scancel, as versions from 20.02 on have them. No shell
// is involved: each argument is a word of its own.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/process/subprocess.h"
#include "base/status.h"
#include "client/fleet/slurm_cluster.h"

namespace kiln::client {

// Returns the words of the command that submits the request. The script goes to its input.
std::vector<std::string> SbatchCommand(const SlurmJobRequest& request);

// Reads what `sbatch --parsable` prints: "17", or "17;cluster".
StatusOr<int64_t> ParseSubmittedJob(std::string_view output);

// Returns the words of the command that lists this user's jobs of these names.
std::vector<std::string> SqueueCommand(const std::vector<std::string>& names);

// Reads what that command prints: a line for each job.
StatusOr<std::vector<SlurmJob>> ParseQueue(std::string_view output);

// Returns advice for a user whom one of Slurm's programs answered this on stderr.
std::string_view SlurmAdvice(std::string_view error);

class SlurmPrograms : public SlurmCluster {
 public:
  // Runs a program to its end with this input.
  using RunProgram = std::function<StatusOr<RunResult>(SubprocessOptions, std::string_view input)>;

  // Runs the programs of PATH. Each has two minutes.
  SlurmPrograms();
  explicit SlurmPrograms(RunProgram run) : run_(std::move(run)) {}

  StatusOr<int64_t> Submit(const SlurmJobRequest& request) override;
  StatusOr<std::vector<SlurmJob>> List(const std::vector<std::string>& names) override;
  Status Cancel(const std::vector<int64_t>& ids) override;

 private:
  // Returns the output of a program that succeeded.
  StatusOr<std::string> Run(std::vector<std::string> command, std::string_view input = {});

  const RunProgram run_;
};

}  // namespace kiln::client
