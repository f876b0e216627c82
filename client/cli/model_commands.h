// kiln model: cost models as things that are trained, kept, looked at, and asked.
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

// The records that a model is trained or tested on.
struct ModelRecordsFlags {
  std::vector<std::string> logs;  // of auto_scheduler; empty: the session's records
  std::vector<std::string> bind;  // what keys of the logs stand for: bindings.h
  RecordFilterFlags filter;
  uint64_t programs = 10'000;  // at most so many
  uint64_t seed = 1;
  uint32_t k = 10;  // of recall and peak
};

struct TrainModelFlags {
  ModelRecordsFlags records;
  std::string output, name;  // a file; a name to keep it under. One of them at least
  bool replace = false;
  std::vector<std::string> parameters;  // "max_depth=8"
  bool without_estimates = false;
  double held_out = 0.2;
  bool by_computation = false;
  std::optional<double> if_grown;
};
Status TrainModelCommand(const TrainModelFlags& flags, const Session& session);

struct ShowModelFlags {
  std::string model;  // a file, or the name of a kept one
  int columns = 20;   // of the most important ones so many; 0: all
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
  std::string steps_path;     // a file with steps as JSON; "none": the unscheduled loops
  std::string schedule_path;  // a schedule as primitives; "-": stdin
};
Status PredictCommand(const PredictFlags& flags, const Session& session);

Status ListModelsCommand(const Session& session);
Status GetModelCommand(const std::string& name, const std::string& output, const Session& session);
// `name` "": that of the file.
Status PutModelCommand(const std::string& path, const std::string& name, bool replace,
                       const Session& session);
Status DeleteModelCommand(const std::string& name, const Session& session);

}  // namespace kiln::client
