// What the commands of `kiln` have in common on the command line: how one is added, and the options
// of where the jobs and records are and how to print. Each group of commands (job_flag_table.h,
// record_flag_table.h, model_flag_table.h, tool_flag_table.h) adds itself with this.
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

// What a command does once all of its options are read: the exit status.
using Run = std::function<StatusOr<int>()>;

// A command that gives nothing but a status.
Run Plain(std::function<Status()> run);

// Must outlive the parse and the run: the options are read into it.
class FlagTable {
 public:
  explicit FlagTable(std::string program) { session_.program = std::move(program); }
  FlagTable(const FlagTable&) = delete;
  FlagTable& operator=(const FlagTable&) = delete;

  // `run` is what RunNamed does if this command is named. The parent owns what is returned.
  CLI::App* Add(CLI::App& parent, const std::string& name, const std::string& what, Run run);
  void AddPlace(CLI::App& command);      // --scheduler, --db, --secret-file and --json
  void AddScheduler(CLI::App& command);  // the same without --db: it reads no records
  void AddSecret(CLI::App& command);
  void AddJson(CLI::App& command);

  // As the flags and the environment say; complete once a command runs.
  const Session& session() const { return session_; }

  // After the parse.
  StatusOr<int> RunNamed();

 private:
  void AddSchedulerAddress(CLI::App& command);
  void ReadEnvironment();

  Session session_;
  bool db_given_ = false, scheduler_given_ = false;
  Run run_;
};

// For whole numbers from 0: one with a sign would be read as a huge one.
CLI::Validator NotNegative();

// What a command is about: a record, a job, a workload. `target`: the help of --target.
void AddSubject(CLI::App& command, FlagTable& table, SubjectFlags& subject,
                const std::string& target = "only targets that start so");
// How sums of products of float32 may be computed: an option of the target, which stands before it.
void AddMath(CLI::App& command, std::string& target);
// The file that describes the space of the kernel that it is about.
void AddKernelSpace(CLI::App& command, SubjectFlags& subject);

// How an operator is given, but for its name.
void AddWorkloadArguments(CLI::App& command, WorkloadArguments& arguments);

// The values of the params of a text file.
void AddLets(CLI::App& command, std::vector<std::string>& lets);

// Which of the layouts that there are: "nhwc", in small letters.
void AddLayout(CLI::App& command, std::string& layout);

// Which records are meant: what they are of, where and when they were measured.
void AddRecordSelection(CLI::App& command, RecordFilterFlags& filter);

// How a network is given, but for its name and its type.
void AddNetworkArguments(CLI::App& command, NetworkArguments& arguments);

// How a network's kernels take its weights.
void AddLayoutRewrite(CLI::App& command, std::string& layout_rewrite);

// How far results may be off: relative, absolute; empty: by type.
CLI::Option* AddTolerance(CLI::App& command, std::vector<double>& tolerance);
v1::Tolerance ToleranceOf(const std::vector<double>& tolerance);

// What a compiled network runs on.
void AddExecutor(CLI::App& command, int& threads, int& gpu);

// `value` becomes what the environment says, where it says something.
void ReadVariable(const char* name, std::string& value);

}  // namespace kiln::client
