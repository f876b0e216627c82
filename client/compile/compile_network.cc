#include "client/compile/compile_network.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/thread_pool.h"
#include "client/compile/kernel_program.h"
#include "client/compile/schedule_choice.h"
#include "compiler/codegen/backends/backends.h"
#include "compiler/dag/workload_key.h"
#include "graph/passes/passes.h"
#include "graph/tasks.h"
#include "graph/text.h"
#include "runtime/cpu_features.h"
#include "runtime/network_file.h"

namespace kiln::client {
namespace {

using graph::ConstantPtr;
using graph::Graph;
using graph::kAbsent;
using graph::NetworkKernels;
using graph::NetworkTask;
using graph::ValueId;

struct Prepared {
  Graph graph;
  NetworkKernels kernels;
};

StatusOr<Prepared> Prepare(const Graph& network, const graph::PassOptions& options) {
  Prepared prepared;
  KILN_ASSIGN_OR_RETURN(prepared.graph, graph::RunPasses(network, options));
  KILN_ASSIGN_OR_RETURN(
      prepared.kernels,
      graph::ExtractTasks(prepared.graph,
                          {.prologues = options.winograd != graph::WinogradRule::kTvm}));
  return prepared;
}

const graph::KernelGroup& GroupOf(const Prepared& prepared, int kernel) {
  return prepared.kernels.groups[static_cast<size_t>(kernel)];
}

// ---- which convolutions are done by Winograd's method ---------------------------------------

// What a kernel makes, and what it costs by the records; none: not known.
using CostsByName = std::map<std::string, std::optional<double>>;

StatusOr<CostsByName> CostsOf(const Prepared& prepared, const target::Target& target,
                              Archive& archive) {
  CostsByName costs;
  for (const NetworkTask& task : prepared.kernels.tasks) {
    KILN_ASSIGN_OR_RETURN(const ScheduleChoice best, BestRecordOf(*task.dag, target, archive));
    for (int kernel : task.kernels) {
      const ValueId made = GroupOf(prepared, kernel).outputs[0];
      costs[prepared.graph.value(made).name] =
          best.record.empty() ? std::nullopt : std::optional(best.cost_s);
    }
  }
  return costs;
}

// The values that convolutions by Winograd's method make in kernels that are faster so, or that are
// known to be fast at all.
StatusOr<std::set<std::string, std::less<>>> FasterByWinograd(const Graph& network,
                                                              const CompileOptions& options,
                                                              Archive& archive) {
  graph::PassOptions passes{.is_gpu = options.target.is_gpu()};
  KILN_ASSIGN_OR_RETURN(const Prepared direct, Prepare(network, passes));
  passes.winograd = graph::WinogradRule::kFast;
  KILN_ASSIGN_OR_RETURN(const Prepared winograd, Prepare(network, passes));
  KILN_ASSIGN_OR_RETURN(CostsByName direct_s, CostsOf(direct, options.target, archive));
  KILN_ASSIGN_OR_RETURN(const CostsByName winograd_s, CostsOf(winograd, options.target, archive));
  std::set<std::string, std::less<>> faster;
  for (const graph::KernelGroup& group : winograd.kernels.groups) {
    const graph::Node& anchor = winograd.graph.node(group.anchor);
    if (anchor.op->name != "winograd_conv") continue;
    const std::string& made = winograd.graph.value(group.outputs[0]).name;
    const std::optional<double> cost = winograd_s.at(made), other = direct_s[made];
    if (cost && (!other || *cost < *other))
      faster.insert(winograd.graph.value(anchor.outputs[0]).name);
  }
  return faster;
}

StatusOr<Prepared> ChooseVariants(const Graph& network, const CompileOptions& options,
                                  Archive* archive) {
  graph::PassOptions passes{.is_gpu = options.target.is_gpu()};
  if (options.variants == Variants::kWinograd) passes.winograd = graph::WinogradRule::kTvm;
  if (options.variants == Variants::kAll && archive != nullptr) {
    passes.winograd = graph::WinogradRule::kFast;
    KILN_ASSIGN_OR_RETURN(passes.winograd_only, FasterByWinograd(network, options, *archive));
  }
  return Prepare(network, passes);
}

// ---- schedules and programs -----------------------------------------------------------------

// Of one task.
struct TaskProgram {
  codegen::Compiled compiled;
  ScheduleChoice choice;
  std::string remark;
};

// Schedules are chosen on all threads; CPU code is compiled by one at a time.
class TaskCompiler {
 public:
  // `hardware`: what kernels without a record are made for.
  TaskCompiler(const CompileOptions& options, const target::HardwareParams& hardware)
      : options_(options), hardware_(hardware) {}

