#include "client/jobs/faults.h"

#include <fmt/ranges.h>

#include <cctype>
#include <charconv>
#include <string_view>

#include "proto/builder.pb.h"

namespace kiln::client {
namespace {

// Returns FAULT_NULL_STORE for "null-store".
StatusOr<v1::Fault> ParseFault(std::string_view name) {
  std::vector<std::string> known;
  for (int value = 1; v1::Fault_IsValid(value); ++value) {
    std::string word = v1::Fault_Name(static_cast<v1::Fault>(value)).substr(6);
    for (char& c : word) c = c == '_' ? '-' : static_cast<char>(std::tolower(c));
    if (word == name) return static_cast<v1::Fault>(value);
    known.push_back(word);
  }
  return InvalidArgument("unknown fault '{}', expected one of: {}", name, fmt::join(known, ", "));
}

Status AddFault(std::string_view text, v1::TuneOptions& options) {
  uint32_t trial = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), trial);
  if (error != std::errc() || end == text.data() + text.size() || *end != ':') {
    return InvalidArgument("--fault {}: expected TRIAL:FAULT, for instance 3:null-store", text);
  }
  KILN_ASSIGN_OR_RETURN(const v1::Fault fault, ParseFault({end + 1, text.data() + text.size()}));
  (*options.mutable_faults())[trial] = fault;
  return OkStatus();
}

}  // namespace

Status AddFaults(const std::vector<std::string>& faults, v1::TuneOptions& options) {
  for (const std::string& fault : faults) KILN_RETURN_IF_ERROR(AddFault(fault, options));
  return OkStatus();
}

}  // namespace kiln::client
