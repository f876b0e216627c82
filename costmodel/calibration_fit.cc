#include "costmodel/calibration_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/numbers/rng.h"
#include "costmodel/analytic_model.h"
#include "costmodel/rank_correlation.h"

namespace kiln::costmodel {
namespace {

constexpr double kMinWeight = 0.03, kBiasCost = 0.05;

std::vector<const FloatMatrix*> RowsOf(const MeasuredPrograms& programs) {
  std::vector<const FloatMatrix*> rows;
  for (const Sample& program : programs) rows.push_back(program.rows.get());
  return rows;
}

// Computes the figures from scores, which are minus seconds.
FitFigures FiguresOf(const MeasuredPrograms& programs, const std::vector<double>& scores) {
  const size_t n = programs.size();
  double best_s = programs[0].cost_s.value(), best_score = scores[0];
  for (size_t i = 0; i < n; ++i) {
    best_s = std::min(best_s, programs[i].cost_s.value());
    best_score = std::max(best_score, scores[i]);
  }
  std::vector<double> weights(n), ratios(n);
  double all = 0, sum = 0;
  for (size_t i = 0; i < n; ++i) {
    const double fast = std::max(best_s / *programs[i].cost_s, best_score / scores[i]);
    weights[i] = std::max(kMinWeight, fast * fast);
    ratios[i] = std::log(-scores[i] / *programs[i].cost_s);
    all += weights[i];
    sum += weights[i] * ratios[i];
  }
  FitFigures figures{.bias = sum / all};
  for (size_t i = 0; i < n; ++i)
    figures.loss += weights[i] * std::pow(ratios[i] - figures.bias, 2) / all;
  return figures;
}

double LossOf(const std::vector<FitFigures>& figures) {
  double loss = 0;
  for (const FitFigures& f : figures) loss += f.loss + kBiasCost * f.bias * f.bias;
  return loss / static_cast<double>(figures.size());
}

StatusOr<std::vector<FitFigures>> Estimate(std::span<const std::string_view> columns,
                                           std::span<const MeasuredPrograms> workloads,
                                           const device::Calibration& row, bool ranks) {
  KILN_ASSIGN_OR_RETURN(const auto model, AnalyticModel::Make(columns, row));
  std::vector<FitFigures> all;
  for (const MeasuredPrograms& programs : workloads) {
    if (programs.empty()) continue;
    const std::vector<double> scores = model->Predict(RowsOf(programs));
    all.push_back(FiguresOf(programs, scores));
    if (!ranks) continue;
    std::vector<double> throughputs;
    for (const Sample& program : programs) throughputs.push_back(1 / program.cost_s.value());
    all.back().spearman = Spearman(scores, throughputs);
  }
  if (all.empty()) return InvalidArgument("no program that was measured is right: nothing to fit");
  return all;
}

double CostOfChange(const device::Calibration& row, const device::Calibration& start,
                    std::span<const device::CalibrationField> fields, double change_cost) {
  double cost = 0;
  for (const device::CalibrationField& field : fields)
    cost += change_cost * std::pow(std::log(row.*field.field / start.*field.field), 2);
  return cost;
}

// Draws a step that is about normal, with the standard deviation `width`.
double Step(Rng& rng, double width) {
  double step = 0;
  for (int i = 0; i < 3; ++i) step += 2 * UniformReal(rng) - 1;
  return width * step;
}

FitFigures MeanOf(const std::vector<FitFigures>& all) {
  FitFigures mean;
  const auto n = static_cast<double>(all.size());
  for (const FitFigures& f : all) {
    mean.loss += f.loss / n;
    mean.bias += f.bias / n;
    mean.spearman += f.spearman / n;
  }
  return mean;
}

// Judges each workload by a row that was fitted to the other workloads.
StatusOr<std::vector<FitFigures>> CrossValidate(std::span<const std::string_view> columns,
                                                const std::vector<MeasuredPrograms>& workloads,
                                                bool gpu, const device::Calibration& start,
                                                const FitOptions& options) {
  std::vector<FitFigures> all;
  for (size_t out = 0; out < workloads.size(); ++out) {
    std::vector<MeasuredPrograms> others = workloads;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(out));
    KILN_ASSIGN_OR_RETURN(const device::Calibration row,
                          CalibrationFit::Search(columns, others, gpu, start, options));
    KILN_ASSIGN_OR_RETURN(
        const auto figures,
        CalibrationFit::Judge(columns, std::span(workloads).subspan(out, 1), row));
    all.push_back(figures[0]);
  }
  return all;
}

}  // namespace