  StatusOr<TaskProgram> Compile(const NetworkTask& task, ScheduleChoice choice);

 private:
  StatusOr<codegen::Compiled> CompileSteps(const NetworkTask& task, const std::string& steps,
                                           const target::HardwareParams& hardware) {
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    if (!options_.target.is_gpu()) lock.lock();
    return CompileKernel(task.dag, steps, options_.target, hardware);
  }

  const CompileOptions& options_;
  const target::HardwareParams hardware_;
  std::mutex mutex_;
};

StatusOr<TaskProgram> TaskCompiler::Compile(const NetworkTask& task, ScheduleChoice choice) {
  TaskProgram made{.compiled = {}, .choice = std::move(choice), .remark = {}};
  if (!made.choice.steps.empty()) {
    StatusOr<codegen::Compiled> compiled =
        CompileSteps(task, made.choice.steps, made.choice.hardware);
    if (compiled.ok()) {
      made.compiled = *std::move(compiled);
      return made;
    }
    made.remark = fmt::format("record {} can't be compiled here: {}", made.choice.record,
                              std::string(compiled.status().message()));
  }
  const search::Task untuned(task.dag, options_.target, hardware_, task.workload_key);
  made.choice = {};
  KILN_ASSIGN_OR_RETURN(made.choice.steps, StepsWithoutMeasuring(untuned, options_.seed));
  KILN_ASSIGN_OR_RETURN(made.compiled, CompileSteps(task, made.choice.steps, hardware_));
  return made;
}

// Of the device that measured one of the records; else what the target has at least.
target::HardwareParams HardwareOf(const std::vector<ScheduleChoice>& choices,
                                  const target::Target& target) {
  for (const ScheduleChoice& choice : choices) {
    if (!choice.record.empty()) return target::FillHardware(target, choice.hardware);
  }
  return target::DefaultHardware(target, AvailableCpus());
}

StatusOr<std::vector<TaskProgram>> CompileTasks(const Prepared& prepared,
                                                const CompileOptions& options, Archive* archive) {
  const std::vector<NetworkTask>& tasks = prepared.kernels.tasks;
  std::vector<ScheduleChoice> choices(tasks.size());
  std::vector<std::string> untuned;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (archive != nullptr) {
      KILN_ASSIGN_OR_RETURN(choices[i], BestRecordOf(*tasks[i].dag, options.target, *archive));
    }
    if (choices[i].record.empty() && !tasks[i].is_simple) untuned.push_back(tasks[i].description);
  }
  if (options.strict && !untuned.empty()) {
    return FailedPrecondition("{} of {} tasks were never tuned for {}: {}", untuned.size(),
                              tasks.size(), target::PrintTarget(options.target),
                              fmt::join(untuned, "; "));
  }
  std::vector<StatusOr<TaskProgram>> made(tasks.size(), Internal("not compiled"));
  ThreadPool pool(options.threads);
  TaskCompiler compiler(options, HardwareOf(choices, options.target));
  pool.ParallelFor(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    made[at] = compiler.Compile(tasks[at], std::move(choices[at]));
  });
  std::vector<TaskProgram> programs;
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i].ok()) return Annotate(made[i].status(), tasks[i].description);
    programs.push_back(*std::move(made[i]));
  }
  return programs;
}

// ---- the network ----------------------------------------------------------------------------

// Lays out one network: buffers for values, kernels over them.
class Assembly {
 public:
  Assembly(const Prepared& prepared, std::vector<TaskProgram> programs,
           const CompileOptions& options)
      : prepared_(prepared),
        graph_(prepared.graph),
        programs_(std::move(programs)),
        options_(options),
        buffer_of_(graph_.values().size(), -1) {}

  StatusOr<CompiledNetwork> Make() {
    KILN_RETURN_IF_ERROR(SetTarget());
    for (ValueId id : graph_.inputs()) AddInput(id);
    task_of_.assign(prepared_.kernels.groups.size(), -1);
    for (size_t t = 0; t < prepared_.kernels.tasks.size(); ++t) {
      for (int kernel : prepared_.kernels.tasks[t].kernels)
        task_of_[static_cast<size_t>(kernel)] = static_cast<int>(t);
    }
    for (size_t g = 0; g < task_of_.size(); ++g) {
      task_of_[g] < 0 ? AddView(prepared_.kernels.groups[g]) : AddKernel(g);
    }
    for (ValueId id : graph_.outputs()) AddOutput(id);
    network().graph_text = graph::PrintGraph(graph_);
    network().options_text = fmt::format("target {}\n", target::PrintTarget(options_.target));
    for (const std::string& binary : made_.binaries) network().binaries.push_back(binary);
    KILN_ASSIGN_OR_RETURN(made_.memory, runtime::PlaceBuffers(network()));
    return std::move(made_);
  }

