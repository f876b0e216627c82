#include "search/evolution/evaluate.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "base/numbers/integers.h"
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

// So many states are timed together, because the CPU time of a thread takes a system call.
constexpr int64_t kTimedTogether = 4;

struct Cost {
  double lower_s = 0, features_s = 0;
  std::vector<Status> refusals;
  int64_t evaluated = 0;
};

StatusOr<ir::Program> LowerOne(const Task& task, Individual& individual) {
  if (individual.state == nullptr) {
    KILN_ASSIGN_OR_RETURN(schedule::State state,
                          schedule::Replay(task.dag, individual.steps, task.stop));
    individual.state = std::make_shared<const schedule::State>(std::move(state));
  }
  return lower::Lower(*individual.state, {.gpu = task.target.is_gpu(), .stop = task.stop});
}

Status FillRowsOf(const Workers& workers, const ir::Program& program, Individual& individual) {
  FloatMatrix rows = workers.features(*individual.state, program);
  individual.state.reset();
  if (rows.rows() == 0) return FailedPrecondition("the program stores nothing");
  individual.rows = std::make_shared<const FloatMatrix>(std::move(rows));
  return OkStatus();
}

void FillSome(const Workers& workers, std::span<Individual> individuals, Cost& cost) {
  const double start = ThreadCpuSeconds();
  std::vector<std::pair<Individual*, ir::Program>> lowered;
  lowered.reserve(individuals.size());
  for (Individual& individual : individuals) {
    if (individual.rows != nullptr || workers.task.stop.stop_requested()) continue;
    ++cost.evaluated;
    StatusOr<ir::Program> program = LowerOne(workers.task, individual);
    if (program.ok()) {
      lowered.emplace_back(&individual, *std::move(program));
    } else {
      cost.refusals.push_back(program.status());
    }
  }
  const double middle = ThreadCpuSeconds();
  for (auto& [individual, program] : lowered) {
    if (workers.task.stop.stop_requested()) break;
    Status filled = FillRowsOf(workers, program, *individual);
    if (!filled.ok()) cost.refusals.push_back(std::move(filled));
  }
  cost.lower_s = middle - start;
  cost.features_s = ThreadCpuSeconds() - middle;
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
  const std::span<Individual> all(individuals);
  const int64_t count = std::ssize(all);
  std::vector<Cost> costs(static_cast<size_t>(CeilDiv(count, kTimedTogether)));
  workers.ForEach(std::ssize(costs), [&](int64_t i) {
    const int64_t begin = i * kTimedTogether;
    FillSome(workers, all.subspan(begin, std::min(kTimedTogether, count - begin)), costs[i]);
  });
  for (const Cost& cost : costs) {
    report.seconds(Part::kLower) += cost.lower_s;
    report.seconds(Part::kFeatures) += cost.features_s;
    report.evaluated += cost.evaluated;
    for (const Status& refusal : cost.refusals) report.AddDrop(Drop::kLowering, refusal);
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
