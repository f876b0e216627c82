// Shared by the command lines of all commands of `kiln`: adds a command, and the options of where
// jobs and records are and how to print. Each group of commands (job_flag_table.h,
// record_flag_table.h, model_flag_table.h, tool_flag_table.h) adds itself with this table.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/cli/commands.h"
#include "client/cli/record_list.h"
#include "client/cli/workload_source.h"
#include "client/network.h"
#include "client/session.h"
#include "proto/trial.pb.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace kiln::client {

// The function of a command, which runs after the parse. Returns the exit status.
using Run = std::function<StatusOr<int>()>;

// Wraps a command that returns only a status.
Run Plain(std::function<Status()> run);

// Must outlive the parse and the run, since options are parsed into it.
class FlagTable {
 public:
  explicit FlagTable(std::string program) { session_.program = std::move(program); }
  FlagTable(const FlagTable&) = delete;
  FlagTable& operator=(const FlagTable&) = delete;

  // RunNamed calls `run` if this command is named. `parent` owns the returned command.
  CLI::App* Add(CLI::App& parent, const std::string& name, const std::string& what, Run run);
  // Adds --scheduler, --db, --secret-file and --json.
  void AddPlace(CLI::App& command);
  // Does the same without --db, for a command that reads no records.
  void AddScheduler(CLI::App& command);
  void AddSecret(CLI::App& command);
  void AddJson(CLI::App& command);

  // Options from the flags and the environment; complete when a command runs.
  const Session& session() const { return session_; }

  // Runs the named command. Call it after the parse.
  StatusOr<int> RunNamed();

 private:
  void AddSchedulerAddress(CLI::App& command);
  void ReadEnvironment();

  Session session_;
  bool db_given_ = false, scheduler_given_ = false;
  Run run_;
};

// Accepts whole numbers from 0. Without it, a negative number would be read as a huge one.
CLI::Validator NotNegative();

// Adds the subject of a command: a record, a job, a workload. `target` is the help of --target.
void AddSubject(CLI::App& command, FlagTable& table, SubjectFlags& subject,
                const std::string& target = "only targets that start so");
// Adds how sums of products of float32 may be computed. The option becomes a part of `target`,
// which must be added before.
void AddMath(CLI::App& command, std::string& target);
// Adds the file that describes the space of the subject's kernel.
void AddKernelSpace(CLI::App& command, SubjectFlags& subject);

// Adds the arguments of an operator except for its name.
void AddWorkloadArguments(CLI::App& command, WorkloadArguments& arguments);

// Adds the values of the params of a text file.
void AddLets(CLI::App& command, std::vector<std::string>& lets);

// Adds the layout of an operator: "nhwc", in small letters.
void AddLayout(CLI::App& command, std::string& layout);

// Adds the selection of records: by computation, place and time of measuring.
void AddRecordSelection(CLI::App& command, RecordFilterFlags& filter);

// Adds the arguments of a network except for its name and its type.
void AddNetworkArguments(CLI::App& command, NetworkArguments& arguments);

// Adds the order in which a network's kernels take its weights.
void AddLayoutRewrite(CLI::App& command, std::string& layout_rewrite);

// Adds the tolerance of results: relative, absolute; empty: by type.
CLI::Option* AddTolerance(CLI::App& command, std::vector<double>& tolerance);
v1::Tolerance ToleranceOf(const std::vector<double>& tolerance);

// Adds the threads or the GPU that run a compiled network.
void AddExecutor(CLI::App& command, int& threads, int& gpu);

// Sets `value` to the environment variable, if it is set.
void ReadVariable(const char* name, std::string& value);

}  // namespace kiln::client
