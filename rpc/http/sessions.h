// Lets browsers in: a browser has no certificate of the farm, and shows a cookie instead.
//
//   MakeToken     a caller whom the farm knows gets a token, which goes into the address of a page
//   Exchange      the browser that opens the address gets a cookie for the token, once
//   Find          the cookie stands for the caller, until it ends
//
// A cookie stands for the role `read`, whatever the caller's own role is.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"

namespace kiln {

// Thread-safe. Tokens and cookies live in memory alone and end with the process; only their
// digests are kept.
class BrowserSessions {
 public:
  struct Options {
    // Outlives the object.
    Clock* clock = &Clock::Real();
    // Returns that many random hex digits. Null: the kernel's (base/hash/unique_id.h).
    std::function<std::string(int digits)> random_hex = nullptr;
    absl::Duration token_time = absl::Minutes(1);
    absl::Duration session_time = absl::Hours(12);
    // Most tokens, and most sessions. A new one takes the place of the oldest: of the oldest of its
    // own holder, if that one has max_of_holder.
    size_t max = 1'000;
    size_t max_of_holder = 20;
  };

  // The user who gets in.
  struct Holder {
    // The name in the certificate; "" where the farm has no keys.
    std::string name = {};
    // The serial number of the certificate, whose revocation ends the session; "" = none.
    std::string serial = {};
    // End of the certificate.
    absl::Time expires = absl::InfiniteFuture();
  };

  explicit BrowserSessions(Options options);

  // Returns a token of 256 random bits as hex digits, which is valid for token_time, once.
  std::string MakeToken(const Holder& holder);
  // Returns the value of a new cookie for a token. Unauthenticated, with the command that makes a
  // new token, for another text, a token that was used, and one whose time is over.
  StatusOr<std::string> Exchange(std::string_view token);
  // Returns whom the cookie stands for. Unauthenticated if it is none or has ended.
  StatusOr<Holder> Find(std::string_view cookie);

  absl::Duration token_time() const { return options_.token_time; }
  absl::Duration session_time() const { return options_.session_time; }

 private:
  struct Entry {
    Holder holder;
    double ends_s = 0;
  };
  // Tokens or sessions, by the digests of their secrets.
  struct Entries {
    std::map<std::string, Entry, std::less<>> by_digest;
    // Oldest first. Digests of entries that have gone may remain until their time is over.
    std::deque<std::string> by_age;
  };

  std::string Add(Entries& to, const Holder& holder, absl::Duration time);
  void MakeRoom(Entries& in, const std::string& name);
  void DropEnded(Entries& in);

  const Options options_;
  std::mutex mutex_;
  // Both are guarded by mutex_.
  Entries tokens_;
  Entries sessions_;
};

}  // namespace kiln
