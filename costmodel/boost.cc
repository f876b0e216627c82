#include "costmodel/boost.h"

#include <xgboost/c_api.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"

namespace kiln::costmodel {
namespace {

// Takes only the first line: the others are a stack trace of the library.
Status XgbError(const char* call) {
  std::string_view message = XGBGetLastError();
  message = message.substr(0, message.find('\n'));
  return Internal("xgboost: {}: {}", call, message);
}

#define KILN_XGB(call)                       \
  do {                                       \
    if ((call) != 0) return XgbError(#call); \
  } while (0)

template <int (*Free)(void*)>
class Handle {
 public:
  Handle() = default;
  ~Handle() {
    if (value_ != nullptr) Free(value_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  void** out() { return &value_; }
  void* get() const { return value_; }

 private:
  void* value_ = nullptr;
};
using Matrix = Handle<XGDMatrixFree>;
using Booster = Handle<XGBoosterFree>;

Status SetUpLog() {
  static const int registered =
      XGBRegisterLogCallback([](const char* text) { LogDebug("xgboost: {}", text); });
  return registered == 0 ? OkStatus() : XgbError("XGBRegisterLogCallback");
}

Status SetParameters(const Booster& booster, const BoostOptions& o) {
  const std::pair<const char*, std::string> parameters[] = {
      {"tree_method", "hist"},
      {"max_depth", fmt::to_string(o.max_depth)},
      {"gamma", fmt::to_string(o.gamma)},
      {"min_child_weight", fmt::to_string(o.min_child_weight)},
      {"eta", fmt::to_string(o.eta)},
      {"lambda", fmt::to_string(o.lambda)},
      {"colsample_bynode", fmt::to_string(o.colsample_bynode)},
      {"subsample", fmt::to_string(o.subsample)},
      {"max_bin", fmt::to_string(o.max_bin)},
      {"nthread", fmt::to_string(o.threads)},
      // XGBoost's seed is a signed 32-bit number.
      {"seed", fmt::to_string(o.seed & 0x7fffffff)},
      {"base_score", "0"},
      {"disable_default_eval_metric", "1"},
      {"verbosity", "1"},
  };
  for (const auto& [name, value] : parameters) {
    KILN_XGB(XGBoosterSetParam(booster.get(), name, value.c_str()));
  }
  return OkStatus();
}

// Returns the outputs of the booster's trees for the rows that it is trained on, which XGBoost
// keeps.
Status TrainingOutputs(const Booster& booster, const Matrix& matrix, std::span<const float> before,
                       std::vector<float>& outputs) {
  constexpr const char* kMargin =
      R"({"type":1,"training":true,"iteration_begin":0,"iteration_end":0,"strict_shape":false})";
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  const float* values = nullptr;
  KILN_XGB(XGBoosterPredictFromDMatrix(booster.get(), matrix.get(), kMargin, &shape, &dimensions,
                                       &values));
  if (dimensions < 1 || shape[0] != before.size()) {
    return Internal("xgboost gave outputs for another number of rows than {}", before.size());
  }
  for (size_t i = 0; i < before.size(); ++i) outputs[i] = before[i] + values[i];
  return OkStatus();
}

// Reads the trees from the model's UBJSON. Throws the exceptions of the JSON library.
Status ReadTrees(const nlohmann::json& model, std::span<const int32_t> columns, Forest& forest) {
  const nlohmann::json& trees = model.at("learner").at("gradient_booster").at("model").at("trees");
  for (const nlohmann::json& json : trees) {
    Tree tree;
    tree.left = json.at("left_children").get<std::vector<int32_t>>();
    tree.right = json.at("right_children").get<std::vector<int32_t>>();
    tree.column = json.at("split_indices").get<std::vector<int32_t>>();
    tree.threshold = json.at("split_conditions").get<std::vector<float>>();
    tree.gain = json.at("loss_changes").get<std::vector<float>>();
    for (size_t i = 0; i < tree.column.size(); ++i) {
      int32_t& column = tree.column[i];
      if (column < 0 || static_cast<size_t>(column) >= columns.size()) {
        return Internal("xgboost split at column {} of {}", column, columns.size());
      }
      column = columns[column];
    }
    KILN_RETURN_IF_ERROR(Annotate(forest.Add(tree), "a tree of xgboost"));
  }
  return OkStatus();
}

Status AddTrees(const Booster& booster, std::span<const int32_t> columns, Forest& forest) {
  bst_ulong length = 0;
  const char* bytes = nullptr;
  KILN_XGB(XGBoosterSaveModelToBuffer(booster.get(), R"({"format":"ubj"})", &length, &bytes));
  try {
    return ReadTrees(nlohmann::json::from_ubjson(bytes, bytes + length), columns, forest);
  } catch (const nlohmann::json::exception& error) {
    return Internal("cannot read xgboost's model: {}", error.what());
  }
}

// Checks that the trees that were read give the outputs that XGBoost computed, because another
// version of XGBoost may write its models differently.
Status CheckSame(const Forest& forest, std::span<const float* const> rows,
                 std::span<const float> expected) {
  constexpr size_t kRows = 64;
  rows = rows.first(std::min(rows.size(), kRows));
  const std::vector<float> found = forest.Predict(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!(std::abs(found[i] - expected[i]) <= 1e-4F * (1 + std::abs(expected[i])))) {
      return Internal("the trees give {} for row {}, xgboost gave {}", found[i], i, expected[i]);
    }
  }
  return OkStatus();
}

}  // namespace

Status Boost(const BoostInput& set, const BoostOptions& options, Forest& forest) {
  // All rows are equal, so there is nothing to learn.
  if (set.columns().empty()) return OkStatus();
  KILN_RETURN_IF_ERROR(SetUpLog());
  Matrix matrix;
  const auto count = static_cast<bst_ulong>(set.rows().rows());
  // NaN stands for a missing value; no value is missing.
  KILN_XGB(XGDMatrixCreateFromMat_omp(set.rows().values().data(), count, set.columns().size(),
                                      std::numeric_limits<float>::quiet_NaN(), matrix.out(),
                                      options.threads));
  Booster booster;
  void* const matrices[] = {matrix.get()};
  KILN_XGB(XGBoosterCreate(matrices, 1, booster.out()));
  KILN_RETURN_IF_ERROR(SetParameters(booster, options));

  Forest grown = forest;
  if (grown.trees() == 0) {
    const Tree base{.left = {-1}, .right = {-1}, .column = {0}, .threshold = {set.base()}};
    KILN_RETURN_IF_ERROR(grown.Add(base));
  }
  const std::vector<float> before = grown.Predict(set.full_rows());
  std::vector<float> outputs = before, gradient(count), hessian(count);
  double reference = set.Loss(outputs);
  for (int round = 1; round <= options.max_rounds; ++round) {
    if (options.stop.stop_requested()) return Cancelled("stopped");
    set.Derive(outputs, gradient, hessian);
    KILN_XGB(
        XGBoosterBoostOneIter(booster.get(), matrix.get(), gradient.data(), hessian.data(), count));
    KILN_RETURN_IF_ERROR(TrainingOutputs(booster, matrix, before, outputs));
    if (round % options.patience != 0) continue;
    const double loss = set.Loss(outputs);
    KILN_DEBUG_LOG("costmodel", 2, "round {}: loss {}", round, loss);
    if (!(loss < reference * (1 - options.min_gain))) break;
    reference = loss;
  }
  KILN_RETURN_IF_ERROR(AddTrees(booster, set.columns(), grown));
  KILN_RETURN_IF_ERROR(CheckSame(grown, set.full_rows(), outputs));
  forest = std::move(grown);
  return OkStatus();
}

std::string XgboostVersion() {
  int major = 0, minor = 0, patch = 0;
  XGBoostVersion(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace kiln::costmodel
