// Reads logs of measure records and of autotvm. Each line is read, or refused by its number, and a
// line that was read prints as a line that reads the same. A log goes into a store, out of it and
// in again without a difference.
#include <algorithm>
#include <memory>
#include <string>

#include "compiler/schedule/fit.h"
#include "compiler/schedule/step.h"
#include "store/distill.h"
#include "store/import_log.h"
#include "store/measure_log.h"
#include "store/memory_store.h"
#include "tests/fuzz/targets/fuzz_target.h"
#include "tests/fuzz/targets/promises.h"
#include "tests/fuzz/targets/round_trip.h"

namespace kiln::fuzz {
namespace {

constexpr int64_t kNow_ms = 1'700'000'000'000;

// Numbers lose digits in the first print, but none in later ones.
void CheckLine(const store::MeasureLogLine& line) {
  CheckRoundTrip(line, store::PrintMeasureLogLine, store::ParseMeasureLogLine, SameText());
  const auto record = store::RecordOfLine(line, "job", 0);
  if (!record.ok()) return CheckRefusal(record.status());
  KILN_CHECK(store::ValidateRecord(*record).ok(), "{}", store::PrintMeasureLogLine(line));
  const auto again = store::LineOfRecord(*record);
  if (!again.ok()) return CheckRefusal(again.status());
  const std::string of_record = store::PrintMeasureLogLine(*again);
  KILN_CHECK(store::ParseMeasureLogLine(of_record).ok(), "{}", of_record);
}

void CheckLines(const store::MeasureLog& log) {
  store::LogDistiller distiller;
  for (const store::MeasureLogLine& line : log.lines) {
    CheckLine(line);
    const Status added = distiller.Add(line);
    if (!added.ok()) CheckRefusal(added);
  }
  KILN_CHECK(distiller.Finish().size() <= log.lines.size() * 8);
}

store::ImportResult Import(store::Store& store, std::string_view text) {
  const auto result = store::ImportLog(
      store, text, kNow_ms, {.steps = schedule::CheckStepsText, .fits = schedule::CheckFit});
  KILN_CHECK(result.ok(), "{}", Message(result.status()));
  return *result;
}

std::string Export(store::Store& store) {
  std::string text;
  const auto append = [&](std::string_view line) -> Status {
    text += line;
    return OkStatus();
  };
  const auto lines = store::ExportLog(store, {.include_errors = true}, append);
  KILN_CHECK(lines.ok(), "{}", Message(lines.status()));
  const auto autotvm = store::ExportAutotvmLog(store, {.include_errors = true}, append);
  KILN_CHECK(autotvm.ok(), "{}", Message(autotvm.status()));
  KILN_CHECK(*lines + *autotvm == std::ranges::count(text, '\n'), "{}", text);
  return text;
}

void CheckImport(std::string_view text) {
  const auto store = store::NewMemoryStore();
  const store::ImportResult first = Import(*store, text);
  KILN_CHECK(first.refused == 0 || !first.errors.empty());
  const store::ImportResult repeated = Import(*store, text);
  KILN_CHECK(repeated.imported == 0, "{} of {} lines are imported twice", repeated.imported,
             first.imported);
  const std::string exported = Export(*store);
  const auto other = store::NewMemoryStore();
  const store::ImportResult again = Import(*other, exported);
  KILN_CHECK(again.imported == first.imported && again.refused == 0,
             "{} lines imported, then {} of those exported, {} refused: {}", first.imported,
             again.imported, again.refused, again.refused > 0 ? again.errors[0] : "");
  KILN_CHECK(Export(*other) == exported, "{}\nas\n{}", exported, Export(*other));
}

}  // namespace
}  // namespace kiln::fuzz

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace kiln;
  const std::string_view text = fuzz::InputText(data, size);
  const store::MeasureLog log = store::ParseMeasureLog(text);
  for (const std::string& error : log.errors) KILN_CHECK(error.starts_with("line "), "{}", error);
  fuzz::CheckLines(log);
  fuzz::CheckImport(text);
  return 0;
}
