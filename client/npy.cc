#include "client/npy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "base/file/file.h"
#include "base/numbers/integers.h"

namespace kiln::client {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct Row {
  std::string_view dtype, descr;
  int64_t bytes;
};
constexpr std::array kTypes = {
    Row{"float64", "<f8", 8}, Row{"float32", "<f4", 4}, Row{"float16", "<f2", 2},
    Row{"int64", "<i8", 8},   Row{"int32", "<i4", 4},   Row{"int16", "<i2", 2},
    Row{"int8", "|i1", 1},    Row{"uint64", "<u8", 8},  Row{"uint32", "<u4", 4},
    Row{"uint16", "<u2", 2},  Row{"uint8", "|u1", 1},   Row{"bool", "|b1", 1}};

// Element types that the ml_dtypes package adds to numpy. A file says little about them but their
// size: the package's float4 and its small integers look like float8_e4m3fn.
constexpr std::array kAddedTypes = {Row{"bfloat16", "<V2", 2},      Row{"bfloat16", "|V2", 2},
                                    Row{"float8_e4m3fn", "<V1", 1}, Row{"float8_e4m3fn", "|V1", 1},
                                    Row{"float8_e5m2", "<f1", 1},   Row{"float8_e5m2", "|f1", 1}};

const Row* FindDescr(std::string_view quoted) {
  const auto has_descr = [&](const Row& row) { return quoted == fmt::format("'{}'", row.descr); };
  if (const auto row = std::ranges::find_if(kTypes, has_descr); row != kTypes.end()) return &*row;
  const auto added = std::ranges::find_if(kAddedTypes, has_descr);
  return added == kAddedTypes.end() ? nullptr : &*added;
}

// Returns the text after 'key': in the header, up to the next comma or brace outside of brackets.
std::optional<std::string_view> ValueOf(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = header.substr(at + key.size() + 3);
  int depth = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] == '(') ++depth;
    if (rest[i] == ')') --depth;
    if (depth != 0 || (rest[i] != ',' && rest[i] != '}')) continue;
    rest = rest.substr(0, i);
    break;
  }
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  while (rest.ends_with(' ')) rest.remove_suffix(1);
  return rest;
}

// Parses a shape: "(1, 224, 224, 3)", "(5,)", "()".
std::optional<std::vector<int64_t>> ParseShape(std::string_view text) {
  if (!text.starts_with('(') || !text.ends_with(')')) return std::nullopt;
  text = text.substr(1, text.size() - 2);
  std::vector<int64_t> shape;
  while (!text.empty()) {
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), extent);
    if (error != std::errc() || extent < 0 || shape.size() >= 32) return std::nullopt;
    shape.push_back(extent);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    while (text.starts_with(',') || text.starts_with(' ')) text.remove_prefix(1);
  }
  return shape;
}

// Returns the header. Version 1 has its length in two bytes, later versions in four.
StatusOr<std::string_view> HeaderOf(std::string_view content, size_t& data) {
  if (!content.starts_with(kMagic) || content.size() < 12)
    return InvalidArgument("is not a .npy file: its first bytes are not those of one");
  const int version = content[6];
  const size_t start = version == 1 ? 10 : 12;
  size_t length = 0;
  for (size_t i = start; i-- > 8;) length = length << 8 | static_cast<unsigned char>(content[i]);
  if (length > content.size() - start)
    return InvalidArgument("ends in its header of {} bytes", length);
  data = start + length;
  return content.substr(start, length);
}

StatusOr<NpyArray> Parse(std::string_view content) {
  size_t data = 0;
  KILN_ASSIGN_OR_RETURN(const std::string_view header, HeaderOf(content, data));
  const auto descr = ValueOf(header, "descr"), order = ValueOf(header, "fortran_order"),
             shape_text = ValueOf(header, "shape");
  if (!descr || !order || !shape_text) return InvalidArgument("has a header that cannot be parsed");
  if (*order != "False")
    return InvalidArgument("is in Fortran order, expected C: numpy.ascontiguousarray changes it");
  const auto shape = ParseShape(*shape_text);
  if (!shape) return InvalidArgument("has the shape {}, expected extents", *shape_text);
  const Row* const row = FindDescr(*descr);
  if (row == nullptr) {
    return InvalidArgument(
        "has elements of {}, expected one of float64, float32, float16, int64, int32, int16, int8, "
        "uint64, uint32, uint16, uint8, bool, little-endian, or bfloat16 and 8-bit floats of "
        "ml_dtypes",
        *descr);
  }
  const int64_t bytes = MultiplyCounts(ProductOfCounts(*shape), row->bytes);
  const std::string_view elements = content.substr(data);
  if (static_cast<int64_t>(elements.size()) != bytes) {
    return InvalidArgument("has {} bytes of elements, its shape [{}] of {} needs {}",
                           elements.size(), fmt::join(*shape, ", "), row->dtype, bytes);
  }
  NpyArray array{.dtype = std::string(row->dtype), .shape = *shape, .bytes = {}};
  array.bytes.resize(elements.size());
  if (!elements.empty()) std::memcpy(array.bytes.data(), elements.data(), elements.size());
  return array;
}

}  // namespace

StatusOr<NpyArray> ReadNpy(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const std::string content, ReadFile(path));
  StatusOr<NpyArray> array = Parse(content);
  if (!array.ok()) return InvalidArgument("{} {}", path, std::string(array.status().message()));
  return array;
}

std::string_view NpyDtype(std::string_view dtype) {
  if (dtype == "bfloat16") return "uint16";
  return dtype == "float8_e4m3fn" || dtype == "float8_e5m2" ? "uint8" : dtype;
}

Status WriteNpy(const std::string& path, const NpyArray& array) {
  for (const Row& row : kTypes) {
    if (row.dtype != NpyDtype(array.dtype)) continue;
    std::string header =
        fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", row.descr,
                    fmt::join(array.shape, ", "), array.shape.size() == 1 ? "," : "");
    // Elements begin at a multiple of 64 bytes.
    header.resize(static_cast<size_t>(RoundUp(static_cast<int64_t>(header.size()) + 11, 64)) - 11,
                  ' ');
    header += '\n';
    std::string content(kMagic);
    content += std::string("\x01\x00", 2);
    content += static_cast<char>(header.size() & 0xff);
    content += static_cast<char>(header.size() >> 8);
    content += header;
    content.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
    return WriteFile(path, content);
  }
  return InvalidArgument("{}: unknown type {}", path, array.dtype);
}

}  // namespace kiln::client
