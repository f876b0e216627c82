#include "scheduler/service/audit.h"

#include "base/log.h"
#include "base/text/utf8.h"

namespace kiln::scheduler {
namespace {

// Texts that callers choose are cut to this many bytes.
constexpr size_t kShownBytes = 256;

}  // namespace

void Audit::Add(std::string_view user, std::string_view call, std::string_view subject,
                const Status& result) {
  store::AuditRow row;
  row.at_ms = absl::ToUnixMillis(clock_.Now());
  row.user = OneLine(user.substr(0, kShownBytes));
  row.call = call;
  row.subject = OneLine(subject.substr(0, kShownBytes));
  if (!result.ok()) {
    const std::string why(Message(result));
    row.refused =
        why.empty() ? "refused" : OneLine(std::string_view(why).substr(0, 4 * kShownBytes));
  }
  const Status kept = store_.AddAudit(row, kKept);
  if (kept.ok()) return;
  LogWarn("'{}' called {} for {}{}{}; the database does not keep it: {}", row.user, row.call,
          row.subject, row.refused.empty() ? "" : ", refused: ", row.refused, Message(kept));
}

}  // namespace kiln::scheduler
