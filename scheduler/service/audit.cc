#include "scheduler/service/audit.h"

#include <utility>

#include "base/log.h"
#include "base/text/utf8.h"

namespace kiln::scheduler {
namespace {

// Texts that callers choose are cut to this many bytes.
constexpr size_t kShownBytes = 256;

}  // namespace

store::AuditRow Audit::Row(std::string_view user, std::string_view call, std::string_view subject,
                           const Status& result) const {
  store::AuditRow row;
  row.at_ms = absl::ToUnixMillis(clock_.Now());
  row.user = OneLine(user.substr(0, kShownBytes));
  row.call = call;
  row.subject = OneLine(subject.substr(0, kShownBytes));
  if (result.ok()) return row;
  const std::string why(Message(result));
  row.refused = why.empty() ? "refused" : OneLine(std::string_view(why).substr(0, 4 * kShownBytes));
  return row;
}

void Audit::Add(std::string_view user, std::string_view call, std::string_view subject,
                const Status& result) {
  Flush();
  const store::AuditRow row = Row(user, call, subject, result);
  if (!result.ok()) {
    const std::lock_guard lock(mutex_);
    if (!refusals_.Count(row.user, clock_.Now())) return;
  }
  Write(row);
}

void Audit::NoteRefused(std::string_view user, std::string_view call, const Status& why) {
  store::AuditRow row = Row(user, call, "", why);
  const std::lock_guard lock(mutex_);
  NoteRests();
  if (refusals_.Count(row.user, clock_.Now())) Note(std::move(row));
}

void Audit::Flush() {
  std::deque<store::AuditRow> rows;
  {
    const std::lock_guard lock(mutex_);
    NoteRests();
    rows.swap(noted_);
  }
  for (const store::AuditRow& row : rows) Write(row);
}

void Audit::NoteRests() {
  for (const RefusalLimit::Rest& rest : refusals_.TakeEnded(clock_.Now())) {
    store::AuditRow row = Row(rest.user, "", "", OkStatus());
    row.refused =
        fmt::format("further refusals in the {} minutes from {} on: {}",
                    absl::ToInt64Minutes(RefusalLimit::kWindow),
                    absl::FormatTime("%H:%M UTC", rest.since, absl::UTCTimeZone()), rest.refusals);
    Note(std::move(row));
  }
}

void Audit::Note(store::AuditRow row) {
  if (noted_.size() < kMostNoted) noted_.push_back(std::move(row));
}

void Audit::Write(const store::AuditRow& row) {
  const Status kept = store_.AddAudit(row, kKept);
  if (kept.ok()) return;
  LogWarn("'{}' called {} for {}{}{}; the database does not keep it: {}", row.user, row.call,
          row.subject, row.refused.empty() ? "" : ", refused: ", row.refused, Message(kept));
}

}  // namespace kiln::scheduler
