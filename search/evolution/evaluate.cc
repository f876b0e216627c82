#include "search/evolution/evaluate.h"

#include <cmath>

#include "base/process/cpu_time.h"
#include "compiler/lower/lower.h"
#include "compiler/schedule/step.h"

namespace kiln::search {
namespace {

std::vector<double> ScoresOf(const costmodel::CostModel& model,
                             const std::vector<Individual>& individuals) {
  std::vector<const FloatMatrix*> programs;
  programs.reserve(individuals.size());
  for (const Individual& individual : individuals) programs.push_back(individual.rows.get());
  if (!model.reads_steps()) return model.Predict(programs);
  std::vector<std::string> steps;
  steps.reserve(individuals.size());
  for (const Individual& individual : individuals)
    steps.push_back(schedule::PrintSteps(individual.steps));
  return model.PredictSchedules(programs, steps);
}

struct Cost {
  double lower_s = 0, features_s = 0;
  Status refusal;
  bool done = false;
};

void FillOne(const Workers& workers, Individual& individual, Cost& cost) {
  if (individual.rows != nullptr || workers.task.stop.stop_requested()) return;
  const double start = ThreadCpuSeconds();
  cost.done = true;
  if (!individual.state.has_value()) {
    auto state = schedule::Replay(workers.task.dag, individual.steps, workers.task.stop);
    cost.refusal = state.status();
    if (!state.ok()) return;
    individual.state = *std::move(state);
  }
  const auto program = lower::Lower(
      *individual.state, {.gpu = workers.task.target.is_gpu(), .stop = workers.task.stop});
  const double lowered = ThreadCpuSeconds();
  cost.lower_s = lowered - start;
  cost.refusal = program.status();
  if (!program.ok()) return;
  FloatMatrix rows = workers.features(*individual.state, *program);
  individual.state.reset();
  if (rows.rows() == 0) {
    cost.refusal = FailedPrecondition("the program stores nothing");
  } else {
    individual.rows = std::make_shared<const FloatMatrix>(std::move(rows));
  }
  cost.features_s = ThreadCpuSeconds() - lowered;
}

}  // namespace

Workers::Workers(const Task& t, const FeatureFn& f, int threads) : task(t), features(f) {
  if (threads <= 0) threads = AvailableCpus();
  if (threads > 1) pool_ = std::make_unique<ThreadPool>(threads - 1);
}

void Workers::ForEach(int64_t count, const std::function<void(int64_t)>& body) const {
  if (pool_ != nullptr) return pool_->ParallelFor(count, body);
  for (int64_t i = 0; i < count; ++i) body(i);
}

void FillRows(const Workers& workers, std::vector<Individual>& individuals, RoundReport& report) {
  std::vector<Cost> costs(individuals.size());
  workers.ForEach(static_cast<int64_t>(individuals.size()),
                  [&](int64_t i) { FillOne(workers, individuals[i], costs[i]); });
  for (const Cost& cost : costs) {
    report.seconds(Part::kLower) += cost.lower_s;
    report.seconds(Part::kFeatures) += cost.features_s;
    if (cost.done) ++report.evaluated;
    if (!cost.refusal.ok()) report.AddDrop(Drop::kLowering, cost.refusal);
  }
  std::erase_if(individuals, [](const Individual& i) { return i.rows == nullptr; });
}

void FillScores(const costmodel::CostModel& model, std::vector<Individual>& individuals,
                RoundReport& report) {
  const double start = ThreadCpuSeconds();
  const std::vector<double> scores = ScoresOf(model, individuals);
  KILN_CHECK(scores.size() == individuals.size(), "{} scores of {} programs", scores.size(),
             individuals.size());
  for (size_t i = 0; i < scores.size(); ++i)
    individuals[i].score = std::isnan(scores[i]) ? kNoScore : scores[i];
  report.seconds(Part::kPredict) += ThreadCpuSeconds() - start;
}

}  // namespace kiln::search
