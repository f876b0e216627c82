#include "base/keys/identity.h"

#include <algorithm>

#include "base/text/utf8.h"

namespace kiln {
namespace {

constexpr std::string_view kScheme = "kiln:";
// X.509 accepts no longer common name.
constexpr size_t kLongestName = 64;
constexpr size_t kShown = 80;

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool IsNameCharacter(char c) {
  return IsWordCharacter(c) || c == '.' || c == '_' || c == '-' || c == '@';
}

}  // namespace

Status CheckMemberName(std::string_view name) {
  const bool good = !name.empty() && name.size() <= kLongestName && IsWordCharacter(name.front()) &&
                    std::all_of(name.begin(), name.end(), IsNameCharacter);
  if (good) return OkStatus();
  const std::string shown = OneLine(name.substr(0, kShown));
  return InvalidArgument(
      "the name '{}' has {} characters, expected 1 to {} letters, digits and any of '._-@', with a "
      "letter or a digit first, as in box1 or alice@example.org",
      shown, name.size(), kLongestName);
}

std::string MemberUri(const Member& member) {
  return fmt::format("{}{}/{}", kScheme, RoleName(member.role), member.name);
}

StatusOr<Member> ParseMemberUri(std::string_view uri) {
  const size_t slash = uri.find('/');
  if (!uri.starts_with(kScheme) || slash == std::string_view::npos) {
    return InvalidArgument("'{}' names no member of a farm, expected {}ROLE/NAME",
                           OneLine(uri.substr(0, kShown)), kScheme);
  }
  Member member;
  KILN_ASSIGN_OR_RETURN(member.role, ParseRole(uri.substr(kScheme.size(), slash - kScheme.size())));
  member.name = uri.substr(slash + 1);
  KILN_RETURN_IF_ERROR(CheckMemberName(member.name));
  return member;
}

}  // namespace kiln
