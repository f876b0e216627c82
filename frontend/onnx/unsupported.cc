#include "frontend/onnx/unsupported.h"

#include <algorithm>

namespace kiln::frontend {

void UnsupportedList::Add(std::string what, std::string where, std::string reason) {
  const auto found = std::ranges::find_if(
      entries_, [&](const Entry& e) { return e.what == what && e.reason == reason; });
  if (found != entries_.end()) {
    ++found->count;
    return;
  }
  entries_.push_back({std::move(what), std::move(where), std::move(reason)});
}

Status UnsupportedList::ToStatus() const {
  std::string text =
      entries_.size() == 1
          ? std::string("the model needs what Kiln does not have:")
          : fmt::format("the model needs {} things that Kiln does not have:", entries_.size());
  for (const Entry& e : entries_) {
    text += fmt::format("\n  {}", e.what);
    if (!e.where.empty()) text += fmt::format(" at '{}'", e.where);
    if (e.count > 1) text += fmt::format(" and {} more", e.count - 1);
    text += fmt::format(": {}", e.reason);
  }
  return Unimplemented("{}", text);
}

}  // namespace kiln::frontend
