#include "client/fleet/worker_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/shell_word.h"
#include "client/fleet/fleet_view.h"

namespace kiln::client {
namespace {

constexpr size_t kLongestFleetName = 40;

bool IsNameCharacter(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_';
}

// Options of sbatch that the fleet sets itself, or that make several jobs of one.
constexpr std::string_view kRefused[] = {"--job-name",  "-J",     "--array",   "-a", "--clusters",
                                         "-M",          "--wrap", "--wait",    "-W", "--parsable",
                                         "--test-only", "--help", "--version", "-V", "-h"};

void AddOption(std::vector<std::string>& arguments, std::string_view name,
               const std::string& value) {
  if (!value.empty()) arguments.push_back(fmt::format("{}={}", name, value));
}

// Returns the words of the worker's command, but for its name.
std::vector<std::string> WorkerCommand(const WorkerProgram& program, const WorkerJob& job) {
  std::vector<std::string> words = {program.program, job.kind == v1::RUNNER ? "runner" : "builder",
                                    "--tracker",     program.tracker,
                                    "--listen",      program.listen};
  if (!program.keys_folder.empty()) words.insert(words.end(), {"--keys", program.keys_folder});
  if (!program.secret_file.empty()) {
    words.insert(words.end(), {"--secret-file", program.secret_file});
  }
  words.insert(words.end(), job.worker_arguments.begin(), job.worker_arguments.end());
  return words;
}

}  // namespace

Status CheckFleetName(std::string_view fleet) {
  if (!fleet.empty() && fleet.size() <= kLongestFleetName &&
      std::ranges::all_of(fleet, IsNameCharacter)) {
    return OkStatus();
  }
  return InvalidArgument(
      "the name of a fleet has 1 to {} letters, digits, '-' and '_', but is '{}'; choose such a "
      "word",
      kLongestFleetName, fleet);
}

Status CheckSbatchArgument(std::string_view argument) {
  if (!argument.starts_with('-')) {
    return InvalidArgument(
        "'{}' is no option of sbatch; write an option and its value as one word, as in "
        "--sbatch-arg=--mem=8G",
        argument);
  }
  const std::string_view name = argument.substr(0, argument.find('='));
  for (const std::string_view refused : kRefused) {
    // A value may follow a short option at once, and a long option may be abbreviated.
    const bool is_short = refused.size() == 2;
    if (is_short ? name.starts_with(refused) : name.size() > 2 && refused.starts_with(name)) {
      return InvalidArgument(
          "the option {} of sbatch cannot be passed on: the fleet finds its jobs by the names and "
          "numbers that it gives them; leave the option out",
          refused);
    }
  }
  return OkStatus();
}

std::string LogFileOf(std::string_view fleet, const WorkerProgram& program, v1::WorkerKind kind) {
  const std::string name = SlurmJobName(fleet, kind) + "-%j.log";
  return program.log_folder.empty() ? name : program.log_folder + "/" + name;
}

SlurmJobRequest RequestOf(std::string_view fleet, const WorkerProgram& program,
                          const WorkerJob& job) {
  SlurmJobRequest request;
  request.name = SlurmJobName(fleet, job.kind);
  request.arguments = {"--nodes=1",          "--ntasks=1",
                       "--requeue",          "--signal=B:TERM@60",
                       "--open-mode=append", "--output=" + LogFileOf(fleet, program, job.kind)};
  AddOption(request.arguments, "--partition", job.partition);
  AddOption(request.arguments, "--constraint", job.constraint);
  AddOption(request.arguments, "--gres", job.gres);
  AddOption(request.arguments, "--account", job.account);
  AddOption(request.arguments, "--qos", job.qos);
  AddOption(request.arguments, "--time", job.time);
  if (job.cpus > 0) request.arguments.push_back(fmt::format("--cpus-per-task={}", job.cpus));
  request.arguments.insert(request.arguments.end(), job.sbatch_arguments.begin(),
                           job.sbatch_arguments.end());
  std::string command;
  for (const std::string& word : WorkerCommand(program, job)) command += ShellWord(word) + " ";
  request.script =
      fmt::format("#!/bin/sh\nexec {}--name \"kiln-{}-$SLURM_JOB_ID\"\n", command, fleet);
  return request;
}

}  // namespace kiln::client
