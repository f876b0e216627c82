// What a user means by MODEL: a file, or the name of a model that is kept.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "client/cli/model_commands.h"
#include "client/models.h"
#include "client/session.h"
#include "costmodel/model_file.h"
#include "proto/scheduler.pb.h"

namespace kiln::client {

// A file where there is one of that name, else a kept one, which is not looked for here.
StatusOr<NamedOrFile> ParseModelSource(const std::string& model);

// With what is in it.
StatusOr<costmodel::ModelFile> ReadModelSource(const std::string& model, const Session& session);

// "max_depth=8" of --parameter.
StatusOr<std::map<std::string, double>> ParseParameters(const std::vector<std::string>& texts);

// The session's records that the flags are for; of logs a session with a database of them alone,
// which goes with `folder`. What of the logs is refused is said on stderr.
struct RecordsToLearn {
  Session session;
  v1::ListRecordsRequest request;
  std::optional<TempDir> folder;
};
StatusOr<RecordsToLearn> RecordsOf(const ModelRecordsFlags& flags, const Session& session);

// A line for each reason why records were left out; "" where none was.
std::string LeftOutText(const google::protobuf::RepeatedPtrField<v1::LeftOutRecords>& left_out);

// "xgb over estimates of the analytic model".
std::string KindText(const costmodel::ModelInfo& info);

}  // namespace kiln::client
