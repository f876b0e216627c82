#include "client/remote_models.h"

#include <grpcpp/client_context.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/server/grpc_status.h"
#include "client/service_call.h"
#include "costmodel/model_file.h"

namespace kiln::client {
namespace {

constexpr size_t kPartBytes = 512 << 10;
// Training reads all records of the scheduler.
constexpr auto kTrainTimeout = std::chrono::hours(1);

class RemoteModels final : public Models {
 public:
  RemoteModels(std::string name, std::shared_ptr<v1::Scheduler::Stub> stub)
      : name_(std::move(name)), stub_(std::move(stub)) {}

  std::string Name() const override { return name_; }

  StatusOr<Trained> Train(const v1::TrainModelRequest& request) override {
    Trained trained;
    KILN_ASSIGN_OR_RETURN(trained.reply,
                          Call(*stub_, &v1::Scheduler::Stub::TrainModel, request, kTrainTimeout));
    KILN_ASSIGN_OR_RETURN(trained.file, Get(request.name()));
    return trained;
  }

  StatusOr<std::vector<v1::CostModel>> List() override {
    KILN_ASSIGN_OR_RETURN(const auto reply,
                          Call(*stub_, &v1::Scheduler::Stub::ListModels, v1::ListModelsRequest()));
    return std::vector<v1::CostModel>(reply.models().begin(), reply.models().end());
  }

  StatusOr<std::string> Get(const std::string& name) override {
    v1::GetModelRequest request;
    request.set_name(name);
    grpc::ClientContext context;
    SetTimeout(context, kCallTimeout);
    const auto stream = stub_->GetModel(&context, request);
    std::string file;
    v1::ModelPart part;
    while (stream->Read(&part)) {
      if (file.size() + part.part().size() > costmodel::kMaxModelFileBytes) {
        context.TryCancel();
        (void)stream->Finish();
        return ResourceExhausted("the cost model '{}' has more than {} MiB", name,
                                 costmodel::kMaxModelFileBytes >> 20);
      }
      file += part.part();
    }
    KILN_RETURN_IF_ERROR(FromGrpc(stream->Finish()));
    return file;
  }

  StatusOr<v1::CostModel> Put(const std::string& name, const std::string& file,
                              bool replace) override {
    grpc::ClientContext context;
    SetTimeout(context, kCallTimeout);
    v1::CostModel reply;
    const auto stream = stub_->PutModel(&context, &reply);
    v1::ModelPart part;
    part.set_name(name);
    part.set_replace(replace);
    for (size_t at = 0; at < std::max<size_t>(file.size(), 1); at += kPartBytes) {
      part.set_part(file.substr(at, kPartBytes));
      // Finish returns the error.
      if (!stream->Write(part)) break;
      part.Clear();
    }
    stream->WritesDone();
    KILN_RETURN_IF_ERROR(FromGrpc(stream->Finish()));
    return reply;
  }

  Status Delete(const std::string& name) override {
    v1::DeleteModelRequest request;
    request.set_name(name);
    return Call(*stub_, &v1::Scheduler::Stub::DeleteModel, request).status();
  }

  StatusOr<v1::TestModelReply> Test(const NamedOrFile& model,
                                    v1::TestModelRequest request) override {
    KILN_ASSIGN_OR_RETURN(*request.mutable_model(), Kept(model));
    return Call(*stub_, &v1::Scheduler::Stub::TestModel, request, kTrainTimeout);
  }

  StatusOr<v1::PredictReply> Predict(const NamedOrFile& model,
                                     v1::PredictRequest request) override {
    KILN_ASSIGN_OR_RETURN(*request.mutable_model(), Kept(model));
    return Call(*stub_, &v1::Scheduler::Stub::Predict, request);
  }

 private:
  StatusOr<std::string> Kept(const NamedOrFile& model) {
    if (model.bytes.empty()) return model.name;
    const std::string name = ContentName(model.bytes);
    KILN_RETURN_IF_ERROR(Put(name, model.bytes, /*replace=*/false).status());
    return name;
  }

  const std::string name_;
  const std::shared_ptr<v1::Scheduler::Stub> stub_;
};

}  // namespace

std::unique_ptr<Models> ModelsOf(const SchedulerClient& client) {
  return std::make_unique<RemoteModels>(client.Name(), client.stub());
}

}  // namespace kiln::client