 private:
  runtime::Network& network() { return made_.network; }

  Status SetTarget() {
    runtime::NetworkTarget& target = network().target;
    target.kind = std::string(options_.target.kind->device);
    target.arch = options_.target.is_gpu() ? fmt::format("sm_{}", options_.target.GpuArch())
                                           : std::string("x86_64");
    target.device = options_.device;
    target.text = target::PrintTarget(options_.target);
    const codegen::Backend& backend = *codegen::FindBackend(*options_.target.kind);
    KILN_ASSIGN_OR_RETURN(target.features,
                          backend.FeaturesUsed(options_.target, runtime::KnownCpuFeatures()));
    return OkStatus();
  }

  int32_t AddBuffer(runtime::NetworkBuffer buffer) {
    network().buffers.push_back(buffer);
    return static_cast<int32_t>(network().buffers.size()) - 1;
  }
  int32_t& BufferOf(ValueId id) { return buffer_of_[static_cast<size_t>(id)]; }
  const graph::Value& value(ValueId id) const { return graph_.value(id); }

  runtime::NetworkTensor TensorOf(ValueId id) {
    return {.name = value(id).name,
            .dtype = std::string(ir::TypeName(value(id).type.type)),
            .shape = value(id).type.shape,
            .buffer = BufferOf(id)};
  }

  void AddInput(ValueId id) {
    BufferOf(id) = AddBuffer({.place = runtime::Place::kInput, .bytes = value(id).type.bytes()});
    network().inputs.push_back(TensorOf(id));
  }

  // The buffer of what a kernel reads.
  int32_t ReadBuffer(ValueId id) {
    int32_t& buffer = BufferOf(id);
    if (buffer < 0) {
      KILN_CHECK(value(id).constant != nullptr, "{} is read before it is made", value(id).name);
      buffer = AddBuffer({.place = runtime::Place::kConstant, .bytes = value(id).type.bytes()});
      made_.constants[buffer] = value(id).constant;
    }
    return buffer;
  }

  // Of what a kernel makes: what leaves the network is written where it goes.
  int32_t WrittenBuffer(ValueId id) {
    const bool leaves = graph_.is_output(id);
    BufferOf(id) = AddBuffer({.place = leaves ? runtime::Place::kOutput : runtime::Place::kArena,
                              .bytes = value(id).type.bytes()});
    return BufferOf(id);
  }

  // A chain of reshapes.
  void AddView(const graph::KernelGroup& group) {
    for (int n : group.nodes) {
      const graph::Node& node = graph_.node(n);
      const int32_t root = ReadBuffer(node.inputs[0]);
      const runtime::NetworkBuffer& lies_in = network().buffers[static_cast<size_t>(root)];
      BufferOf(node.outputs[0]) =
          AddBuffer({.place = runtime::Place::kView,
                     .bytes = value(node.outputs[0]).type.bytes(),
                     .viewed = lies_in.place == runtime::Place::kView ? lies_in.viewed : root});
    }
  }

  void AddOutput(ValueId id) {
    if (BufferOf(id) < 0) ReadBuffer(id);  // a constant
    network().outputs.push_back(TensorOf(id));
  }

  int32_t BinaryOf(int task) {
    const auto [found, is_new] = binary_of_.emplace(task, -1);
    if (!is_new) return found->second;
    std::string& binary = programs_[static_cast<size_t>(task)].compiled.binary;
    const auto same = std::ranges::find(made_.binaries, binary);
    found->second = static_cast<int32_t>(same - made_.binaries.begin());
    if (same == made_.binaries.end()) made_.binaries.push_back(std::move(binary));
    return found->second;
  }

