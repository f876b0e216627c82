#include "training/train.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "base/hash/digest.h"
#include "base/numbers/rng.h"
#include "compiler/features/features.h"
#include "costmodel/analytic_model.h"
#include "costmodel/make_cost_model.h"

namespace kiln::training {
namespace {

constexpr std::string_view kKind = "xgb";
// A model that corrects estimates learns from few programs.
constexpr int kEnoughPrograms = 16, kMinPrograms = 4;
// A share of so few programs says nothing, so all of them are tested in turns.
constexpr int64_t kFewPrograms = 64;
constexpr int kTurns = 5;

// Draws a number in [0, 1), which is the same for the same thing and seed.
double DrawOf(uint64_t seed, uint64_t thing) {
  return static_cast<double>(SplitSeed(seed, thing) >> 11) * 0x1.0p-53;
}

struct Parts {
  TrainingSet learned, held_out;
};

// Returns a training set of these programs, and of their tasks.
TrainingSet With(const TrainingSet& set, const std::vector<TrainingProgram>& programs) {
  std::vector<int> place(set.tasks.size(), -1);
  TrainingSet part;
  for (size_t t = 0; t < set.tasks.size(); ++t) {
    const bool has = std::ranges::any_of(
        programs, [&](const TrainingProgram& p) { return p.task == static_cast<int>(t); });
    if (!has) continue;
    place[t] = static_cast<int>(part.tasks.size());
    costmodel::ModelTask& task = part.tasks.emplace_back(set.tasks[t]);
    task.programs = task.failed = 0;
    task.best_s = 0;
    part.devices.push_back(set.devices[t]);
    part.gpu.push_back(set.gpu[t]);
  }
  for (const TrainingProgram& program : programs) {
    TrainingProgram& taken = part.programs.emplace_back(program);
    taken.task = place[static_cast<size_t>(program.task)];
    costmodel::ModelTask& task = part.tasks[static_cast<size_t>(taken.task)];
    ++task.programs;
    if (!taken.cost_s.has_value()) {
      ++task.failed;
    } else if (task.best_s == 0 || *taken.cost_s < task.best_s) {
      task.best_s = *taken.cost_s;
    }
  }
  return part;
}

Parts SplitTrainingSet(const TrainingSet& set, const TrainOptions& options) {
  std::vector<TrainingProgram> learned, held_out;
  for (const TrainingProgram& program : set.programs) {
    const costmodel::ModelTask& task = set.tasks[static_cast<size_t>(program.task)];
    const uint64_t thing = options.split == Split::kComputations
                               ? Xxh3(task.workload_id)
                               : static_cast<uint64_t>(program.record);
    const bool is_held_out = DrawOf(options.seed, thing) < options.held_out;
    (is_held_out ? held_out : learned).push_back(program);
  }
  return {With(set, learned), With(set, held_out)};
}

Status CheckTrainingSet(const TrainingSet& set) {
  if (set.programs.empty())
    return InvalidArgument("no record is one to learn from: {} were looked at", set.records);
  const auto gpu = std::ranges::count(set.gpu, true);
  if (gpu != 0 && gpu != std::ssize(set.gpu)) {
    return InvalidArgument(
        "the records are of CPUs and of GPUs ({} of {} tasks): a model learns of one of them, "
        "choose "
        "by the target",
        gpu, set.gpu.size());
  }
  return OkStatus();
}

bool AreFew(const TrainingSet& set, const TrainOptions& options) {
  return options.held_out > 0 && options.split == Split::kRecords &&
         std::ssize(set.programs) < kFewPrograms;
}

Status CheckParts(const Parts& parts, const TrainOptions& options) {
  if (options.held_out == 0) return OkStatus();
  const bool by_computation = options.split == Split::kComputations;
  if (parts.held_out.programs.empty() || parts.learned.programs.empty()) {
    std::set<std::string> computations;
    for (const TrainingSet* part : {&parts.held_out, &parts.learned}) {
      for (const costmodel::ModelTask& task : part->tasks) computations.insert(task.workload_id);
    }
    return FailedPrecondition(
        "of {} {} a share of {} held out leaves {} to {}: take another share or seed, or 0 to hold "
        "out nothing",
        by_computation ? computations.size()
                       : parts.learned.programs.size() + parts.held_out.programs.size(),
        by_computation ? "computations" : "programs", options.held_out, "none",
        parts.held_out.programs.empty() ? "test the model on" : "learn from");
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<costmodel::CostModel>> TrainedOn(const TrainingSet& set,
                                                          const TrainOptions& options) {
  const auto programs = static_cast<int>(set.programs.size());
  costmodel::CostModelOptions model_options = {
      .seed = options.seed,
      .feature_version = features::kFeatureVersion,
      .min_samples = std::clamp(programs, kMinPrograms, kEnoughPrograms),
      .parameters = options.parameters,
      .stop = options.stop};
  if (options.estimates.has_value()) {
    KILN_ASSIGN_OR_RETURN(
        model_options.estimate,
        costmodel::AnalyticModel::Make(features::FeatureNames(), *options.estimates));
  }
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<costmodel::CostModel> model,
                        costmodel::MakeCostModel(kKind, model_options));
  KILN_RETURN_IF_ERROR(model->Update(SamplesOf(set)));
  if (model->trained()) return model;
  return FailedPrecondition(
      "{} programs are too few to learn from, expected {} at least: measure more, or take more "
      "records",
      programs, kMinPrograms);
}

// Tests each program by a model of the programs of the other turns. The turns take the programs in
// the order of numbers that the seed draws for their records.
StatusOr<std::vector<costmodel::TaskQuality>> TestInTurns(const TrainingSet& set,
                                                          const TrainOptions& options, int& k) {
  std::vector<size_t> order(set.programs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) {
    return DrawOf(options.seed, static_cast<uint64_t>(set.programs[i].record));
  });
  std::vector<double> scores(set.programs.size());
  for (size_t turn = 0; turn < kTurns; ++turn) {
    std::vector<TrainingProgram> learned;
    std::vector<size_t> tested;
    for (size_t i = 0; i < order.size(); ++i) {
      if (i % kTurns == turn) {
        tested.push_back(order[i]);
      } else {
        learned.push_back(set.programs[order[i]]);
      }
    }
    KILN_ASSIGN_OR_RETURN(const auto model, TrainedOn(With(set, learned), options));
    std::vector<const FloatMatrix*> programs;
    for (const size_t i : tested) programs.push_back(set.programs[i].rows.get());
    const std::vector<double> predicted = model->Predict(programs);
    for (size_t i = 0; i < tested.size(); ++i) scores[tested[i]] = predicted[i];
  }
  std::vector<costmodel::TaskQuality> qualities;
  for (size_t t = 0; t < set.tasks.size(); ++t) {
    std::vector<double> of_task, throughputs;
    for (size_t i = 0; i < set.programs.size(); ++i) {
      const TrainingProgram& program = set.programs[i];
      if (program.task != static_cast<int>(t) || !program.cost_s.has_value()) continue;
      of_task.push_back(scores[i]);
      throughputs.push_back(1 / *program.cost_s);
    }
    if (std::ssize(of_task) < costmodel::kMinRanked) continue;
    // k is at most a third of the programs, because all programs together are no choice.
    k = std::min(k, static_cast<int>((of_task.size() + 2) / 3));
    qualities.push_back({set.tasks[t], costmodel::QualityOf(of_task, throughputs, k)});
  }
  return qualities;
}

}  // namespace

StatusOr<costmodel::ModelFile> Train(const TrainingSet& set, const TrainOptions& options) {
  if (!(options.held_out >= 0 && options.held_out <= 0.9))
    return InvalidArgument("a share of {} held out, expected 0 to 0.9", options.held_out);
  if (options.k < 1) return InvalidArgument("k is {}, expected 1 at least", options.k);
  KILN_RETURN_IF_ERROR(CheckTrainingSet(set));
  const bool in_turns = AreFew(set, options);
  const Parts parts =
      in_turns ? Parts{With(set, set.programs), {}} : SplitTrainingSet(set, options);
  if (!in_turns) KILN_RETURN_IF_ERROR(CheckParts(parts, options));
  KILN_ASSIGN_OR_RETURN(const std::unique_ptr<costmodel::CostModel> model,
                        TrainedOn(parts.learned, options));
  costmodel::ModelFile file;
  file.info = {.kind = std::string(kKind),
               .calibration = options.estimates.has_value()
                                  ? device::PrintCalibration(*options.estimates)
                                  : std::string(),
               .feature_version = features::kFeatureVersion,
               .columns = costmodel::ColumnsDigest(features::FeatureNames()),
               .parameters = options.parameters,
               .seed = options.seed,
               .records = set.records,
               .tasks = parts.learned.tasks,
               .sources = options.sources,
               .trained_s = options.now_s};
  std::ranges::stable_sort(file.info.tasks, std::ranges::greater(),
                           &costmodel::ModelTask::programs);
  if (in_turns) {
    costmodel::HeldOut& held_out = file.info.held_out.emplace();
    held_out = {.share = 1.0 / kTurns, .turns = kTurns, .k = options.k};
    KILN_ASSIGN_OR_RETURN(held_out.tasks, TestInTurns(set, options, held_out.k));
  } else if (options.held_out > 0) {
    file.info.held_out = costmodel::HeldOut{.by_computation = options.split == Split::kComputations,
                                            .share = options.held_out,
                                            .k = options.k,
                                            .tasks = QualityOf(*model, parts.held_out, options.k)};
  }
  KILN_ASSIGN_OR_RETURN(file.model, model->Save());
  return file;
}

std::vector<costmodel::TaskQuality> QualityOf(const costmodel::CostModel& model,
                                              const TrainingSet& set, int k) {
  std::vector<costmodel::TaskQuality> tested;
  for (size_t t = 0; t < set.tasks.size(); ++t) {
    std::vector<const FloatMatrix*> programs;
    std::vector<double> throughputs;
    for (const TrainingProgram& program : set.programs) {
      if (program.task != static_cast<int>(t) || !program.cost_s.has_value()) continue;
      programs.push_back(program.rows.get());
      throughputs.push_back(1 / *program.cost_s);
    }
    if (std::ssize(programs) < costmodel::kMinRanked) continue;
    const std::vector<double> scores = model.Predict(programs);
    tested.push_back({set.tasks[t], costmodel::QualityOf(scores, throughputs, k)});
  }
  return tested;
}

}  // namespace kiln::training
