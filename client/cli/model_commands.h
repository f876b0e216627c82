// kiln model trains, keeps, shows and queries cost models.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/cli/commands.h"
#include "client/cli/record_list.h"
#include "client/session.h"

namespace kiln::client {

// The records on which a model is trained or tested.
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

struct TrainModelFlags {
  ModelRecordsFlags records;
  // A file, and a name to keep the model under. At least one of them is set.
  std::string output, name;
  bool replace = false;
  // "max_depth=8".
  std::vector<std::string> parameters;
  bool without_estimates = false;
  double held_out = 0.2;
  bool by_computation = false;
  std::optional<double> if_grown;
};
Status TrainModelCommand(const TrainModelFlags& flags, const Session& session);

struct ShowModelFlags {
  // A file, or the name of a kept model.
  std::string model;
  // Number of columns shown, the most important ones; 0: all.
  int columns = 20;
};
Status ShowModelCommand(const ShowModelFlags& flags, const Session& session);

struct TestModelFlags {
  std::string model;
  ModelRecordsFlags records;
};
Status TestModelCommand(const TestModelFlags& flags, const Session& session);

struct PredictFlags {
  std::string model;
  SubjectFlags subject;
  // A file with steps as JSON; "none": the unscheduled loops.
  std::string steps_path;
  // A schedule as primitives; "-": stdin.
  std::string schedule_path;
};
Status PredictCommand(const PredictFlags& flags, const Session& session);

Status ListModelsCommand(const Session& session);
Status GetModelCommand(const std::string& name, const std::string& output, const Session& session);
// `name` "": the name of the file.
Status PutModelCommand(const std::string& path, const std::string& name, bool replace,
                       const Session& session);
Status DeleteModelCommand(const std::string& name, const Session& session);

}  // namespace kiln::client
