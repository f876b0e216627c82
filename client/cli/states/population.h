// The parts of a search on their own: samples, evolution, scores and features of states that
// another program asks for.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "costmodel/cost_model.h"
#include "search/space/task.h"

namespace kiln::client {

using ModelPtr = std::shared_ptr<const costmodel::CostModel>;

// The model of a file that was asked for last, so that it is parsed once for many questions. One
// thread at a time. Memory: the file and its model.
class LastModel {
 public:
  // Reads the file, and parses it if its bytes are others than those of the last model.
  StatusOr<ModelPtr> Open(const std::string& path);

 private:
  std::string bytes_;
  ModelPtr model_;
};

// Each answers one question (answers.h). Uses all CPUs. The same seed gives the same answer.
StatusOr<nlohmann::json> SampleStates(const nlohmann::json& question, const search::Task& task);
StatusOr<nlohmann::json> EvolveStates(const nlohmann::json& question, const search::Task& task,
                                      LastModel& last);
StatusOr<nlohmann::json> PredictStates(const nlohmann::json& question, const search::Task& task,
                                       LastModel& last);
StatusOr<nlohmann::json> FeaturesOfStates(const nlohmann::json& question, const search::Task& task);

}  // namespace kiln::client
