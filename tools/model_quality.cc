// Measures how well cost models rank the programs of databases, by their real times.
//
//   bazel run //tools:model_quality -- --db a.db,b.db --models analytic,xgb,corrected --train 64
//
// A model that learns does so from `train` programs of a workload drawn by chance ("own"), from all
// programs of the other workloads ("others"), or from both, and is tested on the rest of the
// workload. A model that does not learn is tested on the whole workload. Figures: Spearman's rank
// correlation of scores and throughputs; and the best throughput found if the 1, 8, 64 programs
// with the highest scores are measured, relative to the best of all.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "compiler/features/features.h"
#include "costmodel/analytic_model.h"
#include "costmodel/make_cost_model.h"
#include "costmodel/synthetic_testing.h"
#include "device/calibration.h"
#include "store/sqlite_store.h"
#include "tools/measured_workloads.h"

namespace kiln {
namespace {

using Samples = std::vector<costmodel::Sample>;

struct Options {
  std::vector<std::string> dbs = {"kiln.db"};
  // "corrected" is xgb over the estimates of the analytic model.
  std::vector<std::string> models = {"random", "analytic", "xgb", "corrected"};
  int train = 64, draws = 5;
  size_t at_least = 100;
  std::vector<std::string> set;
  std::string constants = "device";
};

// Figures that add up to a mean.
struct Figures {
  RankFigures sum;
  int count = 0;

  void Add(const RankFigures& figures) {
    sum.Add(figures);
    ++count;
  }
  void AddMean(const Figures& other) {
    if (other.count > 0) Add(other.sum.DividedBy(other.count));
  }
};

RankFigures Judge(const costmodel::CostModel& model, const Samples& test) {
  return RanksOf(test, model.Predict(costmodel::Programs(test)));
}

bool Learns(std::string_view model) { return model == "xgb" || model == "corrected"; }

// Returns the analytic model's constants.
StatusOr<device::Calibration> ConstantsOf(const Options& o, const device::DeviceModel& model) {
  if (o.constants == "device") return device::CalibrationOf(model).row;
  if (o.constants == "built-in") return device::Calibration();
  if (o.constants != "kept") return device::ParseCalibration(o.constants);
  KILN_ASSIGN_OR_RETURN(const auto store, store::OpenSqliteStore(o.dbs.front()));
  KILN_ASSIGN_OR_RETURN(const auto rows, store->Calibrations());
  for (const store::CalibrationRow& row : rows) {
    if (row.device == model.name && row.compute_capability == model.compute_capability)
      return device::ParseCalibration(row.constants);
  }
  return NotFound("{} keeps no calibration of '{}'", o.dbs.front(), model.name);
}

StatusOr<std::unique_ptr<costmodel::CostModel>> MakeModel(
    std::string_view name, const std::map<std::string, double>& parameters,
    const device::Calibration& constants) {
  if (name == "analytic")
    return costmodel::AnalyticModel::Make(features::FeatureNames(), constants);
  costmodel::CostModelOptions options{.seed = 1, .feature_version = features::kFeatureVersion};
  if (Learns(name)) options.parameters = parameters;
  if (name != "corrected") return costmodel::MakeCostModel(name, options);
  KILN_ASSIGN_OR_RETURN(options.estimate,
                        costmodel::AnalyticModel::Make(features::FeatureNames(), constants));
  return costmodel::MakeCostModel("xgb", options);
}

StatusOr<std::map<std::string, double>> Parameters(const Options& o) {
  // The model learns from any number of samples, even from few.
  std::map<std::string, double> parameters = {{"min_samples", std::min(o.train, 32)}};
  for (const std::string& text : o.set) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) return InvalidArgument("'{}' is not NAME=VALUE", text);
    parameters[text.substr(0, equals)] = std::atof(text.c_str() + equals + 1);
  }
  return parameters;
}

enum TrainingSet { kOwn, kOthers, kBoth };
constexpr const char* kSetNames[] = {"own", "others", "both"};
using BySet = std::array<Figures, std::size(kSetNames)>;

