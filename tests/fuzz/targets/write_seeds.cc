// Writes the corpora that follow from Kiln itself: its operators in text form, schedules of them,
// the programs that these become, lines of logs, models, networks.
//
//   bazel run //tests/fuzz/targets:write_seeds -- $PWD/tests/fuzz/targets/corpus
//
// Inputs that were found or written by hand have other names and stay.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <set>
#include <string>

#include "base/file/file.h"
#include "compiler/dag/ops/op_cases_testing.h"
#include "compiler/dag/workload_key.h"
#include "compiler/ir/program_text.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/source/print.h"
#include "compiler/schedule/step.h"
#include "costmodel/make_cost_model.h"
#include "costmodel/model_file.h"
#include "costmodel/saved_model.h"
#include "costmodel/synthetic_testing.h"
#include "device/calibration.h"
#include "device/device_model.h"
#include "runtime/network_testing.h"
#include "runtime/place_buffers.h"
#include "tests/fuzz/corpus.h"

namespace kiln::fuzz {
namespace {

// Most bytes of a seed, because small seeds find more.
constexpr size_t kMaxBytes = 3000;
// The same number as in saved_model_fuzz.cc.
constexpr int kFeatures = 4;

class Seeds {
 public:
  explicit Seeds(std::string folder) : folder_(std::move(folder)) {}

  void Add(const std::string& corpus, const std::string& content) {
    if (content.size() > kMaxBytes || !seen_.insert(corpus + content).second) return;
    const std::string folder = fmt::format("{}/{}", folder_, corpus);
    Check(MakeDirs(folder));
    Check(WriteFile(fmt::format("{}/seed{:02}", folder, ++counts_[corpus]), content));
  }

 private:
  static void Check(const Status& status) { KILN_CHECK(status.ok(), "{}", Message(status)); }

