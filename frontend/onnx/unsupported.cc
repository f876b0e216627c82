#include "frontend/onnx/unsupported.h"

#include <algorithm>

namespace kiln::frontend {
namespace {

struct Reason {
  // Part of the operator's name.
  std::string_view part;
  std::string_view text;
};

// The first reason whose part occurs in the name counts.
constexpr Reason kReasons[] = {
    {"String", "Kiln has no strings"},
    {"Regex", "Kiln has no strings"},
    {"Sequence", "Kiln has tensors, no sequences: export the network with a fixed number of them"},
    {"Optional", "Kiln has tensors, no optional values"},
    {"Random", "it draws at random: export the network for inference"},
    {"Bernoulli", "it draws at random: export the network for inference"},
    {"Multinomial", "it draws at random: export the network for inference"},
    {"ImageDecoder",
     "Kiln computes with tensors and has no decoders of JPEG, PNG and other files: decode images "
     "before "
     "they are given to the network, with an image library, and make the pixels its input"},
};

}  // namespace

std::string WhyUnsupported(std::string_view domain, std::string_view op) {
  if (domain == "ai.onnx.ml") return std::string("Kiln has no operators of classical learning");
  if (domain.ends_with(".training")) return std::string("Kiln does not train networks");
  if (domain.starts_with("ai.onnx.")) {
    return std::string(
        "a preview of ONNX, whose meaning may still change: export it as operators of ai.onnx");
  }
  if (!domain.empty()) {
    return fmt::format(
        "an operator of another domain than ONNX's, {}: export the network with standard operators",
        domain);
  }
  for (const Reason& reason : kReasons)
    if (op.find(reason.part) != std::string_view::npos) return std::string(reason.text);
  return std::string("Kiln does not have this operator");
}

void UnsupportedList::Add(std::string what, std::string where, std::string reason) {
  const auto [it, is_new] = index_.emplace(std::pair(what, reason), entries_.size());
  if (is_new) {
    entries_.push_back({std::move(what), std::move(where), std::move(reason)});
  } else {
    ++entries_[it->second].count;
  }
}

Status UnsupportedList::ToStatus() const {
  std::string text =
      entries_.size() == 1
          ? std::string("the model needs what Kiln does not have:")
          : fmt::format("the model needs {} things that Kiln does not have:", entries_.size());
  for (size_t i = 0; i < std::min(entries_.size(), kMaxLines); ++i) {
    const Entry& e = entries_[i];
    text += fmt::format("\n  {}", e.what);
    if (!e.where.empty()) text += fmt::format(" at '{}'", e.where);
    if (e.count > 1) text += fmt::format(" and {} more", e.count - 1);
    text += fmt::format(": {}", e.reason);
  }
  if (entries_.size() > kMaxLines)
    text += fmt::format("\n  and {} more", entries_.size() - kMaxLines);
  return Unimplemented("{}", text);
}

}  // namespace kiln::frontend
