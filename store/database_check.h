// Checks a database file: is it whole, and does each row say what it should?
//
// The file is only read. A file of an older schema is copied into a temporary folder and brought up
// to date there, so that its rows can be read.
//
// Cost: each page is read twice, and each text of a record is parsed once.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "store/backup.h"

namespace kiln::store {

// The parsers of texts that the store does not understand.
struct TextChecks {
  // Returns the identity of the computation that a text form describes.
  std::function<StatusOr<std::string>(std::string_view dag)> identity;
  // Returns why the text is no list of steps, or OK.
  std::function<Status(std::string_view steps)> steps;
  // Returns why the bytes are no specification of a job, or OK.
  std::function<Status(std::string_view spec)> job_spec;
};

// Faults of one kind.
struct Finding {
  // "file", "schema", "references", "computations", "jobs", "records".
  std::string place;
  // "steps do not parse".
  std::string fault;
  int64_t count = 0;
  // The first one: "record 12: ...".
  std::string example;
  // Advice for the user.
  std::string advice;
};

struct DatabaseReport {
  // Without counts if the file is not readable.
  DatabaseSize size;
  // False: pages are damaged, and no row was read.
  bool is_readable = true;
  // Version of the schema that this program knows.
  int64_t known_schema = 0;
  std::vector<Finding> findings = {};
};

// Returns an error if the file cannot be read as a database of Kiln at all. FailedPrecondition: a
// newer Kiln made it.
StatusOr<DatabaseReport> CheckDatabaseFile(const std::string& path, const TextChecks& checks);

}  // namespace kiln::store
