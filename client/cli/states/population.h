// The parts of a search on their own: samples, evolution, scores and features of states that
// another program asks for.
#pragma once

#include <nlohmann/json.hpp>

#include "base/status.h"
#include "search/space/task.h"

namespace kiln::client {

// Each answers one question (answers.h). Uses all CPUs. The same seed gives the same answer.
StatusOr<nlohmann::json> SampleStates(const nlohmann::json& question, const search::Task& task);
StatusOr<nlohmann::json> EvolveStates(const nlohmann::json& question, const search::Task& task);
StatusOr<nlohmann::json> PredictStates(const nlohmann::json& question, const search::Task& task);
StatusOr<nlohmann::json> FeaturesOfStates(const nlohmann::json& question, const search::Task& task);

}  // namespace kiln::client
