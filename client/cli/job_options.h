// The options that make a job: what is tuned, how candidates are found, and how they are measured.
// All commands that measure use the options of measuring.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/commands.h"
#include "proto/job_defaults.h"
#include "proto/scheduler.pb.h"
#include "search/policies/policy.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kiln::client {

class MeasuringOptions {
 public:
  void AddTo(CLI::App& command);

  // `may_idle`: further timings while no other trial waits are useful here, unless the flags set
  // their number.
  void Set(bool may_idle, v1::TuneOptions& options) const;
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  CLI::Option* AddNumber(CLI::App& command, const char* name, uint32_t& value, uint32_t least,
                         uint32_t most, const char* what);
  void AddFinalists(CLI::App& command);
  void AddIdle(CLI::App& command);
  void AddFault(CLI::App& command);
  uint32_t IdleMs(bool may_idle) const;

  // --number and --repeat of each command.
  std::vector<const CLI::Option*> exact_;
  uint32_t number_ = kDefaultNumber, repeat_ = kDefaultRepeat;
  uint32_t min_repeat_ms_ = kDefaultMinRepeatMs, cooldown_ms_ = 0;
  uint32_t timeout_ms_ = kDefaultRunTimeoutMs, build_timeout_ms_ = kDefaultBuildTimeoutMs;
  int finalists_ = kDefaultFinalists;
  std::optional<uint32_t> idle_ms_;
  // Relative, absolute.
  std::vector<double> tolerance_;
  bool flush_cache_ = false;
  std::vector<std::string> faults_;
};

class JobOptions {
 public:
  void AddTo(CLI::App& command);
  // Single options, for commands that make their jobs themselves.
  void AddTrials(CLI::App& command, const std::string& what, uint32_t least = 1);
  void AddSeed(CLI::App& command);
  void AddMeasuring(CLI::App& command) { measuring_.AddTo(command); }

  // Call these functions after the parse. Target returns the target of the flags, or the kernel's
  // own; "": neither names one.
  std::string Target() const;
  // Returns the job of the flags, for the target.
  JobFlags Job(const std::string& target) const;

 private:
  void AddTasks(CLI::App& command);
  void AddSearch(CLI::App& command);
  void AddStops(CLI::App& command);
  void AddRounds(CLI::App& command);
  void AddReferenceLimit(CLI::App& command);

  void SetLimits(v1::TuneOptions& options) const;
  // Returns the policy. A template without a policy gets the first policy that searches templates.
  std::string Policy() const;

  JobFlags job_;
  std::vector<std::string> ops_;
  // --trials of each command.
  std::vector<const CLI::Option*> trials_given_;
  // --policy of each command.
  std::vector<const CLI::Option*> policy_given_;
  // --target of each command.
  std::vector<const CLI::Option*> target_given_;
  double minutes_ = 0, reference_limit_s_ = kDefaultReferenceLimit_s;
  uint32_t trials_ = kDefaultTrials, trials_per_round_ = 0;
  uint32_t early_stopping_ = 0, total_early_stopping_ = 0;
  uint64_t seed_ = kDefaultSeed;
  std::string policy_ = std::string(search::Policies().front()->name);
  std::string model_;
  std::string task_strategy_ = "gradient";
  std::string objective_ = "weighted-sum";
  double latency_target_ms_ = 0;
  bool lock_step_ = false, no_warm_start_ = false;
  MeasuringOptions measuring_;
};

}  // namespace kiln::client
