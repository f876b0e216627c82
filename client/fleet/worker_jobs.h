// The Slurm jobs of a fleet: what is given to sbatch for a runner and for a builder. Functions of
// values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/fleet/slurm_cluster.h"
#include "proto/tracker.pb.h"

namespace kiln::client {

// The same for all workers of a fleet.
struct WorkerProgram {
  // Path of `kiln` on the nodes.
  std::string program = {};
  // HOST:PORT of the tracker as the nodes reach it.
  std::string tracker = {};
  // HOST:PORT on which workers serve.
  std::string listen = {};
  // Folder of the workers' keys, or file of the farm's secret, on the nodes; "" = none is named.
  std::string keys_folder = {};
  std::string secret_file = {};
  // Folder of the logs on the nodes; "" = the folder in which the command was started.
  std::string log_folder = {};
};

// One kind of workers. "" and 0 leave the choice to Slurm.
struct WorkerJob {
  v1::WorkerKind kind = v1::RUNNER;
  std::string partition = {}, constraint = {}, gres = {}, account = {}, qos = {}, time = {};
  int cpus = 0;
  // Further arguments of sbatch, and of the worker.
  std::vector<std::string> sbatch_arguments = {};
  std::vector<std::string> worker_arguments = {};
};

// InvalidArgument if the fleet's name is no short word, or a further argument of sbatch takes a job
// away from its fleet: a name, an array, another cluster.
Status CheckFleetName(std::string_view fleet);
Status CheckSbatchArgument(std::string_view argument);

// Returns the path of a worker's log. "%j" in it stands for the job's number.
std::string LogFileOf(std::string_view fleet, const WorkerProgram& program, v1::WorkerKind kind);

// Returns what starts a worker. The script becomes the worker, so that Slurm's signals reach it.
// Slurm signals it a minute before the job's time limit, and puts a job whose node fails or that
// is preempted back into its queue.
SlurmJobRequest RequestOf(std::string_view fleet, const WorkerProgram& program,
                          const WorkerJob& job);

}  // namespace kiln::client
