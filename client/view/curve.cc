#include "client/view/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/console/terminal.h"
#include "base/text/units.h"
#include "scheduler/words/format.h"
#include "scheduler/words/variant_groups.h"

namespace kiln::client {
namespace {

double Along(const CurvePoint& point, CurveAxis axis) {
  return axis == CurveAxis::kTrials ? point.trials : point.elapsed_s;
}

std::string AxisName(CurveAxis axis) { return axis == CurveAxis::kTrials ? "trials" : "seconds"; }

// The part of the axes that is shown: from the axis's begin to the last trial of any curve, and, on
// a logarithmic axis, from the best latency to 16 times that. The first programs of a search are
// far slower than the interesting ones.
struct Range {
  double x_high = 1;
  double y_low = 0, y_high = 0;
};

constexpr double kMaxTimesBest = 16;

Range RangeOf(const std::vector<Curve>& curves, CurveAxis axis) {
  Range range;
  double worst = 0;
  for (const Curve& curve : curves) {
    for (const CurvePoint& point : curve.points) {
      range.x_high = std::max(range.x_high, Along(point, axis));
      range.y_low = range.y_low == 0 ? point.best_s : std::min(range.y_low, point.best_s);
      worst = std::max(worst, point.best_s);
    }
  }
  range.y_high = std::max(std::min(worst, kMaxTimesBest * range.y_low), 1.2 * range.y_low);
  return range;
}

// Returns 0 for the best latency, 1 for the top of the range.
double Height(double best_s, const Range& range) {
  const double shown_s = std::min(best_s, range.y_high);
  return std::log(shown_s / range.y_low) / std::log(range.y_high / range.y_low);
}

// Returns a few round latencies within the range.
std::vector<double> Ticks(const Range& range) {
  std::vector<double> ticks;
  for (const std::span<const int> digits :
       {std::span<const int>(std::array{1, 2, 3, 5, 7}), std::span<const int>(std::array{1, 2, 5}),
        std::span<const int>(std::array{1})}) {
    ticks.clear();
    const int first = static_cast<int>(std::floor(std::log10(range.y_low)));
    const int last = static_cast<int>(std::ceil(std::log10(range.y_high)));
    for (int exponent = first; exponent <= last; ++exponent) {
      for (const int digit : digits) {
        const double tick = digit * std::pow(10.0, exponent);
        if (tick >= range.y_low && tick <= range.y_high) ticks.push_back(tick);
      }
    }
    constexpr size_t kMaxTicks = 6;
    if (ticks.size() <= kMaxTicks) break;
  }
  return ticks;
}

// ---- text -----------------------------------------------------------------------------------

constexpr std::string_view kMarks = "*o+x#%@&";
constexpr int kRows = 14;
constexpr int kLabelColumns = 10;

std::string TextPlot(const std::vector<Curve>& curves, CurveAxis axis, int columns) {
  constexpr int kMin = 20;
  const Range range = RangeOf(curves, axis);
  const auto width = static_cast<size_t>(std::max(kMin, columns - kLabelColumns - 2));
  std::vector<std::string> rows(kRows, std::string(width, ' '));
  for (size_t c = 0; c < curves.size(); ++c) {
    const std::vector<CurvePoint>& points = curves[c].points;
    for (size_t i = 0; i < points.size(); ++i) {
      const auto column = [&](const CurvePoint& point) {
        return static_cast<size_t>(Along(point, axis) / range.x_high *
                                   static_cast<double>(width - 1));
      };
      const size_t from = column(points[i]);
      const size_t to = i + 1 < points.size() ? column(points[i + 1]) : from + 1;
      const auto row =
          static_cast<size_t>(std::lround((1 - Height(points[i].best_s, range)) * (kRows - 1)));
      for (size_t at = from; at < std::max(to, from + 1); ++at) {
        rows[row][at] = kMarks[c % kMarks.size()];
      }
    }
  }
  std::string text;
  for (int row = 0; row < kRows; ++row) {
    const double height = 1 - static_cast<double>(row) / (kRows - 1);
    const double latency_s = range.y_low * std::pow(range.y_high / range.y_low, height);
    const bool labelled = row % 3 == 0 || row == kRows - 1;
    std::string line = rows[static_cast<size_t>(row)];
    line.erase(line.find_last_not_of(' ') + 1);
    text +=
        fmt::format("{:>{}} |{}\n", labelled ? FormatSeconds(latency_s) : "", kLabelColumns, line);
  }
  text += fmt::format("{:>{}} +{}\n", "", kLabelColumns, std::string(width, '-'));
  const std::string end = fmt::format("{:g} {}", range.x_high, AxisName(axis));
  text += fmt::format("{:>{}}  0{:>{}}\n", "", kLabelColumns, end, width - 1);
  return text;
}

std::string PointTable(const std::vector<Curve>& curves) {
  Table table({{"Job"},
               {"Trials", Table::kRight},
               {"Time", Table::kRight},
               {"Best", Table::kRight},
               {"Gain", Table::kRight}});
  for (const Curve& curve : curves) {
    double before_s = 0;
    for (const CurvePoint& point : curve.points) {
      const bool is_first = before_s == 0;
      table.AddRow(
          {is_first ? curve.name : "", FormatCount(point.trials), FormatElapsed(point.elapsed_s),
           LatencyCell(point.best_s),
           before_s > point.best_s ? fmt::format("{:.3g}x", before_s / point.best_s) : ""});
      before_s = point.best_s;
    }
  }
  return table.ToString();
}

// ---- picture --------------------------------------------------------------------------------

// The colour-blind can tell the colours apart, and dashes tell the lines apart in print.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#767676", "#e69f00"};
constexpr std::array kDashes = {"", "7 3", "2 3", "9 3 2 3"};

constexpr double kWidth = 640, kHeight = 400;
constexpr double kLeft = 76, kRight = 16, kTop = 40, kBottom = 44, kLegendLine = 18;

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string TextAt(double x, double y, std::string_view anchor, std::string_view text) {
  return fmt::format(
      "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"12\" fill=\"#333\">{}"
      "</text>\n",
      x, y, anchor, Escaped(text));
}

class Picture {
 public:
  Picture(const std::vector<Curve>& curves, CurveAxis axis)
      : curves_(curves), axis_(axis), range_(RangeOf(curves, axis)) {}

