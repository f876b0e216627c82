// Fits the analytic model's constants of a GPU to programs that were measured on one. It does the
// same as kiln calibrate (costmodel/calibration_fit.h), but over databases and for longer.
//
//   bazel run //tools:fit_analytic_model -- --db a.db,b.db --steps 20000
//
// Prints the figures of the built-in row, the constants found, and their figures: loss, bias, rank
// correlation, and the best of the 1, 8, 64 highest scores relative to the best of all.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/numbers/rng.h"
#include "base/status.h"
#include "compiler/features/features.h"
#include "costmodel/analytic_model.h"
#include "costmodel/calibration_fit.h"
#include "costmodel/synthetic_testing.h"
#include "device/calibration.h"
#include "tools/measured_workloads.h"

namespace kiln {
namespace {

using costmodel::FitFigures;
using costmodel::MeasuredPrograms;

struct Options {
  std::vector<std::string> dbs = {"kiln.db"};
  int steps = 5000;
  size_t at_least = 200, most = 1200;
  uint64_t seed = 1;
  bool odd_only = false;
  size_t below = 0;
  std::string start;
};

Status Print(std::string_view what, const std::vector<MeasuredPrograms>& workloads,
             const device::Calibration& row) {
  const auto columns = features::FeatureNames();
  KILN_ASSIGN_OR_RETURN(const auto figures,
                        costmodel::CalibrationFit::Judge(columns, workloads, row));
  KILN_ASSIGN_OR_RETURN(const auto model, costmodel::AnalyticModel::Make(columns, row));
  const auto n = static_cast<double>(workloads.size());
  double loss = 0, bias = 0;
  RankFigures ranks;
  for (size_t w = 0; w < workloads.size(); ++w) {
    loss += figures[w].loss / n;
    bias += figures[w].bias / n;
    ranks.Add(RanksOf(workloads[w], model->Predict(costmodel::Programs(workloads[w]))));
  }
  fmt::print("{:8} loss {:.4f}  bias {:5.2f}  {}\n", what, loss, bias, ranks.DividedBy(n).Print());
  return OkStatus();
}

// Returns every other workload, from `first` on.
std::vector<MeasuredPrograms> EveryOther(const std::vector<MeasuredPrograms>& all, size_t first) {
  std::vector<MeasuredPrograms> some;
  for (size_t i = first; i < all.size(); i += 2) some.push_back(all[i]);
  return some;
}

// Fits to the small workloads. The large workloads are the examination.
Status FitAsCalibrate(const std::vector<MeasuredPrograms>& all, size_t below,
                      const device::Calibration& start) {
  std::vector<MeasuredPrograms> small, large;
  for (const MeasuredPrograms& programs : all)
    (programs.size() < below ? small : large).push_back(programs);
  if (large.empty()) return NotFound("no workload has {} programs to examine with", below);
  KILN_ASSIGN_OR_RETURN(
      const costmodel::CrossFit fit,
      costmodel::FitLeavingOneOut(features::FeatureNames(), small, /*gpu=*/true, start));
  fmt::print("left out: loss {:.4f}, then {:.4f}; rank correlation {:.3f}, then {:.3f}: {}\n",
             fit.before.loss, fit.after.loss, fit.before.spearman, fit.after.spearman,
             fit.better ? "kept" : "not kept");
  KILN_RETURN_IF_ERROR(Print("start", large, start));
  return Print("then", large, fit.row);
}

Status Run(const Options& o) {
  KILN_ASSIGN_OR_RETURN(auto measured, ReadMeasuredWorkloads(o.dbs, o.at_least));
  Rng rng(o.seed);
  std::vector<MeasuredPrograms> all;
  for (MeasuredWorkload& workload : measured) {
    if (!workload.task->target.is_gpu()) continue;
    Shuffle(rng, workload.samples);
    if (workload.samples.size() > o.most) workload.samples.resize(o.most);
    all.push_back(std::move(workload.samples));
  }
  if (all.empty()) return NotFound("no workload was measured on a GPU");
  fmt::print("{} workloads\n", all.size());
  KILN_ASSIGN_OR_RETURN(const device::Calibration start, device::ParseCalibration(o.start));
  if (o.below > 0) return FitAsCalibrate(all, o.below, start);
  KILN_RETURN_IF_ERROR(Print("start", all, start));
  const std::vector<MeasuredPrograms> fitted = o.odd_only ? EveryOther(all, 1) : all;
  KILN_ASSIGN_OR_RETURN(
      const device::Calibration row,
      costmodel::CalibrationFit::Search(features::FeatureNames(), fitted, /*gpu=*/true, start,
                                        {.steps = o.steps, .seed = o.seed}));
  for (const device::CalibrationField& field : device::FittedFields(/*gpu=*/true))
    fmt::print("  {:24} {:.3g}\n", field.name, row.*field.field);
  KILN_RETURN_IF_ERROR(Print("fitted", all, row));
  return o.odd_only ? Print("others", EveryOther(all, 0), row) : OkStatus();
}

}  // namespace
}  // namespace kiln

int main(int argc, char** argv) {
  CLI::App app("Fits the analytic model to records of a GPU");
  kiln::Options o;
  app.add_option("--db", o.dbs, "the databases")->delimiter(',')->capture_default_str();
  app.add_option("--steps", o.steps, "of the search")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--at-least", o.at_least, "programs of a workload that counts")
      ->capture_default_str();
  app.add_option("--most", o.most, "programs of a workload, drawn by chance")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of the programs drawn, and of the search")
      ->capture_default_str();
  app.add_option("--start", o.start,
                 "constants to start from, NAME=VALUE ...; those that are left out are built in");
  app.add_option("--calibrate", o.below,
                 "fit as kiln calibrate does to the workloads with fewer programs than this, and "
                 "show the others");
  app.add_flag("--odd-only", o.odd_only, "fit to every other workload, and show the others");
  CLI11_PARSE(app, argc, argv);
  const kiln::Status status = kiln::Run(o);
  if (status.ok()) return 0;
  fmt::print(stderr, "error: {}\n", kiln::Message(status));
  return 1;
}