  void AddKernel(size_t group) {
    const int t = task_of_[group];
    const NetworkTask& task = prepared_.kernels.tasks[static_cast<size_t>(t)];
    const TaskProgram& program = programs_[static_cast<size_t>(t)];
    const graph::NodeDag& dag = *prepared_.kernels.dags[group];
    const graph::KernelGroup& own = prepared_.kernels.groups[group];
    runtime::NetworkKernel kernel{.name = value(own.outputs[0]).name,
                                  .binary = BinaryOf(t),
                                  .args = {},
                                  .launches = {},
                                  .workload_key = task.workload_key,
                                  .record = program.choice.record,
                                  .source = program.choice.record.empty()
                                                ? runtime::KernelSource::kUntuned
                                                : runtime::KernelSource::kTuned,
                                  .expected_s = program.choice.cost_s,
                                  .flops = std::max(0.0, task.dag->flop_count()),
                                  .bytes = BytesOf(*task.dag)};
    AddArguments(program.compiled, dag, kernel);
    for (const codegen::Launch& launch : program.compiled.launches)
      kernel.launches.push_back(LaunchOf(launch));
    made_.coverage.push_back({.name = kernel.name,
                              .description = task.description,
                              .is_simple = task.is_simple,
                              .source = kernel.source,
                              .record = kernel.record,
                              .expected_s = kernel.expected_s,
                              .remark = program.remark});
    network().kernels.push_back(std::move(kernel));
  }

  // Inputs and outputs of the program are the DAG's, in its order; workspaces are its own.
  void AddArguments(const codegen::Compiled& compiled, const graph::NodeDag& dag,
                    runtime::NetworkKernel& kernel) {
    size_t input = 0, output = 0;
    for (const codegen::Argument& argument : compiled.args) {
      const bool written = argument.scope != ir::Scope::kInput;
      int32_t buffer;
      if (argument.scope == ir::Scope::kInput) {
        buffer = ReadBuffer(dag.inputs[input++]);
      } else if (argument.scope == ir::Scope::kOutput && dag.outputs[output] != kAbsent) {
        buffer = WrittenBuffer(dag.outputs[output++]);
      } else {
        output += argument.scope == ir::Scope::kOutput;
        const graph::TensorType type{argument.type, argument.shape};
        buffer = AddBuffer({.place = runtime::Place::kArena, .bytes = type.bytes()});
      }
      int64_t& alignment = AlignmentOf(buffer);
      alignment = std::max<int64_t>(alignment, argument.alignment_bytes);
      kernel.args.push_back({.buffer = buffer, .written = written});
    }
  }

  int64_t& AlignmentOf(int32_t buffer) {
    return network().buffers[static_cast<size_t>(buffer)].alignment_bytes;
  }

  static runtime::NetworkLaunch LaunchOf(const codegen::Launch& from) {
    runtime::NetworkLaunch launch{.symbol = from.symbol,
                                  .dynamic_shared_bytes = from.dynamic_shared_bytes,
                                  .cluster = from.cluster > 1 ? from.cluster : 0,
                                  .args = from.args,
                                  .waits_for_previous = from.waits_for_previous};
    for (size_t d = 0; d < from.grid.size(); ++d) launch.grid[d] = from.grid[d];
    for (size_t d = 0; d < from.block.size(); ++d) launch.block[d] = from.block[d];
    return launch;
  }

  static double BytesOf(const dag::Dag& dag) {
    double bytes = 0;
    for (const dag::Tensor& argument : dag.arguments()) {
      const graph::TensorType type{dag.type(argument), dag.shape(argument)};
      bytes += static_cast<double>(type.bytes());
    }
    return bytes;
  }

  const Prepared& prepared_;
  const Graph& graph_;
  std::vector<TaskProgram> programs_;
  const CompileOptions& options_;
  std::vector<int32_t> buffer_of_;    // by value
  std::vector<int> task_of_;          // by group; -1: a view
  std::map<int, int32_t> binary_of_;  // by task
  CompiledNetwork made_;
};

}  // namespace

StatusOr<CompiledNetwork> CompileNetwork(const Graph& network, const CompileOptions& options,
                                         Archive* archive) {
  KILN_ASSIGN_OR_RETURN(const Prepared prepared, ChooseVariants(network, options, archive));
  KILN_ASSIGN_OR_RETURN(std::vector<TaskProgram> programs,
                        CompileTasks(prepared, options, archive));
  return Assembly(prepared, std::move(programs), options).Make();
}

StatusOr<int64_t> WriteCompiled(const std::string& path, const CompiledNetwork& compiled) {
  return runtime::WriteNetwork(path, compiled.network,
                               [&](int32_t buffer) -> StatusOr<std::span<const std::byte>> {
                                 return compiled.constants.at(buffer)->bytes();
                               });
}

}  // namespace kiln::client
