// The database schema of Kiln, described in docs/records.md.
#pragma once

#include <cstdint>
#include <span>

namespace kiln::store {

// PRAGMA application_id: "KILN" in ASCII. `file kiln.db` prints it.
inline constexpr int32_t kApplicationId = 0x4b494c4e;

// SQL scripts: entry v makes schema v + 1 of schema v. Never edit an entry that was released;
// append one.
std::span<const char* const> Migrations();

}  // namespace kiln::store
