// The command line of tune, submit, jobs, watch, cancel and workers.
#pragma once

#include <optional>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/flag_table.h"
#include "client/cli/job_options.h"

namespace kiln::client {

// Must outlive the parse and the run, and so must `table`.
class JobFlagTable {
 public:
  explicit JobFlagTable(FlagTable& table) : flag_table_(table) {}
  JobFlagTable(const JobFlagTable&) = delete;
  JobFlagTable& operator=(const JobFlagTable&) = delete;

  void AddTo(CLI::App& app);

 private:
  void AddTune(CLI::App& app);
  void AddCalibrate(CLI::App& app);
  void AddSubmit(CLI::App& app);
  void AddJobs(CLI::App& app);
  void AddWatch(CLI::App& app);
  void AddCancel(CLI::App& app);
  void AddWorkers(CLI::App& app);
  void AddCluster(CLI::App& tune);
  void AddFollow(CLI::App& command);
  static void MarkMostUsed(CLI::App& command, const char* place);

  StatusOr<int> RunTune() const;
  Status RunSubmit() const;
  StatusOr<int> RunCalibrate() const;
  StatusOr<int> RunWatch() const;
  Status RunJobs() const;
  Status RunWorkers() const;

  FlagTable& flag_table_;
  JobOptions options_;
  FollowOptions follow_;
  ClusterFlags cluster_;
  CalibrateFlags calibrate_;
  std::string resume_, job_id_;
  uint32_t limit_ = 20;
  bool all_ = false, timing_ = false;
  // The address given on the command line.
  std::optional<std::string> tracker_;
};

}  // namespace kiln::client
