#include "base/metrics/metrics.h"

#include <prometheus/check_names.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <utility>

#include "base/status.h"
#include "base/text/utf8.h"

namespace kiln {
namespace {

constexpr size_t kMostLabelBytes = 120;

void CheckNames(const std::string& name, const MetricLabels& labels) {
  KILN_CHECK(prometheus::CheckMetricName(name), "'{}' is no name of a metric", name);
  for (const auto& [label, value] : labels) {
    KILN_CHECK(prometheus::CheckLabelName(label), "'{}' is no name of a label", label);
  }
}

prometheus::Labels Fit(const MetricLabels& labels) {
  prometheus::Labels fit;
  for (const auto& [name, value] : labels) {
    fit[name] = OneLine(std::string_view(value).substr(0, kMostLabelBytes));
  }
  return fit;
}

}  // namespace

struct Metrics::State {
  prometheus::Registry registry;
  // Held while the collectors run.
  std::mutex mutex;
  std::list<Collector> collectors;
};

void Counter::Add(double amount) const {
  if (counter_ != nullptr) counter_->Increment(amount);
}

void Histogram::Add(double value) const {
  if (histogram_ != nullptr && std::isfinite(value)) histogram_->Observe(value);
}

MetricSheet::MetricSheet() = default;
MetricSheet::~MetricSheet() = default;

prometheus::MetricFamily& MetricSheet::FamilyOf(const std::string& name, const std::string& help,
                                                int type) {
  std::unique_ptr<prometheus::MetricFamily>& family = families_[name];
  if (family == nullptr) {
    family = std::make_unique<prometheus::MetricFamily>();
    family->name = name;
    family->help = help;
    family->type = static_cast<prometheus::MetricType>(type);
  }
  return *family;
}

void MetricSheet::Gauge(const std::string& name, const std::string& help, double value,
                        const MetricLabels& labels) {
  CheckNames(name, labels);
  prometheus::ClientMetric metric;
  for (auto& [label, text] : Fit(labels)) metric.label.push_back({label, text});
  metric.gauge.value = value;
  FamilyOf(name, help, static_cast<int>(prometheus::MetricType::Gauge))
      .metric.push_back(std::move(metric));
}

void MetricSheet::Counter(const std::string& name, const std::string& help, double value,
                          const MetricLabels& labels) {
  CheckNames(name, labels);
  prometheus::ClientMetric metric;
  for (auto& [label, text] : Fit(labels)) metric.label.push_back({label, text});
  metric.counter.value = value;
  FamilyOf(name, help, static_cast<int>(prometheus::MetricType::Counter))
      .metric.push_back(std::move(metric));
}

Metrics::Metrics() : state_(std::make_shared<State>()) {}
Metrics::~Metrics() = default;

kiln::Counter Metrics::AddCounter(const std::string& name, const std::string& help,
                                  const MetricLabels& labels) {
  CheckNames(name, labels);
  auto& family = prometheus::BuildCounter().Name(name).Help(help).Register(state_->registry);
  return kiln::Counter(family.Add(Fit(labels)));
}

kiln::Histogram Metrics::AddHistogram(const std::string& name, const std::string& help,
                                      const std::vector<double>& bounds,
                                      const MetricLabels& labels) {
  CheckNames(name, labels);
  auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(state_->registry);
  return kiln::Histogram(family.Add(Fit(labels), bounds));
}

std::shared_ptr<void> Metrics::AddCollector(Collector collect) {
  const std::lock_guard lock(state_->mutex);
  state_->collectors.push_back(std::move(collect));
  return {&state_->collectors.back(),
          [state = state_, place = std::prev(state_->collectors.end())](void*) {
            const std::lock_guard lock(state->mutex);
            state->collectors.erase(place);
          }};
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families = state_->registry.Collect();
  MetricSheet sheet;
  {
    const std::lock_guard lock(state_->mutex);
    for (const Collector& collect : state_->collectors) collect(sheet);
  }
  for (auto& [name, family] : sheet.families_) families.push_back(std::move(*family));
  std::ranges::sort(families, {}, &prometheus::MetricFamily::name);
  for (prometheus::MetricFamily& family : families) {
    std::ranges::sort(family.metric,
                      [](const auto& a, const auto& b) { return a.label < b.label; });
  }
  return prometheus::TextSerializer().Serialize(families);
}

const std::vector<double>& SecondsBounds() {
  static const auto* const bounds = new std::vector<double>{
      0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600};
  return *bounds;
}

}  // namespace kiln
