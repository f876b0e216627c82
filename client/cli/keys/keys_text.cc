#include "client/cli/keys/keys_text.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/text/counted.h"
#include "base/text/shell_word.h"

namespace kiln::client {
namespace {

constexpr absl::Duration kDay = absl::Hours(24);
constexpr int64_t kSoonDays = 30;

std::string DateText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d", time, absl::UTCTimeZone());
}

}  // namespace

void AddAuthority(CLI::App& command, std::string& folder) {
  command.add_option("--authority", folder, "the folder of the farm's authority")
      ->type_name("FOLDER")
      ->capture_default_str();
}

void AddDays(CLI::App& command, int& days) {
  command
      .add_option("--days", days,
                  fmt::format("how long the certificate holds, 1 to {} days", kMostDays))
      ->type_name("N")
      ->capture_default_str();
}

void AddNames(CLI::App& command, std::vector<std::string>& names, std::string_view help) {
  command.add_option("names", names, std::string(help))->required()->type_name("NAME");
}

void PrintIssued(const AuthorityFolder& folder, const Issued& issued, absl::Time now, bool json) {
  if (json) {
    fmt::print("{}\n", IssuedJson(issued, now));
    return;
  }
  const Identity& who = issued.identity;
  fmt::print("{} has the role {} until {}; its key is in the folder {}\n", who.name,
             RoleName(who.role), DateText(who.expires), ShellWord(folder.FolderOf(who.name)));
}

std::string StateText(const Issued& issued, absl::Time now) {
  if (issued.revoked.has_value()) return fmt::format("revoked {}", DateText(*issued.revoked));
  if (now > issued.identity.expires) return "expired";
  const int64_t days = (issued.identity.expires - now) / kDay;
  if (days >= kSoonDays) return "valid";
  return fmt::format("ends in {}", Counted(days, "day"));
}

std::string IssuedJson(const Issued& issued, absl::Time now) {
  const Identity& who = issued.identity;
  // Names and serial numbers have no characters that JSON escapes.
  return fmt::format(
      "{{\"name\":\"{}\",\"role\":\"{}\",\"serial\":\"{}\",\"begins_s\":{},\"ends_s\":{},"
      "\"revoked_s\":{},\"state\":\"{}\"}}",
      who.name, RoleName(who.role), who.serial, absl::ToUnixSeconds(issued.begins),
      absl::ToUnixSeconds(who.expires),
      issued.revoked.has_value() ? fmt::format("{}", absl::ToUnixSeconds(*issued.revoked)) : "null",
      StateText(issued, now));
}

}  // namespace kiln::client
