// The flags of the records that ship with Kiln, for commands that choose programs by records, and
// what such commands print about them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/archive.h"
#include "client/shipped/default_records.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

// Adds --no-default-records and --default-records.
void AddDefaultRecords(CLI::App& command, DefaultRecords& defaults);

// Returns a line for each shipped record among these: what measured it. "": there is none.
std::string ShippedLines(const std::vector<v1::Record>& records, const DefaultRecords& defaults);

// Does the same for names of records, "shipped/3", in one line: how many kernels have such records.
StatusOr<std::string> ShippedKernelsLine(const std::vector<std::string>& records,
                                         const DefaultRecords& defaults);

}  // namespace kiln::client
