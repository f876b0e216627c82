// The envelope of a saved model: states its kind and version, and detects damage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::costmodel {

struct SavedModel {
  std::string kind;         // the model's name
  int feature_version = 0;  // meaning of the columns; 0: the model reads none
  uint64_t samples = 0;     // number of samples that it was trained on
  std::string body;
};

std::string Seal(const SavedModel& model);
// DataLoss if the bytes are no saved model, or damaged. FailedPrecondition if they are a model of
// another kind or feature version.
StatusOr<SavedModel> Unseal(std::string_view bytes, std::string_view kind, int feature_version);

}  // namespace kiln::costmodel
