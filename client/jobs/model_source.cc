#include "client/jobs/model_source.h"

#include <utility>

#include "base/file/file.h"
#include "client/remote_models.h"

namespace kiln::client {

StatusOr<NamedOrFile> ParseModelSource(const std::string& model) {
  if (!FileExists(model)) return NamedOrFile{.name = model, .bytes = {}};
  KILN_ASSIGN_OR_RETURN(std::string bytes, ReadFile(model, costmodel::kMaxModelFileBytes));
  if (bytes.empty()) return DataLoss("{} is empty, expected a cost model", model);
  return NamedOrFile{.name = {}, .bytes = std::move(bytes)};
}

StatusOr<costmodel::ModelFile> ReadModelSource(const std::string& model, const Session& session) {
  KILN_ASSIGN_OR_RETURN(NamedOrFile source, ParseModelSource(model));
  if (source.bytes.empty()) {
    KILN_ASSIGN_OR_RETURN(const auto models, session.OpenModels());
    auto bytes = models->Get(source.name);
    if (bytes.status().code() == StatusCode::kNotFound) {
      return NotFound("there is no file {} and no cost model of that name in {}", model,
                      models->Name());
    }
    KILN_ASSIGN_OR_RETURN(source.bytes, std::move(bytes));
  }
  auto file = costmodel::ParseModelFile(source.bytes);
  if (!file.ok()) return Annotate(file.status(), model);
  return file;
}

Status KeepModelOf(const SchedulerClient& client, v1::JobSpec& spec) {
  const std::string& model = spec.options().cost_model();
  if (model.empty()) return OkStatus();
  KILN_ASSIGN_OR_RETURN(const NamedOrFile source, ParseModelSource(model));
  if (source.bytes.empty()) return OkStatus();
  KILN_RETURN_IF_ERROR(Annotate(costmodel::ParseModelFile(source.bytes).status(), model));
  const std::string name = ContentName(source.bytes);
  KILN_RETURN_IF_ERROR(ModelsOf(client)->Put(name, source.bytes, /*replace=*/false).status());
  spec.mutable_options()->set_cost_model(name);
  return OkStatus();
}

}  // namespace kiln::client
