// The command line of ops, templates, check, tasks, compile, schedule, run, verify, bench, doctor,
// selftest, conformance and version.
#pragma once

#include <string>

#include "client/check/conformance.h"
#include "client/check/selftest.h"
#include "client/cli/commands.h"
#include "client/cli/flag_table.h"
#include "client/cli/job_options.h"

namespace kiln::client {

// Must outlive the parse and the run, and so must `table`.
class ToolFlagTable {
 public:
  explicit ToolFlagTable(FlagTable& table) : flag_table_(table) {}
  ToolFlagTable(const ToolFlagTable&) = delete;
  ToolFlagTable& operator=(const ToolFlagTable&) = delete;

  void AddTo(CLI::App& app);

 private:
  void AddOps(CLI::App& app);
  void AddTemplates(CLI::App& app);
  void AddCheck(CLI::App& app);
  void AddTasks(CLI::App& app);
  void AddCompile(CLI::App& app);
  void AddSchedule(CLI::App& app);
  void AddRun(CLI::App& app);
  void AddVerify(CLI::App& app);
  void AddBench(CLI::App& app);
  void AddDoctor(CLI::App& app);
  void AddSelfTest(CLI::App& app);
  void AddConformance(CLI::App& app);
  void AddVersion(CLI::App& app);

  StatusOr<int> RunSelfTest() const;
  StatusOr<int> RunConformance() const;
  StatusOr<int> RunVerify() const;

  FlagTable& flag_table_;
  std::string operator_;
  WorkloadArguments arguments_;
  TemplatesFlags templates_;
  TasksFlags tasks_;
  CompileFlags compile_;
  ScheduleFlags schedule_;
  RunFlags run_;
  VerifyFlags verify_;
  // Used by verify.
  std::vector<double> tolerance_;
  BenchFlags bench_;
  SelfTestFlags selftest_;
  ConformanceFlags conformance_;
  // Options of conformance's jobs.
  JobOptions options_;
};

}  // namespace kiln::client
