#include "training/wire/model_calls.h"

#include <map>
#include <optional>
#include <utility>

#include "base/thread_pool.h"
#include "compiler/dag/text.h"
#include "compiler/dag/workload_id.h"
#include "compiler/schedule/step.h"
#include "compiler/target/target.h"
#include "device/device_model.h"
#include "rpc/hardware_message.h"
#include "search/policies/models.h"
#include "store/wire/record_message.h"
#include "training/device_constants.h"
#include "training/predict.h"
#include "training/train.h"
#include "training/training_set.h"

namespace kiln::training {
namespace {

constexpr uint64_t kPrograms = 10'000, kMaxPrograms = 1'000'000;
constexpr int kTop = 10, kMaxTop = 1'000'000;
constexpr double kHeldOut = 0.2;

// Gives the tasks of the training set the descriptions that jobs have for them.
Status Describe(store::Store& store, TrainingSet& set) {
  std::map<std::string, std::string> descriptions;
  KILN_ASSIGN_OR_RETURN(const auto jobs, store.ListJobs(std::nullopt));
  for (const store::JobRow& job : jobs) {
    KILN_ASSIGN_OR_RETURN(const auto tasks, store.TasksOfJob(job.id));
    for (const store::TaskRow& task : tasks)
      descriptions.try_emplace(task.workload_id, task.description);
  }
  for (costmodel::ModelTask& task : set.tasks) {
    const auto found = descriptions.find(task.workload_id);
    if (found != descriptions.end()) task.description = found->second;
  }
  return OkStatus();
}

// Stops early on request. The token is looked at for each record, and by Finish.
StatusOr<TrainingSet> ReadTrainingSet(store::Store& store, const v1::ListRecordsRequest& records,
                                      uint64_t programs, uint64_t seed, ThreadPool& pool,
                                      const std::stop_token& stop) {
  if (programs > kMaxPrograms)
    return InvalidArgument("{} programs, expected at most {}", programs, kMaxPrograms);
  TrainingSetReader reader(store,
                           {.seed = seed,
                            .programs = static_cast<int64_t>(programs == 0 ? kPrograms : programs),
                            .stop = stop});
  KILN_RETURN_IF_ERROR(
      store.ForEachRecord(store::FilterOf(records), [&](const store::Record& record) -> Status {
        if (stop.stop_requested()) return Cancelled("stopped");
        return reader.Add(record);
      }));
  KILN_ASSIGN_OR_RETURN(TrainingSet set, reader.Finish(pool));
  KILN_RETURN_IF_ERROR(Describe(store, set));
  return set;
}

StatusOr<int> CheckedTop(uint32_t k) {
  if (k > kMaxTop) return InvalidArgument("k is {}, expected at most {}", k, kMaxTop);
  return k == 0 ? kTop : static_cast<int>(k);
}

template <typename Reply>
void AddLeftOut(const TrainingSet& set, Reply& reply) {
  reply.set_records(static_cast<uint64_t>(set.records));
  for (const auto& [reason, left_out] : set.left_out) {
    v1::LeftOutRecords& message = *reply.add_left_out();
    message.set_reason(reason);
    message.set_records(static_cast<uint64_t>(left_out.records));
    message.set_first(left_out.first);
  }
}

// Finds the constants of the device that most programs were measured on.
StatusOr<std::optional<device::Calibration>> EstimatesOf(store::Store& store,
                                                         const TrainingSet& set, bool without) {
  if (without) return std::nullopt;
  const device::DeviceModel device =
      set.devices.empty() ? device::DeviceModel() : set.devices.front();
  KILN_ASSIGN_OR_RETURN(const device::KnownCalibration known, FindCalibration(store, device));
  return known.row;
}

StatusOr<search::Task> TaskOf(const v1::ScheduledProgram& program) {
  KILN_ASSIGN_OR_RETURN(dag::DagPtr dag, dag::ParseDag(program.dag()));
  KILN_ASSIGN_OR_RETURN(target::Target target, target::ParseTarget(program.target()));
  device::DeviceModel model;
  if (!program.device_model().empty()) {
    KILN_ASSIGN_OR_RETURN(model, device::ParseDeviceModel(program.device_model()));
  }
  std::string id = dag::WorkloadId(*dag);
  return search::Task(std::move(dag), std::move(target), HardwareParamsOf(program.hardware()),
                      std::move(id), std::move(model));
}

StatusOr<v1::Prediction> PredictOne(const search::TrainedModel& model,
                                    const v1::ScheduledProgram& program,
                                    const std::stop_token& stop) {
  KILN_ASSIGN_OR_RETURN(search::Task task, TaskOf(program));
  task.stop = stop;
  KILN_ASSIGN_OR_RETURN(const auto steps, schedule::ParseSteps(program.steps()));
  KILN_ASSIGN_OR_RETURN(const Prediction prediction, Predict(model, task, steps));
  v1::Prediction message;
  message.set_score(prediction.score);
  if (prediction.seconds.has_value()) message.set_seconds(*prediction.seconds);
  for (const StagePrediction& stage : prediction.stages) {
    v1::StagePrediction& of_stage = *message.add_stages();
    of_stage.set_kernel(stage.kernel);
    of_stage.set_stage(stage.stage);
    of_stage.set_score(stage.score);
    if (stage.share.has_value()) of_stage.set_share(*stage.share);
  }
  return message;
}

}  // namespace

StatusOr<TrainedFile> TrainFile(store::Store& store, const v1::TrainModelRequest& request,
                                std::vector<std::string> sources, int64_t now_s,
                                const std::stop_token& stop) {
  ThreadPool pool(0);
  KILN_ASSIGN_OR_RETURN(
      const TrainingSet set,
      ReadTrainingSet(store, request.records(), request.programs(), request.seed(), pool, stop));
  TrainOptions options;
  options.seed = request.seed();
  options.parameters = {request.parameters().begin(), request.parameters().end()};
  KILN_ASSIGN_OR_RETURN(options.estimates, EstimatesOf(store, set, request.without_estimates()));
  options.held_out = request.has_held_out() ? request.held_out() : kHeldOut;
  options.split = request.by_computation() ? Split::kComputations : Split::kRecords;
  KILN_ASSIGN_OR_RETURN(options.k, CheckedTop(request.k()));
  options.sources = std::move(sources);
  options.now_s = now_s;
  options.stop = stop;
  TrainedFile trained;
  KILN_ASSIGN_OR_RETURN(trained.file, Train(set, options));
  AddLeftOut(set, trained.reply);
  return trained;
}

StatusOr<int64_t> CountRecords(store::Store& store, const v1::ListRecordsRequest& records,
                               const std::stop_token& stop) {
  int64_t count = 0;
  KILN_RETURN_IF_ERROR(
      store.ForEachRecord(store::FilterOf(records), [&](const store::Record&) -> Status {
        ++count;
        return stop.stop_requested() ? Cancelled("stopped") : OkStatus();
      }));
  return count;
}

bool HasGrown(const costmodel::ModelInfo& since, int64_t records, double share) {
  return static_cast<double>(records) >= static_cast<double>(since.records) * (1 + share) &&
         records > since.records;
}

StatusOr<v1::TrainModelReply> TrainModel(store::Store& store, const v1::TrainModelRequest& request,
                                         std::vector<std::string> sources, int64_t now_s,
                                         const std::stop_token& stop) {
  // A bad name is refused before the training.
  KILN_RETURN_IF_ERROR(store::CheckModel({.name = request.name(), .file = "to be trained"}));
  const StatusOr<store::ModelRow> there = store.GetModel(request.name());
  if (!there.ok() && there.status().code() != StatusCode::kNotFound) return there.status();
  if (there.ok() && request.has_if_grown()) {
    const auto file = costmodel::ParseModelFile(there->file);
    KILN_ASSIGN_OR_RETURN(const int64_t records, CountRecords(store, request.records(), stop));
    if (file.ok() && !HasGrown(file->info, records, request.if_grown())) {
      v1::TrainModelReply reply;
      *reply.mutable_model() = ModelMessage(*there);
      reply.set_records(static_cast<uint64_t>(records));
      reply.set_kept(true);
      return reply;
    }
  }
  const bool replace = request.replace() || request.has_if_grown();
  if (there.ok() && !replace) {
    return AlreadyExists("there is a cost model '{}': name another one, or say to replace it",
                         request.name());
  }
  KILN_ASSIGN_OR_RETURN(TrainedFile trained,
                        TrainFile(store, request, std::move(sources), now_s, stop));
  KILN_ASSIGN_OR_RETURN(const store::ModelRow row,
                        ModelRowOf(request.name(), costmodel::PrintModelFile(trained.file), now_s));
  KILN_RETURN_IF_ERROR(store.AddModel(row, replace));
  *trained.reply.mutable_model() = ModelMessage(row);
  return std::move(trained.reply);
}

StatusOr<v1::TestModelReply> TestFile(store::Store& store, const costmodel::ModelFile& file,
                                      const v1::TestModelRequest& request,
                                      const std::stop_token& stop) {
  KILN_ASSIGN_OR_RETURN(const search::TrainedModel model,
                        search::OpenTrainedModel(file, request.seed(), stop));
  KILN_ASSIGN_OR_RETURN(const int k, CheckedTop(request.k()));
  ThreadPool pool(0);
  KILN_ASSIGN_OR_RETURN(
      const TrainingSet set,
      ReadTrainingSet(store, request.records(), request.programs(), request.seed(), pool, stop));
  v1::TestModelReply reply;
  for (const costmodel::TaskQuality& tested : QualityOf(*model.model, set, k))
    *reply.add_tasks() = QualityMessage(tested);
  AddLeftOut(set, reply);
  return reply;
}

StatusOr<v1::PredictReply> PredictWith(const costmodel::ModelFile& file,
                                       const v1::PredictRequest& request,
                                       const std::stop_token& stop) {
  KILN_ASSIGN_OR_RETURN(const search::TrainedModel model,
                        search::OpenTrainedModel(file, /*seed=*/0, stop));
  v1::PredictReply reply;
  for (const v1::ScheduledProgram& program : request.programs()) {
    auto prediction = PredictOne(model, program, stop);
    if (stop.stop_requested()) return Cancelled("stopped");
    if (!prediction.ok()) {
      reply.add_predictions()->set_error(std::string(Message(prediction.status())));
    } else {
      *reply.add_predictions() = *std::move(prediction);
    }
  }
  return reply;
}

StatusOr<costmodel::ModelFile> ReadModel(store::Store& store, const std::string& name) {
  KILN_ASSIGN_OR_RETURN(const store::ModelRow row, store.GetModel(name));
  auto file = costmodel::ParseModelFile(row.file);
  if (!file.ok()) return Annotate(file.status(), name);
  return file;
}

StatusOr<store::ModelRow> ModelRowOf(const std::string& name, std::string file, int64_t now_s) {
  KILN_ASSIGN_OR_RETURN(const costmodel::ModelFile parsed, costmodel::ParseModelFile(file));
  KILN_RETURN_IF_ERROR(search::OpenTrainedModel(parsed).status());
  store::ModelRow row = {.name = name,
                         .created_s = now_s,
                         .bytes = static_cast<int64_t>(file.size()),
                         .info = costmodel::PrintModelInfo(parsed.info),
                         .file = std::move(file)};
  KILN_RETURN_IF_ERROR(store::CheckModel(row));
  return row;
}

v1::CostModel ModelMessage(const store::ModelRow& row) {
  v1::CostModel message;
  message.set_name(row.name);
  message.set_created_s(row.created_s);
  message.set_bytes(static_cast<uint64_t>(row.bytes));
  message.set_info(row.info);
  return message;
}

v1::ModelQuality QualityMessage(const costmodel::TaskQuality& tested) {
  v1::ModelQuality message;
  message.set_workload_id(tested.task.workload_id);
  message.set_workload_key(tested.task.workload_key);
  message.set_target(tested.task.target);
  message.set_device(tested.task.device);
  message.set_description(tested.task.description);
  message.set_programs(static_cast<uint64_t>(tested.task.programs));
  message.set_failed(static_cast<uint64_t>(tested.task.failed));
  message.set_best_s(tested.task.best_s);
  message.set_spearman(tested.quality.spearman);
  message.set_pairwise(tested.quality.pairwise);
  message.set_recall(tested.quality.recall);
  message.set_peak(tested.quality.peak);
  return message;
}

Status CheckKindOfTarget(const costmodel::ModelInfo& info, const std::string& target) {
  KILN_ASSIGN_OR_RETURN(const target::Target wanted, target::ParseTarget(target));
  for (const costmodel::ModelTask& task : info.tasks) {
    const auto learned = target::ParseTarget(task.target);
    if (!learned.ok() || learned->is_gpu() == wanted.is_gpu()) continue;
    return InvalidArgument("the cost model was trained on {}, and the target is {}", task.target,
                           target);
  }
  return OkStatus();
}

}  // namespace kiln::training
