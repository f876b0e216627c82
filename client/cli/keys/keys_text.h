// Flags and words that the commands of kiln keys share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "base/keys/authority_folder.h"

namespace CLI {
class App;
}  // namespace CLI

namespace kiln::client {

inline constexpr char kDefaultAuthority[] = "farm-keys";

// Adds --authority, with kDefaultAuthority as its default.
void AddAuthority(CLI::App& command, std::string& folder);
// Adds --days.
void AddDays(CLI::App& command, int& days);
// Adds the names, at least one.
void AddNames(CLI::App& command, std::vector<std::string>& names, std::string_view help);

// Prints what was issued and where its folder is; with `json` a line of IssuedJson.
void PrintIssued(const AuthorityFolder& folder, const Issued& issued, absl::Time now, bool json);

// Returns "valid", "ends in 12 days" for the last month, "expired", or "revoked 2026-11-29".
std::string StateText(const Issued& issued, absl::Time now);
// Returns {"name":..,"role":..,"serial":..,"begins_s":..,"ends_s":..,"revoked_s":null,"state":..}.
std::string IssuedJson(const Issued& issued, absl::Time now);

}  // namespace kiln::client
