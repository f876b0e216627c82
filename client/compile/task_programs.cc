#include "client/compile/task_programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "base/text/counted.h"
#include "base/thread_pool.h"
#include "client/compile/archive_records.h"
#include "client/compile/kernel_program.h"
#include "compiler/dag/workload_id.h"
#include "device/calibration.h"
#include "search/choice/context.h"
#include "search/choice/heuristic_choice.h"
#include "search/space/task.h"

namespace kiln::client {
namespace {

using graph::NetworkTask;
using search::ChoiceSource;
using search::ScheduledDag;

// All threads choose schedules; one thread at a time compiles CPU code.
class TaskCompiler {
 public:
  // `hardware` describes the device for kernels without a record.
  TaskCompiler(const ProgramOptions& options, const target::HardwareParams& hardware)
      : options_(options), hardware_(hardware) {}

  StatusOr<TaskProgram> Compile(const NetworkTask& task, ScheduledDag chosen);

 private:
  StatusOr<codegen::Compiled> CompileSteps(const dag::DagPtr& dag, const std::string& steps,
                                           const target::HardwareParams& hardware) {
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    if (!options_.target.is_gpu()) lock.lock();
    return CompileKernel(dag, steps, options_.target, hardware);
  }

  const ProgramOptions& options_;
  const target::HardwareParams hardware_;
  std::mutex mutex_;
};

StatusOr<TaskProgram> TaskCompiler::Compile(const NetworkTask& task, ScheduledDag chosen) {
  TaskProgram made{.dag = std::move(chosen.dag),
                   .compiled = {},
                   .choice = std::move(chosen.schedule),
                   .remark = {}};
  if (!made.choice.steps.empty()) {
    // A record of another device says nothing of this device's hardware.
    const bool is_own = made.choice.source == ChoiceSource::kRecord;
    StatusOr<codegen::Compiled> compiled =
        CompileSteps(made.dag, made.choice.steps, is_own ? made.choice.hardware : hardware_);
    if (compiled.ok()) {
      made.compiled = *std::move(compiled);
      return made;
    }
    const bool is_set = made.choice.source == ChoiceSource::kSet;
    const std::string what = !made.choice.record.empty() ? "record " + made.choice.record
                             : is_set                    ? "the schedule that is set"
                                                         : "the schedule chosen without measuring";
    made.remark = fmt::format("{} can't be compiled here: {}", what, Message(compiled.status()));
  }
  const search::Task untuned(task.dag, options_.target, hardware_, task.workload_key);
  made.dag = task.dag;
  made.choice = {};
  KILN_ASSIGN_OR_RETURN(
      search::HeuristicChoice unmeasured,
      search::ChooseHeuristic(untuned, device::CalibrationOf(untuned.device).row, options_.seed));
  made.choice.source = ChoiceSource::kSample;
  made.choice.steps = std::move(unmeasured.steps);
  KILN_ASSIGN_OR_RETURN(made.compiled, CompileSteps(made.dag, made.choice.steps, hardware_));
  return made;
}

// Returns the hardware for which kernels without a record are made. On a GPU it is the minimum of
// the target, even if there are records, so that a record of one kernel changes no other kernel. On
// a CPU it is that of the device that measured one of the records, which need not be this one, for
// its cores.
target::HardwareParams HardwareOf(const std::vector<ScheduledDag>& chosen,
                                  const target::Target& target) {
  for (const auto& [dag, choice] : chosen) {
    if (choice.source == ChoiceSource::kRecord && !target.is_gpu())
      return target::FillHardware(target, choice.hardware);
  }
  return target::DefaultHardware(target, AvailableCpus());
}

// Asks another context once for each computation, because several tasks may be one computation with
// unpacked inputs. All tasks have one target.
class AskedOnce final : public search::Context {
 public:
  // `asked` outlives this object.
  explicit AskedOnce(search::Context& asked) : asked_(asked) {}

 protected:
  StatusOr<search::Choice> Find(const search::Task& task) override {
    const std::string id = dag::WorkloadId(*task.dag);
    if (const auto found = choices_.find(id); found != choices_.end()) return found->second;
    KILN_ASSIGN_OR_RETURN(search::Choice choice, asked_.Query(task));
    return choices_.emplace(id, std::move(choice)).first->second;
  }

 private:
  search::Context& asked_;
  std::map<std::string, search::Choice> choices_;
};

}  // namespace

StatusOr<std::vector<ScheduledDag>> ChooseRecords(std::span<const NetworkTask> tasks,
                                                  const ProgramOptions& options, Archive& archive) {
  std::vector<ScheduledDag> chosen;
  ArchiveRecords records(archive);
  search::HistoryBest history(records,
                              {.include_compatible = true, .heuristic_seed = options.seed});
  AskedOnce context(history);
  const target::HardwareParams hardware = target::DefaultHardware(options.target, AvailableCpus());
  for (const NetworkTask& task : tasks) {
    const search::Task asked(task.dag, options.target, hardware, task.workload_key);
    KILN_ASSIGN_OR_RETURN(chosen.emplace_back(), search::FasterOf(asked, context));
  }
  return chosen;
}

std::string DeviceOf(std::span<const TaskProgram> programs) {
  for (const TaskProgram& program : programs) {
    if (program.choice.source == ChoiceSource::kRecord && !program.choice.device.empty())
      return program.choice.device;
  }
  return "";
}

StatusOr<std::vector<TaskProgram>> CompileTasks(std::span<const NetworkTask> tasks,
                                                const ProgramOptions& options, Archive* archive) {
  std::vector<ScheduledDag> chosen;
  for (const NetworkTask& task : tasks) chosen.push_back({.dag = task.dag, .schedule = {}});
  if (archive != nullptr) {
    KILN_ASSIGN_OR_RETURN(chosen, ChooseRecords(tasks, options, *archive));
  }
  return CompileChosen(tasks, std::move(chosen), options);
}

StatusOr<std::vector<TaskProgram>> CompileChosen(std::span<const NetworkTask> tasks,
                                                 std::vector<ScheduledDag> chosen,
                                                 const ProgramOptions& options) {
  std::vector<std::string> untuned;
  for (size_t i = 0; i < tasks.size(); ++i) {
    const ChoiceSource source = chosen[i].schedule.source;
    const bool is_tuned = source == ChoiceSource::kRecord || source == ChoiceSource::kSet;
    if (!is_tuned && !tasks[i].is_simple) untuned.push_back(tasks[i].description);
  }
  if (options.strict && !untuned.empty()) {
    return FailedPrecondition("{} of {} never tuned for {}: {}", untuned.size(),
                              Counted(std::ssize(tasks), "task"),
                              target::PrintTarget(options.target), fmt::join(untuned, "; "));
  }
  std::vector<StatusOr<TaskProgram>> made(tasks.size(), Internal("not compiled"));
  ThreadPool pool(options.threads);
  TaskCompiler compiler(options, HardwareOf(chosen, options.target));
  pool.ParallelFor(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    made[at] = compiler.Compile(tasks[at], std::move(chosen[at]));
  });
  std::vector<TaskProgram> programs;
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i].ok()) return Annotate(made[i].status(), tasks[i].description);
    programs.push_back(*std::move(made[i]));
  }
  return programs;
}

}  // namespace kiln::client
