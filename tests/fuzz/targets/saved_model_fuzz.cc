// Loads saved cost models. Bytes are refused, or load as a model that predicts finite scores and
// saves as bytes that load to the same. An input is taken as a whole model, as the body of a model
// with a right envelope, and as a model's file, its head, and the model in a file.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "costmodel/forest.h"
#include "costmodel/make_cost_model.h"
#include "costmodel/model_file.h"
#include "costmodel/saved_model.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"
#include "tests/fuzz/targets/round_trip.h"

namespace kiln::fuzz {
namespace {

constexpr int kMaxColumns = 1 << 10, kFeatures = 4;

void CheckForest(const costmodel::Forest& forest) {
  const costmodel::Forest loaded = CheckRoundTrip(forest, std::mem_fn(&costmodel::Forest::Save),
                                                  costmodel::Forest::Load, SameText());
  if (forest.columns() > kMaxColumns) return;
  const std::vector<float> low(static_cast<size_t>(forest.columns()), -1e30F);
  const std::vector<float> high(static_cast<size_t>(forest.columns()), 1e30F);
  const std::vector<const float*> rows = {low.data(), high.data(), low.data()};
  const std::vector<float> scores = forest.Predict(rows);
  KILN_CHECK(scores == loaded.Predict(rows));
  KILN_CHECK(scores.size() == 3 && scores[0] == scores[2]);
  for (const float score : scores) KILN_CHECK(!std::isnan(score));
}

void CheckModel(std::string_view bytes) {
  const auto model = costmodel::MakeCostModel("xgb", {.feature_version = kFeatures});
  KILN_CHECK(model.ok(), "{}", Message(model.status()));
  const Status loaded = (*model)->Load(bytes);
  if (!loaded.ok()) return CheckRefusal(loaded);
  const auto saved = (*model)->Save();
  KILN_CHECK(saved.ok(), "{}", Message(saved.status()));
  KILN_CHECK((*model)->Load(*saved).ok());
}

void CheckEnvelope(std::string_view body) {
  const costmodel::SavedModel model{
      .kind = "xgb", .feature_version = kFeatures, .samples = 7, .body = std::string(body)};
  const std::string sealed = costmodel::Seal(model);
  const auto opened = costmodel::Unseal(sealed, "xgb", kFeatures);
  KILN_CHECK(opened.ok() && opened->body == body && opened->samples == 7);
  CheckModel(sealed);
}

void CheckFile(std::string_view bytes) {
  const auto file = costmodel::ParseModelFile(bytes);
  if (!file.ok()) return CheckRefusal(file.status());
  CheckRoundTrip(*file, costmodel::PrintModelFile, costmodel::ParseModelFile);
}

void CheckHead(std::string_view text) {
  const auto info = costmodel::ParseModelInfo(text);
  if (!info.ok()) return CheckRefusal(info.status());
  CheckRoundTrip(*info, costmodel::PrintModelInfo, costmodel::ParseModelInfo, SameText());
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  const std::string_view bytes = fuzz::InputText(data, size);
  fuzz::CheckModel(bytes);
  fuzz::CheckEnvelope(bytes);
  fuzz::CheckFile(bytes);
  fuzz::CheckHead(bytes);
  fuzz::CheckFile(costmodel::PrintModelFile({.info = {}, .model = std::string(bytes)}));
  const auto forest = costmodel::Forest::Load(bytes);
  if (forest.ok()) {
    fuzz::CheckForest(*forest);
  } else {
    fuzz::CheckRefusal(forest.status());
  }
  return 0;
}
