// Chooses boxes by their scores.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/numbers/integers.h"
#include "frontend/onnx/rules/families.h"

namespace kiln::frontend {
namespace {

// Most comparisons of two boxes.
constexpr int64_t kMaxBoxComparisons = int64_t{1} << 28;

// The numbers are float32, as in ONNX's reference, so that the same boxes exceed a threshold.
struct Box {
  float left, right, top, bottom;

  float area() const { return (right - left) * (bottom - top); }
};

// `numbers` are y, x, y, x of two opposite corners, in any order.
Box BoxOfCorners(const float* numbers) {
  const auto [top, bottom] = std::minmax(numbers[0], numbers[2]);
  const auto [left, right] = std::minmax(numbers[1], numbers[3]);
  return {left, right, top, bottom};
}

// `numbers` are x and y of the centre, width and height.
Box BoxOfCentre(const float* numbers) {
  const float half_width = numbers[2] / 2, half_height = numbers[3] / 2;
  return {numbers[0] - half_width, numbers[0] + half_width, numbers[1] - half_height,
          numbers[1] + half_height};
}

// Returns whether the area that the boxes share is more than `threshold` times the area that they
// cover together.
bool Overlap(const Box& a, const Box& b, float threshold) {
  const Box both = {std::max(a.left, b.left), std::min(a.right, b.right), std::max(a.top, b.top),
                    std::min(a.bottom, b.bottom)};
  if (!(both.right > both.left) || !(both.bottom > both.top)) return false;
  const float shared = both.area(), covered = a.area() + b.area() - shared;
  if (!(shared > 0) || !(a.area() > 0) || !(b.area() > 0) || !(covered > 0)) return false;
  return shared / covered > threshold;
}

struct Suppression {
  // Most boxes of a class.
  int64_t most = 0;
  float overlap = 0;
  // A box has to exceed this score.
  float least_score = -INFINITY;
  // True: boxes with the scores -INFINITY and NaN count, too.
  bool takes_all_scores = true;
};

// Returns the boxes of one class that are kept, best ones first; boxes of equal scores stay in
// their order.
std::vector<int64_t> Kept(const std::vector<Box>& boxes, const std::vector<float>& scores,
                          const Suppression& rules) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < std::ssize(boxes); ++i) {
    if (rules.takes_all_scores || scores[static_cast<size_t>(i)] > rules.least_score)
      order.push_back(i);
  }
  // NaN is below all other scores.
  const auto key = [&](int64_t i) {
    const float score = scores[static_cast<size_t>(i)];
    return std::pair(!std::isnan(score), std::isnan(score) ? 0 : score);
  };
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return key(a) > key(b); });
  std::vector<int64_t> kept;
  for (const int64_t i : order) {
    if (std::ssize(kept) >= rules.most) break;
    const bool is_suppressed = std::ranges::any_of(kept, [&](int64_t other) {
      return Overlap(boxes[static_cast<size_t>(i)], boxes[static_cast<size_t>(other)],
                     rules.overlap);
    });
    if (!is_suppressed) kept.push_back(i);
  }
  return kept;
}

Suppression ReadSuppression(NodeContext& n) {
  Suppression rules;
  if (n.has_input(2)) rules.most = n.KnownInt(2, "max_output_boxes_per_class");
  if (n.has_input(3)) rules.overlap = static_cast<float>(n.KnownFloat(3, "iou_threshold"));
  if (n.has_input(4)) {
    rules.least_score = static_cast<float>(n.KnownFloat(4, "score_threshold"));
    rules.takes_all_scores = false;
  }
  return rules;
}

std::vector<float> FloatsOf(const Tensor& x) {
  std::vector<float> values;
  for (int64_t i = 0; i < x.num_elements(); ++i)
    values.push_back(static_cast<float>(x.constant->At(i)));
  return values;
}

// Inputs: boxes [batch, boxes, 4], scores [batch, classes, boxes]. For each box that is kept, the
// output has the numbers of its batch, its class and the box.
void NonMaxSuppression(NodeContext& n) {
  if (!n.input(0).is_known() || !n.input(1).is_known()) {
    return n.Unsupported(
        "the shape of its result depends on data, and shapes are static in Kiln: export the "
        "network without it, and suppress boxes outside of the network");
  }
  n.RequireRank(0, 3, 3);
  n.RequireRank(1, 3, 3);
  const int64_t by_centre = n.Int("center_point_box", 0);
  const Suppression rules = ReadSuppression(n);
  if (n.failed()) return;
  const Tensor &boxes = n.input(0), &scores = n.input(1);
  const int64_t batch = boxes.dim(0), count = boxes.dim(1), classes = scores.dim(1);
  if (boxes.dim(2) != 4 || scores.dim(0) != batch || scores.dim(2) != count)
    return n.Invalid("scores of {} for boxes of {}", TypeText(scores.type), TypeText(boxes.type));
  if (by_centre != 0 && by_centre != 1)
    return n.Invalid("attribute center_point_box is {}, expected 0 or 1", by_centre);
  const int64_t comparisons =
      MultiplyCounts(MultiplyCounts(batch, classes),
                     MultiplyCounts(count, std::clamp<int64_t>(rules.most, 0, count)));
  if (comparisons > kMaxBoxComparisons)
    return n.Unsupported("{} comparisons of boxes, expected at most 2^28", comparisons);
  if (boxes.is_empty() || scores.is_empty()) return n.SetOutput(n.Constant({0, 3}, {}));
  const std::vector<float> corners = FloatsOf(boxes), all_scores = FloatsOf(scores);
  Shape kept;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<Box> of_image;
    for (int64_t i = 0; i < count; ++i) {
      const float* numbers = &corners[static_cast<size_t>((b * count + i) * 4)];
      of_image.push_back(by_centre != 0 ? BoxOfCentre(numbers) : BoxOfCorners(numbers));
    }
    for (int64_t c = 0; c < classes; ++c) {
      const auto first = all_scores.begin() + (b * classes + c) * count;
      for (const int64_t i : Kept(of_image, {first, first + count}, rules))
        kept.insert(kept.end(), {b, c, i});
    }
  }
  n.SetOutput(n.Constant({std::ssize(kept) / 3, 3}, kept));
}

}  // namespace

std::vector<Rule> BoxRules() { return {{"NonMaxSuppression", NonMaxSuppression}}; }

}  // namespace kiln::frontend
