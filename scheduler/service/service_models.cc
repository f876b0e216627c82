// The service's calls about cost models.
#include "base/clock.h"
#include "rpc/field_limits.h"
#include "scheduler/service/service.h"
#include "training/wire/model_calls.h"

namespace kiln::scheduler {
namespace {

constexpr size_t kPartBytes = 512 << 10;
const char kSource[] = "the scheduler's records";

}  // namespace

grpc::Status SchedulerService::TrainModel(grpc::ServerContext* context,
                                          const v1::TrainModelRequest* request,
                                          v1::TrainModelReply* reply) {
  const Act train{.call = "TrainModel", .subject = "model " + request->name()};
  return AnswerAudited(*context, *request, train, [&](Act&) -> Status {
    const bool replaces = request->replace() || request->has_if_grown();
    if (replaces && store_.GetModel(request->name()).ok()) {
      KILN_RETURN_IF_ERROR(admission_.AdmitFor(*context, "the farm",
                                               "/kiln.v1.Scheduler/TrainModel",
                                               "cost model '" + request->name() + "'"));
    }
    return RunLimited(*context, models_, [&](const std::stop_token& gone) -> Status {
      KILN_ASSIGN_OR_RETURN(*reply,
                            training::TrainModel(store_, *request, {kSource}, NowSeconds(), gone));
      return OkStatus();
    });
  });
}

grpc::Status SchedulerService::ListModels(grpc::ServerContext* context,
                                          const v1::ListModelsRequest* request,
                                          v1::ListModelsReply* reply) {
  return Answer(*context, *request, [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(const std::vector<store::ModelRow> rows, store_.Models());
    for (const store::ModelRow& row : rows) *reply->add_models() = training::ModelMessage(row);
    return OkStatus();
  });
}

grpc::Status SchedulerService::GetModel(grpc::ServerContext* context,
                                        const v1::GetModelRequest* request,
                                        grpc::ServerWriter<v1::ModelPart>* writer) {
  return Answer(*context, *request, [&] { return SendModel(*request, *context, *writer); });
}

Status SchedulerService::SendModel(const v1::GetModelRequest& request, grpc::ServerContext& context,
                                   grpc::ServerWriter<v1::ModelPart>& writer) {
  KILN_ASSIGN_OR_RETURN(Streams::Stream stream, streams_.Open(context, "cost model"));
  KILN_ASSIGN_OR_RETURN(const store::ModelRow row, store_.GetModel(request.name()));
  v1::ModelPart part;
  part.set_name(row.name);
  for (size_t at = 0; at < row.file.size(); at += kPartBytes) {
    part.set_part(row.file.substr(at, kPartBytes));
    KILN_RETURN_IF_ERROR(Send(part, context, stream, writer));
    part.clear_name();
  }
  return OkStatus();
}

grpc::Status SchedulerService::PutModel(grpc::ServerContext* context,
                                        grpc::ServerReader<v1::ModelPart>* reader,
                                        v1::CostModel* reply) {
  const Status admitted = admission_.AdmitStream(*context);
  if (!admitted.ok()) return ToGrpc(admitted);
  const Status taken = TakeModel(*context, *reader, *reply);
  return ToGrpc(Keep(*context, {.call = "PutModel", .subject = "model " + reply->name()}, taken));
}

Status SchedulerService::TakeModel(grpc::ServerContext& context,
                                   grpc::ServerReader<v1::ModelPart>& reader,
                                   v1::CostModel& reply) {
  KILN_ASSIGN_OR_RETURN(Streams::Stream stream, streams_.Open(context, "cost model"));
  std::string name, file;
  bool replace = false, is_first = true;
  v1::ModelPart part;
  while (!stopping_ && stream.Exchange([&] { return reader.Read(&part); })) {
    KILN_RETURN_IF_ERROR(CheckFields(part));
    if (is_first) {
      name = part.name();
      replace = part.replace();
      is_first = false;
      // The name stays there if the model is refused.
      reply.set_name(name);
    }
    if (file.size() + part.part().size() > costmodel::kMaxModelFileBytes) {
      return InvalidArgument("the cost model '{}' has more than {} MiB", name,
                             costmodel::kMaxModelFileBytes >> 20);
    }
    file += part.part();
  }
  if (stopping_) return Unavailable("the scheduler is stopping; try again");
  if (context.IsCancelled()) return GoneStatus();
  KILN_ASSIGN_OR_RETURN(const store::ModelRow row,
                        training::ModelRowOf(name, std::move(file), NowSeconds()));
  KILN_RETURN_IF_ERROR(store_.AddModel(row, replace));
  reply = training::ModelMessage(row);
  return OkStatus();
}

grpc::Status SchedulerService::DeleteModel(grpc::ServerContext* context,
                                           const v1::DeleteModelRequest* request,
                                           v1::DeleteModelReply*) {
  const Act act{.call = "DeleteModel", .subject = "model " + request->name()};
  return AnswerAudited(*context, *request, act,
                       [&](Act&) { return store_.DeleteModel(request->name()); });
}

grpc::Status SchedulerService::TestModel(grpc::ServerContext* context,
                                         const v1::TestModelRequest* request,
                                         v1::TestModelReply* reply) {
  return Answer(*context, *request, [&] {
    return RunLimited(*context, models_, [&](const std::stop_token& gone) -> Status {
      KILN_ASSIGN_OR_RETURN(const costmodel::ModelFile file,
                            training::ReadModel(store_, request->model()));
      KILN_ASSIGN_OR_RETURN(*reply, training::TestFile(store_, file, *request, gone));
      return OkStatus();
    });
  });
}

grpc::Status SchedulerService::Predict(grpc::ServerContext* context,
                                       const v1::PredictRequest* request, v1::PredictReply* reply) {
  return Answer(*context, *request, [&] {
    return RunLimited(*context, models_, [&](const std::stop_token& gone) -> Status {
      KILN_ASSIGN_OR_RETURN(const costmodel::ModelFile file,
                            training::ReadModel(store_, request->model()));
      KILN_ASSIGN_OR_RETURN(*reply, training::PredictWith(file, *request, gone));
      return OkStatus();
    });
  });
}

}  // namespace kiln::scheduler
