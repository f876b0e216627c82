// Resolves MODEL of the command line: a file, or the name of a kept model.
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

// Returns the file of that name if there is one, otherwise a kept model, whose existence is not
// checked.
StatusOr<NamedOrFile> ParseModelSource(const std::string& model);

// Returns the content of the model.
StatusOr<costmodel::ModelFile> ReadModelSource(const std::string& model, const Session& session);

// Parses values of --parameter: "max_depth=8".
StatusOr<std::map<std::string, double>> ParseParameters(const std::vector<std::string>& texts);

// The session's records that the flags select. For logs the session has a database of these alone,
// which is deleted with `folder`. Refused lines of logs are reported on stderr.
struct RecordsToLearn {
  Session session;
  v1::ListRecordsRequest request;
  std::optional<TempDir> folder;
};
StatusOr<RecordsToLearn> RecordsOf(const ModelRecordsFlags& flags, const Session& session);

// Returns a line for each reason why records were left out; "" if none was.
std::string LeftOutText(const google::protobuf::RepeatedPtrField<v1::LeftOutRecords>& left_out);

// Returns "xgb over estimates of the analytic model" or the like.
std::string KindText(const costmodel::ModelInfo& info);

}  // namespace kiln::client
