#include "client/compile/compile_network.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/thread_pool.h"
#include "client/compile/archive_records.h"
#include "client/compile/assembly.h"
#include "client/compile/network_target.h"
#include "device/calibration.h"
#include "graph/prepare.h"
#include "graph/text.h"
#include "search/choice/context.h"
#include "search/choice/heuristic_choice.h"
#include "search/space/task.h"

namespace kiln::client {
namespace {

using graph::Graph;
using graph::kAbsent;
using graph::NetworkTask;
using graph::PreparedNetwork;
using graph::PrepareNetwork;
using graph::ValueId;

// ---- which convolutions are done by Winograd's method ---------------------------------------

// Another algorithm has to be faster by more than the noise of readings.
constexpr double kReadingNoise = 1.03;

// Costs of kernels by the name of their result, from the records; none: not known.
using CostsByName = std::map<std::string, std::optional<double>>;

// Returns the predicted cost of a kernel without a record, whose schedule is chosen without
// measuring.
std::optional<double> PredictedOf(const search::Task& task, uint64_t seed) {
  const auto chosen = search::ChooseHeuristic(task, device::CalibrationOf(task.device).row, seed);
  return chosen.ok() && chosen->predicted_s > 0 ? std::optional(chosen->predicted_s) : std::nullopt;
}

// `or_predicted`: a kernel without a record gets its predicted cost.
StatusOr<CostsByName> CostsOf(const PreparedNetwork& prepared, const ProgramOptions& options,
                              bool or_predicted, Archive& archive) {
  CostsByName costs;
  ArchiveRecords records(archive);
  search::HistoryBest context(records, {});
  const target::HardwareParams hardware = target::DefaultHardware(options.target, AvailableCpus());
  for (const NetworkTask& task : prepared.kernels.tasks) {
    const search::Task asked(task.dag, options.target, hardware, task.workload_key);
    KILN_ASSIGN_OR_RETURN(const search::ScheduledDag best, search::FasterOf(asked, context));
    std::optional<double> cost_s;
    if (!best.schedule.record.empty()) {
      cost_s = best.schedule.cost_s;
    } else if (or_predicted) {
      cost_s = PredictedOf(asked, options.seed);
    }
    for (int kernel : task.kernels) costs[prepared.MadeBy(kernel)] = cost_s;
  }
  return costs;
}

// Returns the options that leave convolutions direct.
graph::PrepareOptions PreparationOf(const CompileOptions& options) {
  return {.passes = PassOptionsFor(options.programs.target),
          .pack_constants = options.pack_constants};
}

// Returns the results of convolutions whose Winograd kernels are known to be faster than the direct
// kernel: by its record, or by its predicted cost if it has no record.
StatusOr<std::set<std::string, std::less<>>> FasterByWinograd(const Graph& network,
                                                              const CompileOptions& options,
                                                              Archive& archive) {
  graph::PrepareOptions preparation = PreparationOf(options);
  KILN_ASSIGN_OR_RETURN(const PreparedNetwork direct, PrepareNetwork(network, preparation));
  preparation.passes.winograd = graph::WinogradRule::kFast;
  KILN_ASSIGN_OR_RETURN(const PreparedNetwork winograd, PrepareNetwork(network, preparation));
  KILN_ASSIGN_OR_RETURN(const CostsByName winograd_s,
                        CostsOf(winograd, options.programs, /*or_predicted=*/false, archive));
  const bool any_known =
      std::ranges::any_of(winograd_s, [](const auto& cost) { return cost.second.has_value(); });
  if (!any_known) return std::set<std::string, std::less<>>();
  KILN_ASSIGN_OR_RETURN(CostsByName direct_s,
                        CostsOf(direct, options.programs, /*or_predicted=*/true, archive));
  std::set<std::string, std::less<>> faster;
  for (const graph::KernelGroup& group : winograd.kernels.groups) {
    const graph::Node& anchor = winograd.graph.node(group.anchor);
    if (anchor.op->name != "winograd_conv") continue;
    const std::string& made = winograd.graph.value(group.outputs[0]).name;
    const std::optional<double> cost = winograd_s.at(made), other = direct_s[made];
    if (cost && (!other || kReadingNoise * *cost < *other))
      faster.insert(winograd.graph.value(anchor.outputs[0]).name);
  }
  return faster;
}

StatusOr<PreparedNetwork> ChooseVariants(const Graph& network, const CompileOptions& options,
                                         Archive* archive) {
  graph::PrepareOptions preparation = PreparationOf(options);
  graph::PassOptions& passes = preparation.passes;
  if (options.variants == Variants::kWinograd) passes.winograd = graph::WinogradRule::kTvm;
  if (options.variants == Variants::kAll && archive != nullptr) {
    passes.winograd = graph::WinogradRule::kFast;
    KILN_ASSIGN_OR_RETURN(passes.winograd_only, FasterByWinograd(network, options, *archive));
  }
  return PrepareNetwork(network, preparation);
}

// ---- the network ----------------------------------------------------------------------------

// Lays out one network: its values become places, its groups of nodes kernels.
class Layout {
 public:
  // `given` is the network before its passes. Its outputs have the names that the user knows.
  Layout(const Graph& given, const PreparedNetwork& prepared,
         const std::vector<TaskProgram>& programs, const runtime::NetworkTarget& target)
      : given_(given),
        prepared_(prepared),
        graph_(prepared.graph),
        programs_(programs),
        assembly_(target),
        place_of_(graph_.values().size()) {}

