#include "shapes.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "errors.hpp"
#include "random.hpp"

namespace tacc::train {
namespace {

constexpr double noise = 0.25;

struct Point {
  double x, y;
};

double distanceToLine(Point p, Point from, Point to) {
  const Point along{to.x - from.x, to.y - from.y};
  const double length2 = along.x * along.x + along.y * along.y;
  const double t = std::clamp(((p.x - from.x) * along.x + (p.y - from.y) * along.y) / length2, 0.0, 1.0);
  return std::hypot(p.x - from.x - t * along.x, p.y - from.y - t * along.y);
}

/// What a class looks like in the square from -1 to 1: lines, or a circle.
struct Shape {
  enum class Kind { lines, ring, disc } kind;
  std::vector<std::array<Point, 2>> lines = {};

  /// From `p` to the nearest ink, were its strokes without width.
  double distance(Point p) const {
    const double fromCircle = std::hypot(p.x, p.y) - 1;
    if (kind == Kind::ring) return std::abs(fromCircle);
    if (kind == Kind::disc) return std::max(fromCircle, 0.0);
    double least = 1e9;
    for (const auto& [from, to] : lines) least = std::min(least, distanceToLine(p, from, to));
    return least;
  }
};

/// The lines from each corner to the next; `closed`: and from the last to the first.
Shape polygon(const std::vector<Point>& corners, bool closed = true) {
  Shape shape{Shape::Kind::lines};
  for (std::size_t i = 0; i + (closed ? 0 : 1) < corners.size(); ++i)
    shape.lines.push_back({corners[i], corners[(i + 1) % corners.size()]});
  return shape;
}

Shape strokes(std::vector<std::array<Point, 2>> lines) { return {Shape::Kind::lines, std::move(lines)}; }

std::vector<Shape> allShapes() {
  return {polygon({{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}}),
          polygon({{0, -1.1}, {1.1, 0}, {0, 1.1}, {-1.1, 0}}),
          polygon({{0, -1}, {1, 0.8}, {-1, 0.8}}),
          strokes({{{{-1, 0}, {1, 0}}}, {{{0, -1}, {0, 1}}}}),
          strokes({{{{-0.8, -0.8}, {0.8, 0.8}}}, {{{-0.8, 0.8}, {0.8, -0.8}}}}),
          {Shape::Kind::ring},
          {Shape::Kind::disc},
          strokes({{{{-1, -0.6}, {1, -0.6}}}, {{{-1, 0.6}, {1, 0.6}}}}),
          strokes({{{{-0.6, -1}, {-0.6, 1}}}, {{{0.6, -1}, {0.6, 1}}}}),
          polygon({{-0.9, -0.9}, {0.9, -0.9}, {-0.9, 0.9}, {0.9, 0.9}}, false)};
}

void drawShape(const Shape& shape, int side, Random& random, std::vector<float>& image) {
  const double radius = side * random.between(0.26, 0.38);
  const double room = side / 2.0 - radius;
  const Point middle{side / 2.0 + room * random.between(-0.8, 0.8), side / 2.0 + room * random.between(-0.8, 0.8)};
  const double angle = random.between(-0.2, 0.2);
  const double halfStroke = side * random.between(0.03, 0.05);
  const double ink = random.between(0.7, 1.0);
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      const double dx = (x + 0.5 - middle.x) / radius, dy = (y + 0.5 - middle.y) / radius;
      const Point turned{dx * std::cos(angle) - dy * std::sin(angle), dx * std::sin(angle) + dy * std::cos(angle)};
      const double beyond = shape.distance(turned) * radius - halfStroke;  // in pixels
      const double value = ink * std::clamp(0.5 - beyond, 0.0, 1.0) + noise * random.normal();
      image[static_cast<std::size_t>(y * side + x)] = static_cast<float>(std::clamp(value, 0.0, 1.0));
    }
}

}  // namespace

Dataset drawShapes(int images, int side, std::uint64_t seed) {
  if (!isSide(side))
    fail("the side of shapes is {}; it has to be a multiple of 4 from {} to {}", side, leastSide, mostSide);
  const std::vector<Shape> shapes = allShapes();
  Random random{seed, 1};
  Dataset data;
  data.side = side;
  data.classes = static_cast<int>(shapes.size());
  std::vector<float> image(data.pixelsEach());
  for (int i = 0; i < images; ++i) {
    const int label = i % data.classes;
    drawShape(shapes[static_cast<std::size_t>(label)], side, random, image);
    data.add(image.data(), label);
  }
  return data;
}

}  // namespace tacc::train
