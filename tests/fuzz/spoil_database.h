// Spoils values of a database file, because spoiled bytes would be noticed at once.
#pragma once

#include <string>

#include "base/numbers/rng.h"
#include "base/status.h"

namespace kiln::fuzz {

// Spoils one to three values of the SQLite file: values of random columns and rows, of the schema's
// version, or of its statements.
Status SpoilDatabase(const std::string& path, Rng& rng);

}  // namespace kiln::fuzz
