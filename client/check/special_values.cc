#include "client/check/special_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "client/check/samples.h"
#include "client/compile/assembly.h"
#include "client/compile/compiled_network.h"
#include "client/compile/kernel_program.h"
#include "client/compile/network_arrays.h"
#include "client/compile/network_target.h"
#include "client/this_machine.h"
#include "client/view/json.h"
#include "compiler/dag/special_inputs.h"
#include "compiler/schedule/state.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "runtime/executor.h"

namespace kiln::client {
namespace {

constexpr dag::KnownWorkload kWorkloads[] = {
    {"matmul", "33,47,65"},
    {"matmul", "64,64,64", "bias,relu", "float16"},
    {"dense", "17,33,64", "bias"},
    {"batch_matmul", "2,17,33,16"},
    {"attention", "2,40,16"},
    {"attention", "2,72,16,causal=1"},
    {"attention", "2,100,32,causal=1", "", "float16"},
    {"attention", "2,64,64", "", "float16"},
    {"conv2d_nchw", "1,11,13,5,7,3,3,1,1", "bias,relu"},
    {"conv2d_nhwc", "1,9,11,16,17,3,3,1,1", "bias,relu"},
    {"conv1d_ncw", "2,33,4,5,3,2,1"},
    {"conv1d_nwc", "1,37,5,8,5,1,2", "relu"},
    {"conv3d_ncdhw", "1,4,5,6,2,3,3,2,3,2,1"},
    {"conv3d_ndhwc", "1,3,5,6,4,3,3,3,3,1,1", "bias"},
    {"depthwise_conv2d_nchw", "1,13,13,5,3,3,1,1", "bias"},
    {"depthwise_conv2d_nhwc", "1,11,9,8,3,3,2,1", "relu"},
    {"conv2d_transpose_nchw", "1,5,7,4,3,4,4,2,1", "bias"},
    {"conv2d_transpose_nhwc", "1,5,4,5,4,3,3,2,1,output_pad=1", "relu"},
    {"conv2d_winograd_nhwc", "1,9,7,4,5"},
    {"conv2d_winograd_weights", "5,7,2"},
    {"max_pool2d_nchw", "1,15,15,5,3,3,2,1"},
    {"max_pool2d_nhwc", "1,11,9,16,3,3,2,1"},
    {"avg_pool2d_nchw", "1,13,12,5,3,3,2,1"},
    {"avg_pool2d_nhwc", "1,9,9,16,2,2,2,0"},
    {"global_max_pool2d_nchw", "2,9,7,6"},
    {"global_max_pool2d_nhwc", "1,8,9,17"},
    {"global_avg_pool2d_nchw", "1,9,7,7"},
    {"global_avg_pool2d_nhwc", "2,7,7,5"},
    {"adaptive_max_pool2d_nchw", "1,11,9,5,3,4"},
    {"adaptive_max_pool2d_nhwc", "1,10,8,5,3,2"},
    {"adaptive_avg_pool2d_nchw", "1,9,11,5,3,3"},
    {"adaptive_avg_pool2d_nhwc", "1,8,9,6,2,3"},
    {"adaptive_max_pool1d_ncw", "2,33,5,4"},
    {"adaptive_max_pool1d_nwc", "1,31,7,3"},
    {"adaptive_avg_pool1d_ncw", "1,33,5,5"},
    {"adaptive_avg_pool1d_nwc", "2,30,5,4"},
    {"softmax", "19,128"},
    {"softmax", "3,7,99"},
    {"layer_norm", "13,64"},
    {"rms_norm", "9,96"},
    {"batch_norm", "3,8,5,9", "relu"},
    {"sum", "37,60,axis=1"},
    {"mean", "96,51,axis=0"},
    {"max", "37,60,axis=1"},
    {"max", "96,51,axis=0", "", "float16"},
    {"max", "4099"},
    {"min", "3,64,40,axis=0,axis=1"},
    {"prod", "5,33,axis=1"},
    {"argmax", "21,100,axis=1"},
    {"argmin", "7,64,axis=0"},
    {"relu", "61,33"},
    {"relu", "64,96", "", "float16"},
    {"relu6", "61,33"},
    {"leaky_relu", "61,33"},
    {"elu", "31,33"},
    {"sigmoid", "31,33"},
    {"tanh", "31,33"},
    {"gelu", "31,33"},
    {"gelu_tanh", "31,33"},
    {"silu", "31,33"},
    {"swish", "1023"},
    {"hard_sigmoid", "31,33"},
    {"hard_swish", "31,33"},
    {"softplus", "31,33"},
    {"mish", "31,33"},
    {"selu", "31,33"},
    {"softsign", "31,33"},
    {"log_sigmoid", "31,33"},
    {"exp", "31,33"},
    {"log", "31,33"},
    {"sqrt", "31,33"},
    {"rsqrt", "31,33"},
    {"erf", "31,33"},
    {"sin", "31,33"},
    {"cos", "31,33"},
    {"floor", "31,33"},
    {"ceil", "31,33"},
    {"round", "31,33"},
    {"sign", "31,33"},
    {"abs", "31,33"},
    {"square", "31,33"},
    {"negative", "31,33"},
    {"reciprocal", "31,33"},
    {"add", "3,25,27", "sigmoid"},
    {"sub", "31,33,broadcast=0"},
    {"mul", "31,33"},
    {"div", "31,33,broadcast=1"},
    {"maximum", "31,33"},
    {"minimum", "31,33"},
    {"power", "31,33"},
    {"bias_add", "2,13,35,axis=1"},
    {"prelu", "2,13,35,axis=1"},
    {"reshape", "3,14,25,to=6,to=-1"},
    {"transpose", "37,65"},
    {"concat", "3,32,with=5,with=1"},
    {"slice", "27,39,begin=1,begin=2,end=-1,stride=2,stride=3"},
    {"gather", "11,33,indices=15"},
    {"pad", "3,21,20"},
    {"resize_nearest_nchw", "1,5,7,3,11,15"},
    {"resize_nearest_nhwc", "1,7,5,6,3,9,coordinates=2"},
    {"resize_bilinear_nchw", "1,5,7,3,11,15"},
    {"resize_bilinear_nhwc", "1,7,5,6,9,3,coordinates=1"},
};

struct Tally {
  int candidates = 0, runs = 0;
  // Runs whose outputs are correct only for an online softmax.
  int online = 0;
  int different = 0;
  std::vector<std::string> problems;

