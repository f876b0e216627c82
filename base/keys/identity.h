// Members of a farm, and how a certificate names one.
#pragma once

#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/keys/role.h"
#include "base/status.h"

namespace kiln {

// A name with its role.
struct Member {
  std::string name;
  Role role = Role::kRead;
  friend bool operator==(const Member&, const Member&) = default;
};

// A member whose certificate was verified.
struct Identity {
  std::string name;
  Role role = Role::kRead;
  // Serial number of the certificate, kSerialDigits lower-case hex digits.
  std::string serial;
  // End of the certificate.
  absl::Time expires;
  friend bool operator==(const Identity&, const Identity&) = default;
};

inline constexpr int kSerialDigits = 20;

// The name of all daemons in their certificates. A client asks for it, whatever the address is that
// it connects to, so the usual check of a host's name finds out that the server is a daemon.
inline constexpr char kDaemonHost[] = "daemon.kiln.internal";

// OK for 1 to 64 letters, digits and "._-@", the first of which is a letter or a digit. Such a name
// is a file name and a word of a shell. InvalidArgument otherwise.
Status CheckMemberName(std::string_view name);

// Returns "kiln:submit/alice", which stands in the certificate as a URI.
std::string MemberUri(const Member& member);
// Parses what MemberUri prints. InvalidArgument for another text.
StatusOr<Member> ParseMemberUri(std::string_view uri);

}  // namespace kiln
