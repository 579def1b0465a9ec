#include "compute/conv/amx/bf16x3_image.hpp"

#include <algorithm>

namespace tacc::conv {
namespace {

std::vector<int> linesOf(const std::vector<Tap>& taps) {
  std::vector<int> distances;
  for (const Tap& tap : taps) distances.push_back(tap.dy);
  return distances;
}
std::vector<int> columnsOf(const std::vector<Tap>& taps) {
  std::vector<int> distances;
  for (const Tap& tap : taps) distances.push_back(tap.dx);
  return distances;
}

}  // namespace

Bf16x3Axis::Bf16x3Axis(int sourceSize, int outputs, int strideOf, const std::vector<int>& distances)
    : source(sourceSize), stride(strideOf), pad(0), pitch(outputs) {
  for (const int distance : distances) pad = std::max(pad, -distance);
  std::vector<int> steps(static_cast<std::size_t>(stride), -1);
  for (const int distance : distances) {
    int& most = steps[static_cast<std::size_t>(phaseOf(distance))];
    most = std::max(most, stepOf(distance));
    furthest = std::max(furthest, most);
  }
  for (int phase = 0; phase < stride; ++phase) {
    const int most = steps[static_cast<std::size_t>(phase)];
    const int lead = ceilDivide(std::max(0, pad - phase), stride);
    const int all = source + pad - phase <= 0 ? 0 : ceilDivide(source + pad - phase, stride);
    const int end = std::max(lead, std::min(all, outputs + most));
    phases.push_back({most >= 0, lead, end});
    // What is read behind a line's end are the zeros before the next one's first pixel.
    if (most >= 0) pitch = std::max({pitch, end, outputs + most - lead});
  }
}

Bf16x3Image::Bf16x3Image(int blocks, int parts, int height, int width, int strideHeight, int strideWidth, int outHeight,
                         int outWidth, const std::vector<Tap>& taps)
    : blocks_(blocks),
      numberParts_(parts),
      outHeight_(outHeight),
      outWidth_(outWidth),
      lines_(height, outHeight, strideHeight, linesOf(taps)),
      columns_(width, outWidth, strideWidth, columnsOf(taps)) {
  for (int y = 0; y < strideHeight; ++y) {
    for (int x = 0; x < strideWidth; ++x) {
      const bool isRead = std::any_of(taps.begin(), taps.end(), [&](const Tap& tap) {
        return lines_.phaseOf(tap.dy) == y && columns_.phaseOf(tap.dx) == x;
      });
      if (isRead) used_.push_back({y, x});
    }
  }
}

void Bf16x3Image::choosePart(int batch, std::size_t bytes) {
  batch_ = batch;
  // Where no tap is inside the image nothing is read.
  const std::size_t used = std::max<std::size_t>(1, used_.size());
  const std::size_t lineBytes =
      std::size_t(pitch()) * std::size_t(blocks_) * used * rowBytes / 2 * std::size_t(numberParts_);
  const std::size_t imageBytes = lineBytes * static_cast<std::size_t>(lines_.pitch);
  if (imageBytes <= bytes) {
    const int most = static_cast<int>(std::min<std::size_t>(bytes / imageBytes, static_cast<std::size_t>(batch)));
    imageParts_ = ceilDivide(batch, most);
    partImages_ = ceilDivide(batch, imageParts_);
    imageParts_ = ceilDivide(batch, partImages_);
    partLines_ = outHeight_;
    lineParts_ = 1;
  } else {
    // Lines that two parts read are split twice: so not too few of them.
    const int most = std::max(static_cast<int>(bytes / lineBytes), 2 * lines_.furthest + 1);
    lineParts_ = ceilDivide(outHeight_, std::min(most, outHeight_));
    partLines_ = ceilDivide(outHeight_, lineParts_);
    lineParts_ = ceilDivide(outHeight_, partLines_);
    imageParts_ = batch;
    partImages_ = 1;
  }
  // Whole pairs of tiles, and, behind the last image, what its last taps read.
  const int lines = (partImages_ - 1) * imageLines() + partLines_;
  const std::ptrdiff_t outputs = std::ptrdiff_t{lines} * pitch();
  const std::ptrdiff_t tiles = (outputs + 2 * tileRows - 1) / (2 * tileRows) * (2 * tileRows);
  rows_ = tiles + std::ptrdiff_t{lines_.furthest} * pitch() + columns_.furthest;
}

void Bf16x3Image::findRuns(const Steps& source) {
  runs_.assign(static_cast<std::size_t>(kinds() * phases()), {});
  for (int kind = 0; kind < kinds(); ++kind) {
    const int index = partOfKind(kind);
    for (std::size_t phase = 0; index >= 0 && phase < used_.size(); ++phase) {
      runs_[static_cast<std::size_t>(kind) * used_.size() + phase] = runsOf(part(index), used_[phase], source);
    }
  }
}

void Bf16x3Image::cutRuns(const std::function<std::vector<Bf16x3Run>(const Bf16x3Run&)>& cut) {
  for (std::vector<Bf16x3Run>& runs : runs_) {
    std::vector<Bf16x3Run> all;
    for (const Bf16x3Run& run : runs) {
      const std::vector<Bf16x3Run> parts = cut(run);
      all.insert(all.end(), parts.begin(), parts.end());
    }
    runs = std::move(all);
  }
}

int Bf16x3Image::kindOf(int index) const {
  const bool areFewer = part(index).images != partImages_;
  return index % lineParts_ + (areFewer ? lineParts_ : 0);
}

int Bf16x3Image::partOfKind(int kind) const {
  const int index = kind % lineParts_ + (kind < lineParts_ ? 0 : (imageParts_ - 1) * lineParts_);
  return kindOf(index) == kind ? index : -1;
}

std::span<const Bf16x3Run> Bf16x3Image::runs(int index, int phase) const {
  return runs_[static_cast<std::size_t>(kindOf(index)) * used_.size() + static_cast<std::size_t>(phase)];
}

std::vector<Bf16x3Run> Bf16x3Image::outputRuns(const Part& part, const Steps& output) const {
  std::vector<Bf16x3Run> runs;
  for (int image = 0; image < part.images; ++image) {
    for (int line = 0; line < part.lines; ++line) {
      runs.push_back({(std::ptrdiff_t{image} * imageLines() + line) * pitch(),
                      image * output.image + (part.line + line) * output.line, outWidth_});
    }
  }
  return runs;
}

std::vector<Bf16x3Run> Bf16x3Image::runsOf(const Part& part, const UsedPhase& phase, const Steps& source) const {
  const Bf16x3Axis::Phase& columns = columns_.phases[static_cast<std::size_t>(phase.x)];
  const Bf16x3Axis::Phase& lines = lines_.phases[static_cast<std::size_t>(phase.y)];
  const int first = std::max(lines.lead, part.line);
  const int last = std::min(lines.end, part.line + part.lines + lines_.furthest);
  std::vector<Bf16x3Run> runs;
  for (int image = 0; image < part.images; ++image) {
    for (int line = first; line < last; ++line) {
      const std::ptrdiff_t row = (std::ptrdiff_t{image} * imageLines() + line - part.line) * pitch() + columns.lead;
      const std::ptrdiff_t from = image * source.image + lines_.sourceOf(phase.y, line) * source.line +
                                  columns_.sourceOf(phase.x, columns.lead) * source.pixel;
      const int rows = columns.end - columns.lead;
      if (rows > 0) runs.push_back({row, from, rows});
    }
  }
  return runs;
}

Bf16x3Image::Part Bf16x3Image::part(int index) const {
  const int image = index / lineParts_ * partImages_;
  const int line = index % lineParts_ * partLines_;
  return {image, std::min(partImages_, batch_ - image), line, std::min(partLines_, outHeight_ - line)};
}

int Bf16x3Image::positions(const Part& part, int outHeight, int outWidth) const {
  const int lines = std::min(part.lines, outHeight - part.line);
  if (lines <= 0) return 0;
  return ((part.images - 1) * imageLines() + lines - 1) * pitch() + outWidth;
}

std::vector<std::ptrdiff_t> Bf16x3Image::outputs(int outHeight, int outWidth, std::ptrdiff_t image, std::ptrdiff_t line,
                                                 std::ptrdiff_t pixel) const {
  std::vector<std::ptrdiff_t> places(static_cast<std::size_t>(rows_), -1);
  for (int i = 0; i < partImages_; ++i) {
    for (int y = 0; y < std::min(partLines_, outHeight); ++y) {
      for (int x = 0; x < outWidth; ++x) {
        places[static_cast<std::size_t>((i * imageLines() + y) * pitch() + x)] = i * image + y * line + x * pixel;
      }
    }
  }
  return places;
}

int Bf16x3Image::phaseOf(Tap tap) const {
  const int y = lines_.phaseOf(tap.dy), x = columns_.phaseOf(tap.dx);
  const auto place =
      std::find_if(used_.begin(), used_.end(), [&](const UsedPhase& phase) { return phase.y == y && phase.x == x; });
  return static_cast<int>(place - used_.begin());
}

std::ptrdiff_t Bf16x3Image::distanceOf(Tap tap) const {
  return std::ptrdiff_t{lines_.stepOf(tap.dy)} * pitch() + columns_.stepOf(tap.dx);
}

}  // namespace tacc::conv
