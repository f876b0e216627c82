#include "client/cli/states/population.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file/file.h"
#include "client/cli/states/fields.h"
#include "compiler/features/features.h"
#include "compiler/schedule/step.h"
#include "costmodel/make_cost_model.h"
#include "costmodel/model_file.h"
#include "device/calibration.h"
#include "search/evolution/evaluate.h"
#include "search/evolution/evolution.h"
#include "search/evolution/population.h"
#include "search/policies/models.h"
#include "search/space/sketch.h"

namespace kiln::client {
namespace {

using Json = nlohmann::json;

// The most states of a question. A state takes some 30 KB while it is worked on.
constexpr int64_t kMaxStates = 100'000;

search::FeatureFn FeaturesOf(const search::Task& task) {
  return [&task](const schedule::State&, const ir::Program& program) {
    return features::ExtractFeatures(program, task.target, task.hardware, task.device);
  };
}

StatusOr<ModelPtr> ModelOf(const Json& question, const search::Task& task, uint64_t seed,
                           LastModel& last) {
  KILN_ASSIGN_OR_RETURN(const std::string name, TextField(question, "model"));
  if (name == "random") {
    KILN_ASSIGN_OR_RETURN(auto random, costmodel::MakeCostModel(name, {.seed = seed}));
    return ModelPtr(std::move(random));
  }
  if (name == "analytic") {
    KILN_ASSIGN_OR_RETURN(
        search::Models models,
        search::MakeModels("sketch.analytic", seed, device::CalibrationOf(task.device).row));
    return models.prior;
  }
  return last.Open(name);
}

Json StepsOf(const search::Individual& individual) {
  return Json::parse(schedule::PrintSteps(individual.steps), nullptr, false);
}

// JSON has no infinity.
Json ScoreJson(double score) { return std::isfinite(score) ? Json(score) : Json(); }

Json ScoresJson(const std::vector<double>& scores) {
  Json all = Json::array();
  for (const double score : scores) all.push_back(ScoreJson(score));
  return all;
}

// Returns the states as individuals of the task's sketches.
std::vector<search::Individual> IndividualsOf(std::vector<schedule::State> states,
                                              const std::vector<search::Sketch>& sketches) {
  std::vector<search::Individual> individuals;
  for (schedule::State& state : states) {
    const std::optional<int> sketch = search::SketchOf(state.steps(), sketches);
    individuals.push_back(search::MakeIndividual(std::move(state), sketch, {}));
  }
  return individuals;
}

using RowsPtr = std::shared_ptr<const FloatMatrix>;

// Returns the feature rows of each state. A state without a program has none.
StatusOr<std::vector<RowsPtr>> RowsOf(const Json& question, const search::Task& task,
                                      const search::Workers& workers) {
  KILN_ASSIGN_OR_RETURN(std::vector<schedule::State> states, StatesField(task.dag, question));
  const search::Workers alone(task, workers.features, 1);
  std::vector<RowsPtr> rows(states.size());
  workers.ForEach(std::ssize(states), [&](int64_t i) {
    // FillRows drops individuals, so each state is filled on its own.
    std::vector<search::Individual> one;
    one.push_back(search::MakeIndividual(std::move(states[i]), {}, {}));
    search::RoundReport report;
    search::FillRows(alone, one, report);
    rows[i] = one.empty() ? std::make_shared<const FloatMatrix>() : one[0].rows;
  });
  return rows;
}

}  // namespace

StatusOr<ModelPtr> LastModel::Open(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(std::string bytes, ReadFile(path));
  if (model_ != nullptr && bytes == bytes_) return model_;
  StatusOr<costmodel::ModelFile> file = costmodel::ParseModelFile(bytes);
  if (!file.ok()) return Annotate(file.status(), path);
  // The seed is for learning, and the model learns no more.
  KILN_ASSIGN_OR_RETURN(const search::TrainedModel trained, search::OpenTrainedModel(*file, 0));
  bytes_ = std::move(bytes);
  model_ = trained.model;
  return model_;
}

StatusOr<Json> SampleStates(const Json& question, const search::Task& task) {
  KILN_ASSIGN_OR_RETURN(const int64_t count, NumberField(question, "count", 1, kMaxStates));
  KILN_ASSIGN_OR_RETURN(const int64_t seed, NumberField(question, "seed", 0, INT64_MAX));
  KILN_ASSIGN_OR_RETURN(const search::Parameters parameters, ParametersField(question));
  const std::vector<search::Sketch> sketches = search::GenerateSketches({task, parameters});
  const search::FeatureFn features = FeaturesOf(task);
  const search::Workers workers(task, features, 0);
  search::Hashes known;
  search::RoundReport report;
  std::vector<search::Individual> drawn = search::DrawPopulation(
      workers, parameters, sketches, static_cast<int>(count), parameters.max_rejected_draws,
      static_cast<uint64_t>(seed), known, report);
  // Only states that have a program are samples.
  search::FillRows(workers, drawn, report);
  Json states = Json::array();
  for (const search::Individual& each : drawn) states.push_back(StepsOf(each));
  return Json{{"states", std::move(states)}};
}

StatusOr<Json> EvolveStates(const Json& question, const search::Task& task, LastModel& last) {
  KILN_ASSIGN_OR_RETURN(const int64_t count, NumberField(question, "count", 1, kMaxStates));
  KILN_ASSIGN_OR_RETURN(const int64_t seed, NumberField(question, "seed", 0, INT64_MAX));
  KILN_ASSIGN_OR_RETURN(const search::Parameters parameters, ParametersField(question));
  KILN_ASSIGN_OR_RETURN(std::vector<schedule::State> states, StatesField(task.dag, question));
  KILN_ASSIGN_OR_RETURN(const ModelPtr model,
                        ModelOf(question, task, static_cast<uint64_t>(seed), last));
  const std::vector<search::Sketch> sketches = search::GenerateSketches({task, parameters});
  const search::FeatureFn features = FeaturesOf(task);
  const search::Workers workers(task, features, 0);
  search::RoundReport report;
  std::vector<search::Individual> first = IndividualsOf(std::move(states), sketches);
  search::FillRows(workers, first, report);
  if (first.empty()) return InvalidArgument("no state has a program, expected one at least");
  search::FillScores(*model, first, report);
  const search::EvolutionInput input{.workers = workers,
                                     .parameters = parameters,
                                     .sketches = sketches,
                                     .model = *model,
                                     .population = parameters.evolutionary_search_population,
                                     .keep = static_cast<int>(count),
                                     .seed = static_cast<uint64_t>(seed)};
  std::vector<search::Individual> best = search::Evolve(input, std::move(first), {}, {}, report);
  // Evolve keeps some of each niche beyond the count.
  if (std::ssize(best) > count) best.erase(best.begin() + count, best.end());
  Json found = Json::array();
  std::vector<double> scores;
  for (const search::Individual& each : best) {
    found.push_back(StepsOf(each));
    scores.push_back(each.score);
  }
  return Json{{"states", std::move(found)}, {"scores", ScoresJson(scores)}};
}

StatusOr<Json> PredictStates(const Json& question, const search::Task& task, LastModel& last) {
  KILN_ASSIGN_OR_RETURN(const ModelPtr model, ModelOf(question, task, 0, last));
  const search::FeatureFn features = FeaturesOf(task);
  const search::Workers workers(task, features, 0);
  KILN_ASSIGN_OR_RETURN(const std::vector<RowsPtr> rows, RowsOf(question, task, workers));
  std::vector<const FloatMatrix*> programs;
  for (const RowsPtr& each : rows) programs.push_back(each.get());
  const std::vector<double> scores = model->Predict(programs);
  std::vector<Json> stages(rows.size(), Json::array());
  workers.ForEach(std::ssize(rows), [&](int64_t i) {
    if (rows[i]->rows() > 0) stages[i] = ScoresJson(model->PredictRows(*rows[i]));
  });
  return Json{{"scores", ScoresJson(scores)}, {"stages", std::move(stages)}};
}

StatusOr<Json> FeaturesOfStates(const Json& question, const search::Task& task) {
  const search::FeatureFn features = FeaturesOf(task);
  const search::Workers workers(task, features, 0);
  KILN_ASSIGN_OR_RETURN(const std::vector<RowsPtr> rows, RowsOf(question, task, workers));
  Json states = Json::array();
  for (const RowsPtr& each : rows) {
    Json matrix = Json::array();
    for (int i = 0; i < each->rows(); ++i) {
      const std::span<const float> row = each->row(i);
      matrix.push_back(std::vector<float>(row.begin(), row.end()));
    }
    states.push_back(std::move(matrix));
  }
  Json names = Json::array();
  for (const std::string_view name : features::FeatureNames()) names.push_back(std::string(name));
  return Json{{"rows", std::move(states)}, {"names", std::move(names)}};
}

}  // namespace kiln::client