  std::string folder_;
  std::set<std::string> seen_;
  std::map<std::string, int> counts_;
};

// Adds the texts of some operators only, so that a corpus is read quickly.
void AddTexts(const Corpus& corpus, Seeds& seeds) {
  size_t number = 0;
  for (const Seed& seed : corpus.seeds()) {
    if (number++ % 14 != 0) continue;
    seeds.Add("dag_text", seed.text);
    seeds.Add("measure_log", seed.line);
  }
}

std::string ProgramOf(const dag::DagPtr& dag, const std::string& steps_json, bool gpu) {
  const auto steps = schedule::ParseSteps(steps_json);
  KILN_CHECK(steps.ok());
  const auto state = schedule::Replay(dag, *steps);
  KILN_CHECK(state.ok(), "{}", Message(state.status()));
  const auto program = lower::Lower(*state, {.gpu = gpu});
  return program.ok() ? ir::ProgramText(*program) : std::string();
}

std::string SourceOf(const dag::DagPtr& dag, const std::string& steps_json) {
  const auto steps = schedule::ParseSteps(steps_json);
  KILN_CHECK(steps.ok());
  const auto state = schedule::Replay(dag, *steps);
  KILN_CHECK(state.ok(), "{}", Message(state.status()));
  return schedule::PrintPrimitives(*state);
}

void AddPrograms(const Corpus& corpus, Seeds& seeds) {
  // Schedules of a case in the corpus.
  constexpr size_t kEach = 3;
  size_t number = 0;
  for (const dag::OpCase& one : dag::SmallOpCases()) {
    const Seed& seed = corpus.seeds()[number];
    number += kEach;
    if (number % (3 * kEach) == 0) {
      seeds.Add("steps", one.Name() + "\n" + seed.steps);
      seeds.Add("schedule_source", one.Name() + "\n" + SourceOf(one.Build(), seed.steps));
    }
    if (number % (8 * kEach) != 0) continue;
    for (const bool gpu : {false, true}) {
      const std::string text = ProgramOf(one.Build(), seed.steps, gpu);
      if (!text.empty()) seeds.Add("program_text", text);
    }
  }
}

void AddTasks(Seeds& seeds) {
  std::string list = "# a network\n";
  for (const dag::OpCase& one : dag::SmallOpCases()) {
    const std::string line = fmt::format("2 {} {} {}\n", one.op, one.args, one.epilogue);
    list += line;
    if (list.size() < 400) continue;
    seeds.Add("task_list", list +
                               "0.5 conv2d_nhwc 1,8,8,16,16,3,3,1,1 bias,relu variants=all "
                               "network=a\n");
    list.clear();
  }
}

void AddModels(Seeds& seeds) {
  Rng rng(1);
  costmodel::CostModelOptions options;
  options.feature_version = kFeatures;
  for (const int depth : {1, 3}) {
    options.parameters = {{"max_depth", depth}, {"max_rounds", depth}};
    const auto model = costmodel::MakeCostModel("xgb", options);
    KILN_CHECK(model.ok(), "{}", Message(model.status()));
    const Status trained = (*model)->Update(costmodel::SyntheticSamples(rng, 64));
    KILN_CHECK(trained.ok(), "{}", Message(trained));
    const auto saved = (*model)->Save();
    KILN_CHECK(saved.ok(), "{}", Message(saved.status()));
    seeds.Add("saved_model", *saved);
    seeds.Add("saved_model", saved->substr(saved->find('\n') + 1));
  }
  const costmodel::ModelTask task = {.workload_id = "ab",
                                     .workload_key = "[\"k\", 8]",
                                     .target = "llvm",
                                     .device = "a CPU",
                                     .description = "matmul 8,8,8",
                                     .programs = 7,
                                     .failed = 1,
                                     .best_s = 1e-6};
  const costmodel::ModelFile file = {
      .info = {.calibration = device::PrintCalibration({}),
               .feature_version = kFeatures,
               .columns = "0123456789abcdef",
               .parameters = {{"eta", 0.1}},
               .seed = 1,
               .records = 9,
               .tasks = {task},
               .sources = {"kiln.db"},
               .trained_s = 1'700'000'000,
               .held_out = costmodel::HeldOut{.share = 0.2, .k = 10, .tasks = {{task, {}}}}},
      .model = "bytes"};
  seeds.Add("saved_model", costmodel::PrintModelFile(file));
  seeds.Add("saved_model", costmodel::PrintModelInfo(file.info));
}

void AddDevices(Seeds& seeds) {
  for (const int capability : {70, 80, 90, 100}) {
    const device::DeviceModel model = device::UsualGpu(capability);
    device::DeviceModel named = model;
    named.name = "NVIDIA H200";
    seeds.Add("device_row", device::PrintDeviceModel(named));
  }
  seeds.Add("device_row", device::PrintCalibration({}));
  for (const dag::OpCase& one : dag::SmallOpCases().first(3)) {
    seeds.Add("device_row", dag::WorkloadKey(*one.Build()));
  }
}

void AddNetworks(Seeds& seeds) {
  runtime::Network network = runtime::SmallNetwork();
  const auto placed = runtime::PlaceBuffers(network);
  KILN_CHECK(placed.ok(), "{}", Message(placed.status()));
  seeds.Add("network_file", runtime::ManifestOverZeros(network));
  network.target = {.kind = "cuda", .arch = "sm_90", .device = "", .features = {}, .text = ""};
  network.kernels[0].launches.push_back({.symbol = "second", .cluster = 2, .args = {2, 0}});
  network.outputs.push_back({.name = "z", .dtype = "int64", .shape = {4}, .buffer = 3});
  seeds.Add("network_file", runtime::ManifestOverZeros(network));
  network.constants[0].packing = Packing{.shape = {4}, .dims = {{0, 2, 1}, {0, 2, 2}}};
  seeds.Add("network_file", runtime::ManifestOverZeros(network));
  seeds.Add("network_file", runtime::SealedFile("{}", ""));
}

}  // namespace
}  // namespace kiln::fuzz

int main(int argc, char** argv) {
  using namespace kiln::fuzz;
  if (argc != 2) {
    std::fputs("usage: write_seeds FOLDER\n", stderr);
    return 2;
  }
  Seeds seeds(argv[1]);
  const Corpus corpus;
  AddTexts(corpus, seeds);
  AddPrograms(corpus, seeds);
  AddTasks(seeds);
  AddModels(seeds);
  AddDevices(seeds);
  AddNetworks(seeds);
  return 0;
}
