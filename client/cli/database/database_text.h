// Check of a database file with all parsers of its texts, and the report for people.
#pragma once

#include <string>

#include "base/status.h"
#include "client/session.h"
#include "store/database_check.h"

namespace kiln::client {

// Errors: store/database_check.h.
StatusOr<store::DatabaseReport> CheckAllOf(const std::string& path);

// Prints a table of the findings, or that there are none; with session.json a line for each.
void PrintReport(const store::DatabaseReport& report, const std::string& path,
                 const Session& session);

}  // namespace kiln::client
