#include "compute/conv/algorithms/plane_lines.hpp"

#include <algorithm>
#include <cstring>

namespace tacc::conv {

PlaneLines::PlaneLines(const Shape& s, bool isData)
    : shape_(s),
      isData_(isData),
      channels_(isData ? s.outPerGroup() : s.inPerGroup()),
      height_(isData ? s.outHeight : s.height),
      width_(isData ? s.outWidth : s.width),
      margin_(s.padWidth),
      step_(isData ? 1 : s.strideWidth) {
  const int reach = (s.kernelHeight - 1) * s.dilationHeight;
  ringLines_ = std::min(height_, isData ? reach / s.strideHeight + 1 : reach + 1);
  int results = s.outWidth;  // of a phase
  int furthest = 0;          // that a result reads, from its own place on
  struct Place {
    int phase, tap, pixels;
  };
  std::vector<Place> places;
  if (isData) {
    margin_ = 0;
    for (int phase = 0; phase < std::min(s.strideWidth, s.width); ++phase) {
      for (int t = 0; t < s.kernelWidth; ++t) {
        const int at = phase + s.padWidth - t * s.dilationWidth;
        if (at % s.strideWidth != 0) continue;
        places.push_back({phase, t, at / s.strideWidth});
        margin_ = std::max(margin_, -at / s.strideWidth);
        furthest = std::max(furthest, at / s.strideWidth);
      }
    }
    results = ceilDivide(s.width, s.strideWidth);
    furthest += margin_;
    taps_.resize(static_cast<std::size_t>(std::min(s.strideWidth, s.width)));
  } else {
    for (int t = 0; t < s.kernelWidth; ++t) places.push_back({0, t, t * s.dilationWidth});
    furthest = (s.kernelWidth - 1) * s.dilationWidth / s.strideWidth;
    taps_.resize(1);
  }
  const int held = std::max(ceilDivide(margin_ + width_, step_), results + furthest);
  together_ = roundUp(held + planePadding + planeSumFloats, planeSumFloats);
  lineFloats_ = together_ * step_;
  isRead_.resize(static_cast<std::size_t>(step_));
  for (const Place& place : places) {
    if (!isData) isRead_[static_cast<std::size_t>(place.pixels % step_)] = 1;
    const std::ptrdiff_t at = isData ? place.pixels + margin_ : place.pixels % step_ * together_ + place.pixels / step_;
    taps_[static_cast<std::size_t>(place.phase)].push_back({place.tap, at});
  }
}

double PlaneLines::prepareCycles() const {
  if (step_ == 1) return 20 + width_ / 8.0;
  const double ofPixel = step_ == 2 || step_ == 4 ? 0.5 : 1.2;  // others are no shuffles of vectors
  return 20 + ofPixel * width_ / step_ * static_cast<double>(std::count(isRead_.begin(), isRead_.end(), 1));
}

int PlaneLines::lineOf(int y, int r) const {
  const Shape& s = shape_;
  int line = y * s.strideHeight - s.padHeight + r * s.dilationHeight;
  if (isData_) {
    const int spread = y + s.padHeight - r * s.dilationHeight;
    if (spread < 0 || spread % s.strideHeight != 0) return -1;
    line = spread / s.strideHeight;
  }
  return line >= 0 && line < height_ ? line : -1;
}

namespace {

/// Every kStep-th of the floats of a line.
template <int kStep>
void copyEvery(const float* __restrict from, float* __restrict to, int count) {
  for (int i = 0; i < count; ++i) to[i] = from[std::ptrdiff_t{i} * kStep];
}
void copyEvery(const float* from, int step, float* to, int count) {
  switch (step) {
    case 2:
      return copyEvery<2>(from, to, count);
    case 3:
      return copyEvery<3>(from, to, count);
    case 4:
      return copyEvery<4>(from, to, count);
    default:
      for (int i = 0; i < count; ++i) to[i] = from[std::ptrdiff_t{i} * step];
  }
}

}  // namespace

void PlaneLines::prepare(const float* line, float* to) const {
  if (step_ == 1) {
    std::memcpy(to + margin_, line, static_cast<std::size_t>(width_) * sizeof(float));
    return;
  }
  for (int i = 0; i < std::min(step_, width_); ++i) {
    const int column = margin_ + i;
    if (isRead_[static_cast<std::size_t>(column % step_)] == 0) continue;
    copyEvery(line + i, step_, to + column % step_ * together_ + column / step_, ceilDivide(width_ - i, step_));
  }
}

void PlaneLines::fetch(const float* from, int line) const {
  if (line + shape_.strideHeight >= height_) return;
  const float* const next = from + std::ptrdiff_t{shape_.strideHeight} * width_;
  for (int x = 0; x < width_; x += blockLength) __builtin_prefetch(next + x);
}

}  // namespace tacc::conv