StatusOr<std::vector<FitFigures>> CalibrationFit::Judge(std::span<const std::string_view> columns,
                                                        std::span<const MeasuredPrograms> workloads,
                                                        const device::Calibration& row) {
  return Estimate(columns, workloads, row, /*ranks=*/true);
}

StatusOr<device::Calibration> CalibrationFit::Search(std::span<const std::string_view> columns,
                                                     std::span<const MeasuredPrograms> workloads,
                                                     bool gpu, const device::Calibration& start,
                                                     const FitOptions& options) {
  constexpr double kFirstWidth = 0.5, kMinWidth = 0.03, kGrowth = 1.3, kDecay = 0.99;
  const std::span<const device::CalibrationField> fields = device::FittedFields(gpu);
  KILN_ASSIGN_OR_RETURN(const auto first, Estimate(columns, workloads, start, /*ranks=*/false));
  device::Calibration best = start;
  double loss = LossOf(first), width = kFirstWidth;
  Rng rng(options.seed);
  for (int step = 0; step < options.steps && !options.stop.stop_requested(); ++step) {
    device::Calibration row = best;
    for (int64_t changes = UniformIn(rng, 1, 3); changes > 0; --changes) {
      const auto& field = fields[UniformInt(rng, std::ssize(fields))];
      row.*field.field *= std::exp(Step(rng, width));
    }
    KILN_ASSIGN_OR_RETURN(const auto figures, Estimate(columns, workloads, row, /*ranks=*/false));
    const double found = LossOf(figures) + CostOfChange(row, start, fields, options.change_cost);
    width = found < loss ? std::min(1.0, width * kGrowth) : std::max(kMinWidth, width * kDecay);
    if (!(found < loss)) continue;
    loss = found;
    best = row;
  }
  return best;
}

StatusOr<CrossFit> FitLeavingOneOut(std::span<const std::string_view> columns,
                                    std::span<const MeasuredPrograms> workloads, bool gpu,
                                    const device::Calibration& start, const FitOptions& options) {
  constexpr double kChangeCosts[] = {1e-3, 1e-2, 1e-1};
  // A rank correlation that is worse by less counts as equally good.
  constexpr double kCorrelationNoise = 0.005;
  CrossFit fit{.row = start};
  std::vector<MeasuredPrograms> all;
  for (const MeasuredPrograms& programs : workloads) {
    fit.programs += programs.size();
    if (!programs.empty()) all.push_back(programs);
  }
  if (all.size() < 2) {
    return InvalidArgument("{} workloads have programs that are right, expected 2 to fit to",
                           all.size());
  }
  KILN_ASSIGN_OR_RETURN(const auto before, CalibrationFit::Judge(columns, all, start));
  fit.before = MeanOf(before);
  double least = std::numeric_limits<double>::infinity();
  FitOptions best = options;
  for (const double change_cost : kChangeCosts) {
    FitOptions tried = options;
    tried.change_cost = change_cost;
    KILN_ASSIGN_OR_RETURN(const auto after, CrossValidate(columns, all, gpu, start, tried));
    if (LossOf(after) >= least) continue;
    least = LossOf(after);
    fit.after = MeanOf(after);
    best = tried;
  }
  fit.better = least < (1 - options.least_gain) * LossOf(before) &&
               fit.after.spearman > fit.before.spearman - kCorrelationNoise;
  if (fit.better) {
    KILN_ASSIGN_OR_RETURN(fit.row, CalibrationFit::Search(columns, all, gpu, start, best));
  }
  return fit;
}

}  // namespace kiln::costmodel
