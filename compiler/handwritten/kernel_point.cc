#include "compiler/handwritten/kernel_point.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/hash/xxh3.h"

namespace kiln::handwritten {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxPointBytes = 1 << 20;

Status Wrong(std::string_view what) {
  return InvalidArgument(
      "the parameters of a hand-written kernel: {}, expected {{\"kernel\": DIGEST, \"function\": "
      "NAME, \"parameters\": {{...}}}}",
      what);
}

bool IsDigest(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

bool IsKernelPoint(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

std::string PrintKernelPoint(const KernelPoint& point) {
  Json parameters = Json::object();
  for (const auto& [name, value] : point.values)
    std::visit([&, &key = name](const auto& v) { parameters[key] = v; }, value);
  Json json;
  json["kernel"] = point.kernel;
  json["function"] = point.function;
  json["parameters"] = std::move(parameters);
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

StatusOr<KernelPoint> ParseKernelPoint(std::string_view json) {
  if (json.size() > kMaxPointBytes) return Wrong("more than a million bytes");
  const Json parsed = Json::parse(json.begin(), json.end(), nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded() || !parsed.is_object()) return Wrong("this is no JSON object");
  KernelPoint point;
  const auto kernel = parsed.find("kernel"), function = parsed.find("function"),
             parameters = parsed.find("parameters");
  if (kernel == parsed.end() || !kernel->is_string() || !IsDigest(kernel->get<std::string>()))
    return Wrong("there is no \"kernel\" of 64 hex digits");
  if (function == parsed.end() || !function->is_string()) return Wrong("there is no \"function\"");
  if (parameters == parsed.end() || !parameters->is_object())
    return Wrong("there are no \"parameters\"");
  if (parsed.size() != 3) return Wrong("there is something else");
  point.kernel = kernel->get<std::string>();
  point.function = function->get<std::string>();
  for (const auto& [name, value] : parameters->items()) {
    const bool in_range =
        value.is_number_integer() &&
        !(value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
    if (value.is_boolean()) {
      point.values.emplace_back(name, value.get<bool>());
    } else if (in_range) {
      point.values.emplace_back(name, value.get<int64_t>());
    } else if (value.is_string()) {
      point.values.emplace_back(name, value.get<std::string>());
    } else {
      return Wrong(fmt::format("parameter \"{}\" is no whole number, flag or word", name));
    }
  }
  return point;
}

uint64_t HashKernelPoint(const KernelPoint& point) { return Xxh3(PrintKernelPoint(point)); }

std::string ValuesText(const std::vector<NamedValue>& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    const auto* const flag = std::get_if<bool>(&value);
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name,
                        flag != nullptr ? (*flag ? "true" : "false") : MacroText(value));
  }
  return text;
}

}  // namespace kiln::handwritten
