#include "costmodel/saved_model.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/hash/digest.h"

namespace kiln::costmodel {
namespace {

// A saved model is "kiln-model 2 KIND FEATURES SAMPLES DIGEST\n" and the body. The digest covers
// all but itself.
constexpr std::string_view kMagic = "kiln-model";
constexpr int kVersion = 2;

std::string Head(const SavedModel& model) {
  return fmt::format("{} {} {} {} {}", kMagic, kVersion, model.kind, model.feature_version,
                     model.samples);
}

std::string Digest(const std::string& head, std::string_view body) {
  return fmt::format("{:016x}", Xxh3(body, Xxh3(head)));
}

template <typename T>
bool Parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string Seal(const SavedModel& model) {
  const std::string head = Head(model);
  return fmt::format("{} {}\n{}", head, Digest(head, model.body), model.body);
}

StatusOr<SavedModel> Unseal(std::string_view bytes, std::string_view kind, int feature_version) {
  const size_t line = bytes.find('\n');
  std::vector<std::string_view> words;
  for (std::string_view rest = bytes.substr(0, std::min<size_t>(line, 256)); !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    words.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (line == std::string_view::npos || words.size() != 6 || words[0] != kMagic) {
    return DataLoss("these {} bytes are no saved cost model", bytes.size());
  }
  int version = 0;
  SavedModel model;
  model.kind = words[2];
  if (!Parse(words[1], version) || !Parse(words[3], model.feature_version) ||
      !Parse(words[4], model.samples)) {
    return DataLoss("the first line of the saved cost model is damaged");
  }
  if (version != kVersion) {
    return FailedPrecondition("the saved cost model has version {}, expected {}; train a new one",
                              version, kVersion);
  }
  model.body = bytes.substr(line + 1);
  if (Digest(Head(model), model.body) != words[5]) {
    return DataLoss("the saved cost model is damaged: its checksum differs");
  }
  if (model.kind != kind) {
    return FailedPrecondition("the saved cost model is of kind {}, expected {}", model.kind, kind);
  }
  if (model.feature_version != feature_version) {
    return FailedPrecondition(
        "the saved cost model reads features of version {}, expected {}; train a new one",
        model.feature_version, feature_version);
  }
  return model;
}

}  // namespace kiln::costmodel