  std::string Draw(const std::string& title) const {
    const double height = kHeight + kLegendLine * static_cast<double>(curves_.size());
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
        "height=\"{1}\" font-family=\"Helvetica, Arial, sans-serif\">\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
        kWidth, height);
    svg += TextAt(kLeft, 22, "start", title) + Axes();
    for (size_t c = 0; c < curves_.size(); ++c) svg += Line(c) + Legend(c);
    return svg + "</svg>\n";
  }

 private:
  double X(double along) const { return kLeft + along / range_.x_high * (kWidth - kLeft - kRight); }
  double Y(double best_s) const {
    return kHeight - kBottom - Height(best_s, range_) * (kHeight - kTop - kBottom);
  }

  std::string Axes() const {
    std::string svg;
    for (const double tick : Ticks(range_)) {
      svg += fmt::format("<path d=\"M{:.1f} {:.1f}H{:.1f}\" stroke=\"#e4e4e4\"/>\n", kLeft, Y(tick),
                         kWidth - kRight);
      svg += TextAt(kLeft - 6, Y(tick) + 4, "end", FormatSeconds(tick));
    }
    constexpr int kParts = 4;
    for (int part = 0; part <= kParts; ++part) {
      const double along = range_.x_high * part / kParts;
      svg += TextAt(X(along), kHeight - kBottom + 18, "middle", fmt::format("{:g}", along));
    }
    svg += TextAt((kLeft + kWidth - kRight) / 2, kHeight - 8, "middle", AxisName(axis_));
    svg += fmt::format("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"#333\"/>\n", kLeft,
                       kTop, kHeight - kBottom, kWidth - kRight);
    return svg;
  }

  static std::string Stroke(size_t c) {
    return fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-dasharray=\"{}\"",
                       kColours[c % kColours.size()], kDashes[c % kDashes.size()]);
  }