Samples OthersThan(const MeasuredWorkload& workload, std::span<const MeasuredWorkload> all) {
  Samples others;
  for (const MeasuredWorkload& other : all) {
    if (&other != &workload)
      others.insert(others.end(), other.samples.begin(), other.samples.end());
  }
  for (costmodel::Sample& sample : others) sample.prior = true;
  return others;
}

StatusOr<BySet> Learn(const Options& o, const std::string& name,
                      const std::map<std::string, double>& parameters,
                      const MeasuredWorkload& workload, const Samples& others,
                      const device::Calibration& constants) {
  BySet figures;
  for (int draw = 0; draw < o.draws; ++draw) {
    Rng rng(static_cast<uint64_t>(draw));
    Samples own = workload.samples;
    Shuffle(rng, own);
    const Samples rest(own.begin() + o.train, own.end());
    own.resize(static_cast<size_t>(o.train));
    Samples both = others;
    both.insert(both.end(), own.begin(), own.end());
    const Samples* const kSets[] = {&own, &others, &both};
    for (const TrainingSet set : {kOwn, kOthers, kBoth}) {
      // Learning from other workloads is slow, and hardly differs from draw to draw.
      if (set != kOwn && (draw > 0 || others.empty())) continue;
      KILN_ASSIGN_OR_RETURN(const auto model, MakeModel(name, parameters, constants));
      KILN_RETURN_IF_ERROR(model->Update(*kSets[set]));
      figures[set].Add(Judge(*model, rest));
    }
  }
  return figures;
}

void Print(std::string_view model, std::string_view set, const Figures& figures) {
  if (figures.count == 0) return;
  fmt::print("  {:10} {:7} {}\n", model, set, figures.sum.DividedBy(figures.count).Print());
  std::fflush(stdout);
}

Status Run(const Options& o) {
  KILN_ASSIGN_OR_RETURN(const auto parameters, Parameters(o));
  // Some programs must be left to test with.
  const size_t least = std::max(o.at_least, static_cast<size_t>(o.train) + 20);
  KILN_ASSIGN_OR_RETURN(const auto workloads, ReadMeasuredWorkloads(o.dbs, least));
  std::map<std::string, BySet> sums;
  for (const MeasuredWorkload& workload : workloads) {
    fmt::print("{} on {}: {} programs\n", workload.key, workload.task->target.kind->name,
               workload.samples.size());
    const Samples others = OthersThan(workload, workloads);
    KILN_ASSIGN_OR_RETURN(const device::Calibration constants,
                          ConstantsOf(o, workload.task->device));
    for (const std::string& name : o.models) {
      BySet figures;
      if (Learns(name)) {
        KILN_ASSIGN_OR_RETURN(figures, Learn(o, name, parameters, workload, others, constants));
      } else {
        KILN_ASSIGN_OR_RETURN(const auto model, MakeModel(name, parameters, constants));
        figures[kOwn].Add(Judge(*model, workload.samples));
      }
      for (size_t i = 0; i < figures.size(); ++i) {
        Print(name, Learns(name) ? kSetNames[i] : "", figures[i]);
        sums[name][i].AddMean(figures[i]);
      }
    }
  }
  fmt::print("mean of {} workloads\n", workloads.size());
  for (const std::string& name : o.models) {
    for (size_t i = 0; i < sums[name].size(); ++i)
      Print(name, Learns(name) ? kSetNames[i] : "", sums[name][i]);
  }
  return OkStatus();
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("Quality of cost models on the records of databases");
  kiln::Options o;
  app.add_option("--db", o.dbs, "the databases")->delimiter(',')->capture_default_str();
  app.add_option("--models", o.models, "random, analytic, xgb, corrected: xgb over estimates")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--train", o.train, "programs of each workload to learn from")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--draws", o.draws, "of these programs")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--at-least", o.at_least, "programs of a workload that counts")
      ->capture_default_str();
  app.add_option("--constants", o.constants,
                 "of the analytic model: device: those built in for the records' device or derived "
                 "from its numbers; built-in: the H200's; kept: what kiln calibrate left in the "
                 "first database; or NAME=VALUE ...")
      ->capture_default_str();
  app.add_option("--set", o.set, "parameters of xgb, NAME=VALUE");
  CLI11_PARSE(app, argc, argv);
  const kiln::Status status = kiln::Run(o);
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", kiln::Message(status));
  return 1;
}
