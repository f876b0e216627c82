#include "rpc/refusal_note.h"

#include <string>
#include <utility>

#include "base/keys/certificate.h"
#include "rpc/roles.h"

namespace kiln {
namespace {

// A call is denied by its role only after its certificate was found good.
std::string MemberOf(const CallHead& head, const Status& why) {
  if (why.code() != StatusCode::kPermissionDenied || !head.certificate().has_value()) return "";
  const auto certificate = Certificate::Parse(*head.certificate(), "the caller's certificate");
  if (!certificate.ok()) return "";
  const auto member = certificate->GetMember();
  return member.ok() ? member->name : "";
}

}  // namespace

CallerCheck NoteRefusals(CallerCheck check, RefusalNote note) {
  if (check == nullptr) return nullptr;
  return [check = std::move(check), note = std::move(note)](const CallHead& head) {
    Status status = check(head);
    if (status.code() == StatusCode::kUnauthenticated ||
        status.code() == StatusCode::kPermissionDenied) {
      note(MemberOf(head, status), CallName(head.method()), status);
    }
    return status;
  };
}

}  // namespace kiln