  // Draws a staircase: the best latency stays until it is beaten.
  std::string Line(size_t c) const {
    std::string path;
    for (const CurvePoint& point : curves_[c].points) {
      const double x = X(Along(point, axis_)), y = Y(point.best_s);
      path +=
          path.empty() ? fmt::format("M{:.1f} {:.1f}", x, y) : fmt::format("H{:.1f}V{:.1f}", x, y);
    }
    return path.empty() ? "" : fmt::format("<path d=\"{}\" {}/>\n", path, Stroke(c));
  }

  std::string Legend(size_t c) const {
    const double y = kHeight + kLegendLine * static_cast<double>(c);
    const std::vector<CurvePoint>& points = curves_[c].points;
    const std::string best = points.empty() ? "none right" : LatencyCell(points.back().best_s);
    return fmt::format("<path d=\"M{:.1f} {:.1f}h28\" {}/>\n", kLeft, y + 4, Stroke(c)) +
           TextAt(kLeft + 36, y + 8, "start", fmt::format("{}: {}", curves_[c].name, best));
  }

  const std::vector<Curve>& curves_;
  const CurveAxis axis_;
  const Range range_;
};

}  // namespace

CurveBuilder::CurveBuilder(std::string name, const v1::JobStatus& job, std::optional<int> task) {
  curve_.name = std::move(name);
  group_of_task_.assign(static_cast<size_t>(job.tasks_size()), -1);
  for (const std::vector<int>& variants : VariantGroupsOf(job)) {
    const bool counts = !task.has_value() || std::ranges::count(variants, *task) > 0;
    if (!counts) continue;
    for (const int t : variants) {
      if (task.has_value() && t != *task) continue;
      group_of_task_[static_cast<size_t>(t)] = static_cast<int>(groups_.size());
    }
    // The curve of one task shows the task's own latency.
    groups_.push_back({task.has_value() ? 1 : job.tasks(variants[0]).spec().weight(), {}});
  }
}

void CurveBuilder::Add(const v1::Record& record) {
  const v1::TrialResult& result = record.result();
  if (last_.trials == 0) first_s_ = result.timestamp_s();
  ++last_.trials;
  const auto elapsed_s = static_cast<double>(result.timestamp_s() - first_s_);
  last_.elapsed_s = std::max(last_.elapsed_s, elapsed_s);
  const bool known = record.task_index() < group_of_task_.size();
  const int group = known ? group_of_task_[record.task_index()] : -1;
  const double cost_s = MeanCost(result);
  if (group < 0 || cost_s <= 0 || result.stopped_early()) return;
  std::optional<double>& best_s = groups_[static_cast<size_t>(group)].best_s;
  if (best_s.has_value() && cost_s >= *best_s) return;
  best_s = cost_s;
  const std::optional<double> total_s = Total();
  if (!total_s.has_value()) return;
  last_.best_s = *total_s;
  curve_.points.push_back(last_);
}

std::optional<double> CurveBuilder::Total() const {
  double total_s = 0;
  for (const Group& group : groups_) {
    if (!group.best_s.has_value()) return std::nullopt;
    total_s += group.weight * *group.best_s;
  }
  return total_s;
}

Curve CurveBuilder::Finish() {
  if (!curve_.points.empty() && curve_.points.back().trials != last_.trials) {
    curve_.points.push_back(last_);
  }
  return std::move(curve_);
}

std::string CurveText(const std::vector<Curve>& curves, CurveAxis axis, int columns) {
  constexpr int kPlain = 80;
  std::string text = PointTable(curves);
  text += "\n";
  text += TextPlot(curves, axis, columns > 0 ? columns : kPlain);
  for (size_t c = 0; curves.size() > 1 && c < curves.size(); ++c) {
    text += fmt::format("{} {}\n", kMarks[c % kMarks.size()], curves[c].name);
  }
  return text;
}

std::string CurveSvg(const std::vector<Curve>& curves, CurveAxis axis, const std::string& title) {
  return Picture(curves, axis).Draw(title);
}

}  // namespace kiln::client
