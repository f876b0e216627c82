// The records on which a model is trained or tested, and the model that a command names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file/file.h"
#include "base/status.h"
#include "client/cli/record_filter.h"
#include "client/session.h"
#include "proto/scheduler.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

class SessionFlags;

struct ModelRecordsFlags {
  // Logs of auto_scheduler; empty: the session's records.
  std::vector<std::string> logs;
  // Computations of the logs' keys (bindings.h).
  std::vector<std::string> bind;
  RecordFilterFlags filter;
  // Largest number of programs.
  uint64_t programs = 10'000;
  uint64_t seed = 1;
  // The k of recall and peak.
  uint32_t k = 10;
};

// Adds the records, and where they are.
void AddModelRecords(CLI::App& command, SessionFlags& session, ModelRecordsFlags& records);
// Adds the model as a word: a file or a name.
void AddModel(CLI::App& command, std::string& model);

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

}  // namespace kiln::client
