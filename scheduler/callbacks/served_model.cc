#include "scheduler/callbacks/served_model.h"

#include <bit>
#include <cmath>
#include <limits>

namespace kiln::scheduler {
namespace {

constexpr char kName[] = "the cost model";
// Most bytes of rows and steps in one call.
constexpr size_t kMostBytes = 64 << 20;

static_assert(std::endian::native == std::endian::little, "rows are sent as they are in memory");

void AddFloats(std::span<const float> values, std::string& to) {
  to.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}

// Returns the end of the part that begins at `begin` and fits one call. `bytes_of` tells how much
// of a call a program takes.
template <typename BytesOf>
size_t EndOfPart(size_t programs, size_t begin, const BytesOf& bytes_of) {
  size_t bytes = 0, end = begin;
  while (end < programs) {
    bytes += bytes_of(end);
    if (end > begin && bytes > kMostBytes) break;
    ++end;
  }
  return end;
}

Status CheckScores(const v1::CallbackReply& reply, size_t programs) {
  if (static_cast<size_t>(reply.values_size()) != programs) {
    return InvalidArgument("{} returned {} scores for {} states, expected one for each", kName,
                           reply.values_size(), programs);
  }
  for (int i = 0; i < reply.values_size(); ++i) {
    const double score = reply.values(i);
    if (std::isfinite(score) || score == -std::numeric_limits<double>::infinity()) continue;
    return InvalidArgument(
        "{} returned {} for state {} of {}, expected a finite number, or -inf for a state that "
        "should not be measured",
        kName, score, i, programs);
  }
  return OkStatus();
}

}  // namespace

std::vector<double> ServedModel::Predict(std::span<const FloatMatrix* const> programs) const {
  if (!reads_steps()) return PredictSchedules(programs, {});
  search_.Fail(Internal("{} reads steps, and was asked about programs without them", kName))
      .IgnoreError();
  return std::vector<double>(programs.size(), -std::numeric_limits<double>::infinity());
}

size_t ServedModel::BytesOf(const FloatMatrix& rows, const std::string* steps) const {
  const size_t of_estimates = sizeof(float) * static_cast<size_t>(rows.rows());
  const size_t of_rows =
      search_.served().model_reads_rows() ? rows.values().size_bytes() + of_estimates : 0;
  return of_rows + (reads_steps() ? steps->size() : 0);
}

void ServedModel::AddRows(const FloatMatrix& program, v1::FeatureRows& to) const {
  if (to.offsets().empty()) to.add_offsets(0);
  to.set_columns(static_cast<uint32_t>(program.columns()));
  to.add_offsets(to.offsets(to.offsets_size() - 1) + static_cast<uint32_t>(program.rows()));
  AddFloats(program.values(), *to.mutable_values());
  std::vector<float> estimates_s;
  for (const double score : analytic_->PredictRows(program))
    estimates_s.push_back(static_cast<float>(-score));
  AddFloats(estimates_s, *to.mutable_estimates_s());
}

std::vector<double> ServedModel::PredictSchedules(std::span<const FloatMatrix* const> programs,
                                                  std::span<const std::string> steps) const {
  std::vector<double> scores(programs.size(), -std::numeric_limits<double>::infinity());
  for (size_t begin = 0, end = 0; begin < programs.size(); begin = end) {
    end = EndOfPart(programs.size(), begin, [&](size_t i) {
      return BytesOf(*programs[i], reads_steps() ? &steps[i] : nullptr);
    });
    v1::CallbackRequest request;
    v1::PredictCall& call = *request.mutable_predict();
    call.set_task_index(static_cast<uint32_t>(task_));
    call.set_programs(static_cast<uint32_t>(end - begin));
    for (size_t i = begin; i < end; ++i) {
      if (search_.served().model_reads_rows()) AddRows(*programs[i], *call.mutable_rows());
      if (reads_steps()) call.add_steps(steps[i]);
    }
    const StatusOr<v1::CallbackReply> reply = search_.Call(std::move(request), kName);
    if (!reply.ok()) return scores;
    if (const Status checked = CheckScores(*reply, end - begin); !checked.ok()) {
      search_.Fail(checked).IgnoreError();
      return scores;
    }
    for (size_t i = begin; i < end; ++i) scores[i] = reply->values(static_cast<int>(i - begin));
  }
  return scores;
}

std::vector<double> ServedModel::PredictRows(const FloatMatrix& program) const {
  const FloatMatrix* const one = &program;
  return std::vector<double>(static_cast<size_t>(program.rows()), Predict({&one, 1})[0]);
}

uint32_t ServedModel::NumberOf(const costmodel::Sample& sample) {
  std::lock_guard lock(mutex_);
  if (sample.corrects) {
    if (const auto known = numbers_.find(sample.id); known != numbers_.end()) return known->second;
  }
  if (sample.id != 0) numbers_[sample.id] = told_;
  return told_++;
}

Status ServedModel::Update(std::vector<costmodel::Sample> samples) {
  for (size_t begin = 0, end = 0; begin < samples.size(); begin = end) {
    end = EndOfPart(samples.size(), begin,
                    [&](size_t i) { return BytesOf(*samples[i].rows, &samples[i].steps); });
    v1::CallbackRequest request;
    v1::UpdateCall& call = *request.mutable_update();
    call.set_task_index(static_cast<uint32_t>(task_));
    for (size_t i = begin; i < end; ++i) {
      call.add_numbers(NumberOf(samples[i]));
      call.add_costs_s(samples[i].cost_s.value_or(std::numeric_limits<double>::quiet_NaN()));
      if (search_.served().model_reads_rows()) AddRows(*samples[i].rows, *call.mutable_rows());
      if (reads_steps()) call.add_steps(samples[i].steps);
    }
    KILN_RETURN_IF_ERROR(search_.Call(std::move(request), kName).status());
    is_told_ = true;
  }
  return OkStatus();
}

StatusOr<std::string> ServedModel::Save() const {
  return FailedPrecondition("{} stays in the user's process", kName);
}

Status ServedModel::Load(std::string_view) {
  return FailedPrecondition("{} stays in the user's process", kName);
}

}  // namespace kiln::scheduler