  int equal() const { return std::max(0, runs - online - different); }
};

StatusOr<bool> IsOnline(const dag::DagPtr& dag, const std::string& steps) {
  KILN_ASSIGN_OR_RETURN(const auto parsed, schedule::ParseSteps(steps));
  KILN_ASSIGN_OR_RETURN(const schedule::State state, schedule::Replay(dag, parsed));
  return state.online() != nullptr;
}

class Checker {
 public:
  static StatusOr<Checker> Make(const SpecialValueFlags& flags) {
    KILN_ASSIGN_OR_RETURN(const target::Target open, target::ParseTarget(flags.target));
    KILN_ASSIGN_OR_RETURN(target::Target target, NameThisDevice(open));
    KILN_ASSIGN_OR_RETURN(runtime::NetworkTarget made_for, NetworkTargetOf(target, ""));
    KILN_ASSIGN_OR_RETURN(TempDir folder, TempDir::Make("kiln-special-values"));
    return Checker(flags, std::move(target), std::move(made_for), std::move(folder));
  }

  StatusOr<Tally> Check(const dag::KnownWorkload& workload) {
    KILN_ASSIGN_OR_RETURN(const dag::DagPtr dag, workload.Build());
    KILN_ASSIGN_OR_RETURN(const std::vector<std::string> steps,
                          SampleSteps(dag, target_, flags_.seed, flags_.candidates));
    KILN_ASSIGN_OR_RETURN(const auto cases, dag::SpecialCases(*dag, flags_.seed));
    Tally tally;
    for (const std::string& candidate : steps) {
      ++tally.candidates;
      const Status status = CheckCandidate(dag, candidate, cases, tally);
      if (status.ok()) continue;
      ++tally.different;
      tally.problems.push_back(fmt::format("{}; steps {}", Message(status), candidate));
    }
    if (steps.empty()) tally.problems.push_back("no candidate was found");
    return tally;
  }

 private:
  Checker(const SpecialValueFlags& flags, target::Target target, runtime::NetworkTarget made_for,
          TempDir folder)
      : flags_(flags),
        target_(std::move(target)),
        made_for_(std::move(made_for)),
        folder_(std::move(folder)) {}