  StatusOr<CompiledNetwork> Make() {
    for (ValueId id : graph_.inputs())
      PlaceOf(id) = assembly_.AddInput(value(id).name, value(id).type);
    const std::vector<int> task_of = TasksOfGroups();
    for (size_t g = 0; g < task_of.size(); ++g) {
      task_of[g] < 0 ? AddView(prepared_.kernels.groups[g]) : AddKernel(g, task_of[g]);
    }
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId id = graph_.outputs()[i];
      assembly_.AddOutput(given_.value(given_.outputs()[i]).name, value(id).type, ReadPlace(id));
    }
    return assembly_.Finish(graph::PrintGraph(graph_));
  }

 private:
  Assembly::Place& PlaceOf(ValueId id) { return place_of_[static_cast<size_t>(id)]; }
  const graph::Value& value(ValueId id) const { return graph_.value(id); }

  // Returns the task of each group; -1 for a view.
  std::vector<int> TasksOfGroups() const {
    std::vector<int> task_of(prepared_.kernels.groups.size(), -1);
    for (size_t t = 0; t < prepared_.kernels.tasks.size(); ++t) {
      for (int kernel : prepared_.kernels.tasks[t].kernels)
        task_of[static_cast<size_t>(kernel)] = static_cast<int>(t);
    }
    return task_of;
  }

  // Returns the place of a value that is read: an input, a constant or the result of an earlier
  // kernel.
  Assembly::Place ReadPlace(ValueId id) {
    if (!PlaceOf(id).exists()) {
      KILN_CHECK(value(id).constant != nullptr, "{} is read before it is made", value(id).name);
      PlaceOf(id) = assembly_.AddConstant(value(id).name, value(id).constant);
    }
    return PlaceOf(id);
  }

  // Adds a chain of reshapes as views.
  void AddView(const graph::KernelGroup& group) {
    for (int n : group.nodes) {
      const graph::Node& node = graph_.node(n);
      const ValueId made = node.outputs[0];
      PlaceOf(made) = assembly_.AddView(ReadPlace(node.inputs[0]), value(made).type.bytes());
    }
  }

  void AddKernel(size_t group, int task) {
    const graph::NodeDag& dag = *prepared_.kernels.dags[group];
    std::vector<Assembly::Place> inputs, outputs;
    for (ValueId id : dag.inputs) inputs.push_back(ReadPlace(id));
    for (ValueId id : dag.outputs) {
      if (id != kAbsent)
        PlaceOf(id) = assembly_.AddMade(value(id).type.bytes(), graph_.is_output(id));
      outputs.push_back(id == kAbsent ? Assembly::Place() : PlaceOf(id));
    }
    assembly_.AddKernel(value(prepared_.kernels.groups[group].outputs[0]).name,
                        prepared_.kernels.tasks[static_cast<size_t>(task)],
                        programs_[static_cast<size_t>(task)], inputs, outputs);
  }

  const Graph& given_;
  const PreparedNetwork& prepared_;
  const Graph& graph_;
  const std::vector<TaskProgram>& programs_;
  Assembly assembly_;
  // Places by value.
  std::vector<Assembly::Place> place_of_;
};

}  // namespace

StatusOr<CompiledNetwork> CompileNetwork(const Graph& network, const CompileOptions& options,
                                         Archive* archive) {
  KILN_ASSIGN_OR_RETURN(const PreparedNetwork prepared, ChooseVariants(network, options, archive));
  KILN_ASSIGN_OR_RETURN(const std::vector<TaskProgram> programs,
                        CompileTasks(prepared.kernels.tasks, options.programs, archive));
  KILN_ASSIGN_OR_RETURN(
      const runtime::NetworkTarget target,
      NetworkTargetOf(options.programs.target,
                      options.device.empty() ? DeviceOf(programs) : options.device));
  return Layout(network, prepared, programs, target).Make();
}

}  // namespace kiln::client
