#include "client/local_models.h"

#include <utility>

#include "absl/time/clock.h"
#include "base/file/file.h"
#include "store/sqlite_store.h"
#include "training/wire/model_calls.h"

namespace kiln::client {
namespace {

int64_t NowSeconds() { return absl::ToUnixSeconds(absl::Now()); }

class LocalModels final : public Models {
 public:
  LocalModels(std::string path, std::unique_ptr<store::Store> store)
      : path_(std::move(path)), store_(std::move(store)) {}

  std::string Name() const override { return path_; }

  StatusOr<Trained> Train(const v1::TrainModelRequest& request) override {
    Trained trained;
    if (request.name().empty()) {
      KILN_ASSIGN_OR_RETURN(training::TrainedFile made,
                            training::TrainFile(*store_, request, {path_}, NowSeconds(), {}));
      trained.file = costmodel::PrintModelFile(made.file);
      trained.reply = std::move(made.reply);
      trained.reply.mutable_model()->set_bytes(trained.file.size());
      trained.reply.mutable_model()->set_info(costmodel::PrintModelInfo(made.file.info));
      return trained;
    }
    KILN_ASSIGN_OR_RETURN(trained.reply,
                          training::TrainModel(*store_, request, {path_}, NowSeconds(), {}));
    KILN_ASSIGN_OR_RETURN(trained.file, Get(request.name()));
    return trained;
  }

  StatusOr<std::vector<v1::CostModel>> List() override {
    KILN_ASSIGN_OR_RETURN(const std::vector<store::ModelRow> rows, store_->Models());
    std::vector<v1::CostModel> models;
    for (const store::ModelRow& row : rows) models.push_back(training::ModelMessage(row));
    return models;
  }

  StatusOr<std::string> Get(const std::string& name) override {
    KILN_ASSIGN_OR_RETURN(store::ModelRow row, InDatabase(store_->GetModel(name)));
    return std::move(row.file);
  }

  StatusOr<v1::CostModel> Put(const std::string& name, const std::string& file,
                              bool replace) override {
    KILN_ASSIGN_OR_RETURN(const store::ModelRow row,
                          training::ModelRowOf(name, file, NowSeconds()));
    KILN_RETURN_IF_ERROR(store_->AddModel(row, replace));
    return training::ModelMessage(row);
  }

  Status Delete(const std::string& name) override { return InDatabase(store_->DeleteModel(name)); }

  StatusOr<v1::TestModelReply> Test(const NamedOrFile& model,
                                    v1::TestModelRequest request) override {
    KILN_ASSIGN_OR_RETURN(const costmodel::ModelFile file, FileOf(model));
    return training::TestFile(*store_, file, request, {});
  }

  StatusOr<v1::PredictReply> Predict(const NamedOrFile& model,
                                     v1::PredictRequest request) override {
    KILN_ASSIGN_OR_RETURN(const costmodel::ModelFile file, FileOf(model));
    return training::PredictWith(file, request, {});
  }

 private:
  StatusOr<costmodel::ModelFile> FileOf(const NamedOrFile& model) {
    if (!model.bytes.empty()) return costmodel::ParseModelFile(model.bytes);
    return InDatabase(training::ReadModel(*store_, model.name));
  }

  // Adds the database to a NotFound: "no cost model 'x' in kiln.db".
  Status InDatabase(const Status& status) const {
    if (status.code() != StatusCode::kNotFound) return status;
    return NotFound("{} in {}", Message(status), path_);
  }
  template <typename T>
  StatusOr<T> InDatabase(StatusOr<T> result) const {
    if (!result.ok()) return InDatabase(result.status());
    return result;
  }

  const std::string path_;
  const std::unique_ptr<store::Store> store_;
};

}  // namespace

StatusOr<std::unique_ptr<Models>> OpenLocalModels(const std::string& path, bool write) {
  using Mode = store::sqlite::OpenOptions::Mode;
  if (!write && !FileExists(path)) {
    return NotFound(
        "no database at {}: nothing was tuned here yet; name another file with --db, or a "
        "scheduler with --scheduler",
        path);
  }
  auto store = store::OpenSqliteStore(path, {.mode = write ? Mode::kCreate : Mode::kReadWrite});
  // The file may belong to somebody else or stand on a read-only disk.
  if (!store.ok() && !write) {
    auto readable = store::OpenSqliteStore(path, {.mode = Mode::kReadOnly});
    if (readable.ok()) store = std::move(readable);
  }
  KILN_RETURN_IF_ERROR(store.status());
  return std::make_unique<LocalModels>(path, *std::move(store));
}

}  // namespace kiln::client
