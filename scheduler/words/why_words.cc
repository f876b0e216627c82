#include "scheduler/words/why_words.h"

#include <fmt/format.h>

#include "absl/strings/str_replace.h"

namespace kiln {
namespace {

constexpr WhyWords kWords[] = {
    {WhyKind::kSucceeded, "succeeded", "job {job} has ended: {ending}",
     "`kiln best {job}` shows its programs"},
    {WhyKind::kFailed, "failed", "job {job} has failed: {message}",
     "mend the cause; `kiln tune --resume {job}` then goes on with the results that it has"},
    {WhyKind::kCancelled, "cancelled", "job {job} was cancelled, after {trials}",
     "`kiln tune --resume {job}` goes on with the results that it has"},
    {WhyKind::kPaused, "paused", "job {job} is paused, after {trials}, and takes no device",
     "`kiln tune --resume {job}` goes on with the results that it has"},
    {WhyKind::kProcess, "process",
     "job {job} needs a process of {user} that answers for a part of the search: it {phase}",
     "start the program again that submitted the job, or call `client.serve(\"{job}\", ...)`"},
    {WhyKind::kResults, "results", "job {job} {phase}",
     "wait: it takes these results, and a device only for what they lack; `kiln tune "
     "--no-warm-start` tunes all the same"},
    {WhyKind::kQueue, "queue",
     "job {job} is number {place} of {queued} in the queue by priority and age; the scheduler runs "
     "{running}, and takes another when one of them ends: among equal priorities the users who "
     "have had less go first",
     "wait; or cancel a job that nobody needs; or submit with a --priority above {highest}"},
    {WhyKind::kNext, "next", "job {job} is the first in the queue, and nothing runs",
     "the scheduler takes it within a second; if it does not, it was started with --unfinished and "
     "leaves the job: `kiln tune --resume {job}`"},
    {WhyKind::kNoDevice, "no-device", "job {job} asks for a device '{key}', and no runner has one",
     "start `kiln runner` on a machine with such a device; or submit with a --device that "
     "`kiln workers` lists"},
    {WhyKind::kStopped, "stopped",
     "job {job} waits for a {device} '{key}': an operator has stopped {workers}",
     "ask the operator; `kiln workers resume NAME` lets a worker serve again"},
    {WhyKind::kQuarantined, "quarantined",
     "job {job} waits for a {device} '{key}': {workers} quarantined, because the device is not "
     "well",
     "wait: the runner probes its device, and serves again when it is well; start the runner anew "
     "if the device has become slower for good"},
    {WhyKind::kOutsideHours, "hours",
     "job {job} waits for a {device} '{key}': {workers} paused outside of set hours",
     "wait for these hours; or start the runner with other --hours, or one on another machine"},
    {WhyKind::kBusy, "busy", "job {job} waits for a device '{key}': all {slots} are busy",
     "wait: devices go to the highest --priority first, and then to the user who has had the "
     "least; or start "
     "`kiln runner` on another machine"},
    {WhyKind::kDeviceLimit, "device-limit",
     "job {job} waits for a device: {user} has {devices}, and may have {limit} at once",
     "wait for another job of {user}, or cancel one; an admin raises the limit by `kiln users set "
     "{user} "
     "--devices N`"},
    {WhyKind::kNoBuilder, "no-builder",
     "job {job} has trials to build, and no builder serves '{key}'",
     "start `kiln builder` on any machine of the farm"},
    {WhyKind::kBuilders, "builders",
     "job {job} is slowed by builds: all {slots} of builders for '{key}' are busy, and {pending} "
     "more",
     "start `kiln builder` on another machine, or with more --jobs"},
    {WhyKind::kReference, "reference",
     "job {job} has no result yet: the unscheduled loops of each task run first, because "
     "candidates "
     "are compared with their outputs",
     "wait: loops that take longer than --reference-limit, {limit} s here, are run for a sample of "
     "the outputs"},
    {WhyKind::kLastReadings, "last-readings", "job {job} is near its end: {phase}",
     "wait; a job with --finalists 0 leaves the last readings out"},
    {WhyKind::kFailing, "failing",
     "job {job} has done {trials}, and at least half of them failed: {counts}",
     "`kiln jobs {job}` lists them, each with the command that repeats it alone"},
    {WhyKind::kWaits, "waits", "job {job} stands still: {message}",
     "mend what the sentence names; the job goes on by itself"},
    {WhyKind::kShare, "share",
     "job {job} runs on a device of which it may take a part of the time: {pace}",
     "wait; or start the runner with a larger --share"},
    {WhyKind::kRunning, "running", "job {job} runs: {pace}", "nothing holds it up"},
};

}  // namespace

std::span<const WhyWords> AllWhyWords() { return kWords; }

const WhyWords& WordsOf(WhyKind kind) { return kWords[static_cast<size_t>(kind)]; }

std::string Filled(std::string_view text, const WhyValues& values) {
  std::vector<std::pair<std::string, std::string>> replacements;
  for (const auto& [name, value] : values) {
    replacements.emplace_back(fmt::format("{{{}}}", name), value);
  }
  return absl::StrReplaceAll(std::string(text), replacements);
}

}  // namespace kiln
