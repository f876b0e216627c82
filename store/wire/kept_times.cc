#include "store/wire/kept_times.h"

#include <array>
#include <cstdint>
#include <optional>

namespace kiln::store {
namespace {

// Field 15, a string of bytes.
constexpr char kInstantsTag = 15 << 3 | 2;
// The tag of a double in one of the fields 1 to 14 is one byte, and the double takes 8.
constexpr size_t kDoubleBytes = 9;

using Instants = std::array<int64_t, 6>;

Instants ValuesOf(const v1::TrialInstants& m) {
  return {m.chosen_us(),   m.build_sent_us(),   m.build_received_us(),
          m.run_sent_us(), m.run_received_us(), m.committed_us()};
}

v1::TrialInstants MessageOf(const Instants& values) {
  v1::TrialInstants message;
  message.set_chosen_us(values[0]);
  message.set_build_sent_us(values[1]);
  message.set_build_received_us(values[2]);
  message.set_run_sent_us(values[3]);
  message.set_run_received_us(values[4]);
  message.set_committed_us(values[5]);
  return message;
}

// Appends a number of any sign in the base-128 form of Protocol Buffers; small ones take few bytes.
void AppendNumber(int64_t value, std::string& out) {
  uint64_t bits = (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
  for (; bits >= 0x80; bits >>= 7) out.push_back(static_cast<char>(bits | 0x80));
  out.push_back(static_cast<char>(bits));
}

// Takes a number from the front of `bytes`; none if they end before it does.
std::optional<int64_t> TakeNumber(std::string_view& bytes) {
  uint64_t bits = 0;
  for (size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = static_cast<uint8_t>(bytes[i]);
    bits |= static_cast<uint64_t>(byte & 0x7f) << (7 * i);
    if ((byte & 0x80) != 0) continue;
    bytes.remove_prefix(i + 1);
    return static_cast<int64_t>((bits >> 1) ^ (~(bits & 1) + 1));
  }
  return std::nullopt;
}

// The distance of two instants; unsigned, because two numbers that a stranger wrote may be far
// apart.
int64_t Distance(int64_t to, int64_t from) {
  return static_cast<int64_t>(static_cast<uint64_t>(to) - static_cast<uint64_t>(from));
}

int64_t After(int64_t from, int64_t distance) {
  return static_cast<int64_t>(static_cast<uint64_t>(from) + static_cast<uint64_t>(distance));
}

std::optional<v1::TrialInstants> ReadInstants(std::string_view bytes) {
  if (bytes.size() < 3 || bytes[0] != kInstantsTag) return std::nullopt;
  const auto size = static_cast<uint8_t>(bytes[1]), known = static_cast<uint8_t>(bytes[2]);
  if (bytes.size() != size_t{2} + size) return std::nullopt;
  bytes.remove_prefix(3);
  Instants values{};
  int64_t last = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if ((known >> i & 1) == 0) continue;
    const auto distance = TakeNumber(bytes);
    if (!distance.has_value()) return std::nullopt;
    values[i] = last = After(last, *distance);
  }
  if (known >> values.size() != 0 || !bytes.empty()) return std::nullopt;
  return MessageOf(values);
}

}  // namespace

void AppendInstants(const v1::TrialInstants& instants, std::string& times) {
  const Instants values = ValuesOf(instants);
  std::string body(1, '\0');
  int64_t last = 0;
  uint8_t known = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 0) continue;
    known = static_cast<uint8_t>(known | 1u << i);
    AppendNumber(Distance(values[i], last), body);
    last = values[i];
  }
  if (known == 0) return;
  body[0] = static_cast<char>(known);
  times.push_back(kInstantsTag);
  times.push_back(static_cast<char>(body.size()));  // at most 61
  times += body;
}

std::string PrintTimes(const v1::TrialTimes& times, const v1::TrialInstants& instants) {
  std::string bytes = times.SerializeAsString();
  AppendInstants(instants, bytes);
  return bytes;
}

void ReadTimes(std::string_view bytes, v1::TrialResult& result) {
  result.clear_times();
  result.clear_instants();
  size_t end = 0;
  while (end < bytes.size() && bytes[end] != kInstantsTag) end += kDoubleBytes;
  if (end < bytes.size()) {
    std::optional<v1::TrialInstants> instants = ReadInstants(bytes.substr(end));
    if (!instants.has_value()) return;
    *result.mutable_instants() = *std::move(instants);
    bytes = bytes.substr(0, end);
  }
  if (bytes.empty()) return;
  if (!result.mutable_times()->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    result.clear_times();
  }
}

}  // namespace kiln::store
