// A configuration file of our daemons, in TOML: a table for each daemon, and in it a key for each
// flag that is a setting, under the flag's name without its dashes.
//
//   [runner]
//   device = "cuda"
//   threads = 4
//
// Everything comes from the flags of CLI11: names, types, checks, defaults and help. A flag that is
// no setting (--once) is marked with configurable(false). All functions belong to main's thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace CLI {
class App;
}

namespace kiln {

struct ConfigFile {
  std::string path;
  std::string text;
};

// Reads a file of at most 1 MiB. The error names the path and the system's reason.
StatusOr<ConfigFile> ReadConfigFile(const std::string& path);

// Gives each option of `app` that was not on the command line its value from the file's table
// `table`. Called after the parse. A file without that table changes nothing. `tables` are those
// that a file may have. An empty text stands for no value where the option has no default.
//
// InvalidArgument, with path, line, what was found and what is expected, if the text is no TOML, or
// has a table that is not in `tables`, or if `table` has an unknown key or a value of a wrong type
// or outside of its range. Keys of the other tables are not looked at.
Status ApplyConfig(const ConfigFile& file, std::span<const std::string_view> tables,
                   std::string_view table, CLI::App& app);

// Returns the table of a file with each setting of `app`: its help as comments and its default.
std::string DefaultConfig(std::string_view table, const CLI::App& app);

}  // namespace kiln