  StatusOr<std::unique_ptr<runtime::Executor>> Load(const dag::DagPtr& dag,
                                                    const std::string& steps) {
    TaskProgram program{.dag = dag, .compiled = {}, .choice = {}, .remark = {}};
    const target::HardwareParams hardware = target::DefaultHardware(target_, /*host_cores=*/2);
    KILN_ASSIGN_OR_RETURN(program.compiled, CompileKernel(dag, steps, target_, hardware));
    KILN_ASSIGN_OR_RETURN(
        const CompiledNetwork network,
        AssembleOne("candidate", graph::MakeTask(dag, "candidate"), program, made_for_));
    const std::string path = folder_.Join("candidate.kiln");
    KILN_RETURN_IF_ERROR(WriteCompiled(path, network).status());
    return runtime::Executor::Load(path, {.threads = 1, .pin = false});
  }

  // Returns an error if the candidate does not run. The tally keeps the first output that differs.
  Status CheckCandidate(const dag::DagPtr& dag, const std::string& steps,
                        const std::vector<dag::SpecialCase>& cases, Tally& tally) {
    KILN_ASSIGN_OR_RETURN(const auto executor, Load(dag, steps));
    KILN_ASSIGN_OR_RETURN(const bool is_online, IsOnline(dag, steps));
    const dag::SpecialJudge judge(*dag);
    bool is_first = true;
    for (const dag::SpecialCase& one : cases) {
      KILN_ASSIGN_OR_RETURN(const std::vector<ir::NDArray> outputs,
                            RunArrays(*executor, one.inputs));
      ++tally.runs;
      const auto by_variant = judge.Judge(outputs, one, is_online);
      if (by_variant.ok()) {
        tally.online += *by_variant > 0 ? 1 : 0;
        continue;
      }
      ++tally.different;
      if (is_first) {
        tally.problems.push_back(
            fmt::format("{}: {}; steps {}", one.name, Message(by_variant.status()), steps));
      }
      is_first = false;
    }
    return OkStatus();
  }

  const SpecialValueFlags& flags_;
  target::Target target_;
  runtime::NetworkTarget made_for_;
  TempDir folder_;
};

std::string OnlineText(const Tally& tally) {
  if (tally.online == 0) return "";
  return fmt::format(", {} as an online softmax may", tally.online);
}

void Print(const std::string& name, const Tally& tally, bool json) {
  if (json) {
    fmt::print("{{\"workload\":{},\"candidates\":{},\"runs\":{},\"online\":{},\"different\":{}}}\n",
               JsonString(name), tally.candidates, tally.runs, tally.online, tally.different);
  } else {
    fmt::print("{}: {} of {} runs as the oracle{}, {} candidates\n", name, tally.equal(),
               tally.runs, OnlineText(tally), tally.candidates);
    for (const std::string& problem : tally.problems) fmt::print("  {}\n", problem);
  }
  std::fflush(stdout);
}

}  // namespace

std::span<const dag::KnownWorkload> SpecialValueWorkloads() { return kWorkloads; }

StatusOr<int> CheckSpecialValues(const SpecialValueFlags& flags, bool json) {
  KILN_ASSIGN_OR_RETURN(Checker checker, Checker::Make(flags));
  Tally all;
  int workloads = 0;
  for (const dag::KnownWorkload& workload : SpecialValueWorkloads()) {
    const std::string name = workload.Description();
    if (name.find(flags.only) == std::string::npos) continue;
    ++workloads;
    Tally tally;
    const auto checked = checker.Check(workload);
    if (checked.ok()) {
      tally = *checked;
    } else {
      tally.different = 1;
      tally.problems.emplace_back(Message(checked.status()));
    }
    Print(name, tally, json);
    all.candidates += tally.candidates;
    all.runs += tally.runs;
    all.online += tally.online;
    all.different += tally.different;
    all.problems.insert(all.problems.end(), tally.problems.begin(), tally.problems.end());
  }
  if (workloads == 0) return NotFound("no workload of the special values has '{}'", flags.only);
  const bool good = all.problems.empty();
  if (!json) {
    fmt::print("{} workloads, {} candidates, {} runs: {} as the oracle{}, {} different\n",
               workloads, all.candidates, all.runs, all.equal(), OnlineText(all), all.different);
    if (all.online > 0)
      fmt::print("  an infinite value whose weight is 0 need not make its row NaN there: {}\n",
                 "docs/text-form.md");
  }
  return good ? 0 : 1;
}

}  // namespace kiln::client
