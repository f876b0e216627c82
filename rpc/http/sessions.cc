#include "rpc/http/sessions.h"

#include <algorithm>
#include <utility>

#include "base/hash/digest.h"
#include "base/hash/unique_id.h"

namespace kiln {
namespace {

// 256 bits.
constexpr int kDigits = 64;

Status Refused(std::string_view what) {
  return MakeStatus(StatusCode::kUnauthenticated,
                    "{}; `kiln dashboard` prints a new address, which lets one browser in", what);
}

BrowserSessions::Options Complete(BrowserSessions::Options options) {
  if (options.random_hex == nullptr) {
    options.random_hex = [](int digits) { return UniqueId(digits); };
  }
  return options;
}

}  // namespace

BrowserSessions::BrowserSessions(Options options) : options_(Complete(std::move(options))) {}

std::string BrowserSessions::MakeToken(const Holder& holder) {
  const std::lock_guard lock(mutex_);
  return Add(tokens_, holder, options_.token_time);
}

StatusOr<std::string> BrowserSessions::Exchange(std::string_view token) {
  const std::string digest = Sha256Hex(token);
  const std::lock_guard lock(mutex_);
  const auto found = tokens_.by_digest.find(digest);
  if (found == tokens_.by_digest.end()) {
    return Refused("the token of this address was used, is too old, or is none");
  }
  const Entry entry = std::move(found->second);
  tokens_.by_digest.erase(found);
  if (options_.clock->MonotonicSeconds() >= entry.ends_s) {
    return Refused("the token of this address is too old");
  }
  return Add(sessions_, entry.holder, options_.session_time);
}

StatusOr<BrowserSessions::Holder> BrowserSessions::Find(std::string_view cookie) {
  const std::string digest = Sha256Hex(cookie);
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.by_digest.find(digest);
  if (found == sessions_.by_digest.end() ||
      options_.clock->MonotonicSeconds() >= found->second.ends_s) {
    return Refused("the session of this browser has ended");
  }
  if (options_.clock->Now() > found->second.holder.expires) {
    return Refused("the certificate for which the session of this browser was made has ended");
  }
  return found->second.holder;
}

// The map is searched by digests: how long a search takes tells nothing of a secret.
std::string BrowserSessions::Add(Entries& to, const Holder& holder, absl::Duration time) {
  MakeRoom(to, holder.name);
  std::string secret = options_.random_hex(kDigits);
  std::string digest = Sha256Hex(secret);
  to.by_age.push_back(digest);
  to.by_digest[std::move(digest)] = {
      holder, options_.clock->MonotonicSeconds() + absl::ToDoubleSeconds(time)};
  return secret;
}

void BrowserSessions::MakeRoom(Entries& in, const std::string& name) {
  DropEnded(in);
  const auto of_holder = [&](const std::string& digest) {
    const auto found = in.by_digest.find(digest);
    return found != in.by_digest.end() && found->second.holder.name == name;
  };
  auto gone = in.by_age.end();
  if (std::ranges::count_if(in.by_age, of_holder) >=
      static_cast<ptrdiff_t>(options_.max_of_holder)) {
    gone = std::ranges::find_if(in.by_age, of_holder);
  } else if (in.by_digest.size() >= options_.max) {
    gone = in.by_age.begin();
  }
  if (gone == in.by_age.end()) return;
  in.by_digest.erase(*gone);
  in.by_age.erase(gone);
}

// All entries of a list last equally long, so the oldest end first.
void BrowserSessions::DropEnded(Entries& in) {
  const double now_s = options_.clock->MonotonicSeconds();
  std::erase_if(in.by_age, [&](const std::string& digest) {
    const auto found = in.by_digest.find(digest);
    if (found == in.by_digest.end()) return true;
    if (now_s < found->second.ends_s) return false;
    in.by_digest.erase(found);
    return true;
  });
}

}  // namespace kiln
