// A file of the best records of common computations, for other machines than those that measured
// them: the records that ship with Kiln. The file is small, since it holds only what compiles a
// program and what says where its cost comes from.
//
// Format: a line "kiln-records 1 DIGEST", where 1 is the version of the format and DIGEST the
// SHA-256 of all bytes after the line; then a line for each record: a JSON object
// (docs/records.md).
//
// Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/record.h"

namespace kiln::store {

// The job of records from such a file. A record's trial is its place in the file, from 0, and its
// id is 0.
inline constexpr std::string_view kShippedJob = "shipped";

struct ShippedRecord {
  Record record = {};
  // Name of the computation, for people.
  std::string description = {};
  // Version of the code generator (compiler/codegen/generator_version.h).
  int generator = 0;
  // Version of the NVRTC that compiled the program: "12.4"; "": none did.
  std::string nvrtc = {};
};

// Returns whether a file with this beginning is a file of shipped records.
bool IsShippedFile(std::string_view beginning);

// Returns the bytes of a file. The records are known to be valid, and have their computations.
std::string WriteShippedFile(std::span<const ShippedRecord> records);

// Returns the records of a file with these bytes. FailedPrecondition: a newer Kiln has written the
// file. InvalidArgument: the bytes are no such file, or are damaged. A file of no bytes has no
// records.
StatusOr<std::vector<ShippedRecord>> ReadShippedFile(std::string_view bytes);

}  // namespace kiln::store
