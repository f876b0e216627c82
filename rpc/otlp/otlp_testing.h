// Reads requests of OTLP for tests.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace kiln {

// Returns the request in OTLP's JSON encoding: ids as hex digits, 64-bit numbers as texts. Throws
// std::runtime_error for bytes that are no such request, and for a field that kiln does not send.
nlohmann::json OtlpJson(const std::string& request);

// Returns the spans of the request's one resource and scope.
nlohmann::json OtlpSpansIn(const std::string& request);

}  // namespace kiln
