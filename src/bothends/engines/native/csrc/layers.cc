#include "layers.h"

#include <algorithm>

namespace bothends {

namespace {

constexpr int kTileRows = 16;  // kernels may read so many rows past the last, and not use them
// Weights that a core multiplies before it looks for more: enough that asking costs little.
constexpr size_t kPieceBytes = 32 << 10;

}  // namespace

void Workspace::product(const Kernels& kernels, const QuantisedRows& rows,
                        const PackedMatrix& matrix, int first, int last, float* out,
                        size_t out_stride, bool add) const {
  const size_t panels = last - first, bytes = panels * matrix.panel_bytes();
  size_t pieces = 1;
  if (team != nullptr && team->awake()) {
    // Two for each core: one that comes late leaves its second to the others. More for many rows, so
    // that a piece takes no longer.
    const size_t most = 2 * static_cast<size_t>(team->members()) * (1 + rows.rows / 8);
    pieces = std::min({panels, bytes / kPieceBytes, most});
  }
  if (pieces <= 1) return kernels.product(rows, matrix, first, last, out, out_stride, add);
  team->share({bytes, rows.rows}, static_cast<int>(pieces), [&](int piece) {
    const int begin = static_cast<int>(panels * piece / pieces);
    const int end = static_cast<int>(panels * (piece + 1) / pieces);
    kernels.product(rows, matrix, first + begin, first + end, out + begin * matrix.panel,
                    out_stride, add);
  });
}

void Workspace::reserve(const Network& network, size_t rows, size_t entries) {
  const Configuration& c = network.configuration;
  const size_t readable = rows + kTileRows;
  const size_t stride = network.width_stride();
  x.reserve(rows * stride);
  query.reserve(rows * stride);
  attended.reserve(rows * stride);
  inner.reserve(rows * round_up(c.feed_forward, 64));
  narrow.reserve(readable * round_up(c.width, kInputStep));
  wide.reserve(readable * round_up(c.feed_forward, kInputStep));
  scales.reserve(rows);
  scores.reserve(entries + 64);
  row.reserve(stride);
}

QuantisedRows Layers::input() const {
  return {work_.narrow.data(), narrow_stride(), work_.scales.data(), rows_, false};
}

void Layers::begin() {
  if (network_.configuration.pre_norm) return;
  for (int m = 0; m < rows_; ++m) {
    kernels_.quantise(x(m), network_.configuration.width, &work_.narrow[m * narrow_stride()],
                      &work_.scales[m]);
  }
}

void Layers::enter(const Norm& norm) {
  if (!network_.configuration.pre_norm) return;
  for (int m = 0; m < rows_; ++m) {
    kernels_.normalise(x(m), norm, network_.configuration.width, work_.row.data(),
                       &work_.narrow[m * narrow_stride()], &work_.scales[m]);
  }
}

void Layers::end(const Norm& final_norm) { enter(final_norm); }

void Layers::project(const PackedMatrix& matrix, float* out, size_t stride) const {
  work_.product(kernels_, input(), matrix, 0, matrix.panels(), out, stride, false);
}

void Layers::take_attended() {
  for (int m = 0; m < rows_; ++m) {
    kernels_.quantise(attended(m), network_.configuration.width,
                      &work_.narrow[m * narrow_stride()], &work_.scales[m]);
  }
}

void Layers::add_output(const QuantisedRows& rows, const PackedMatrix& output, const Norm& norm) {
  work_.product(kernels_, rows, output, 0, output.panels(), work_.x.data(),
                network_.width_stride(), true);
  if (network_.configuration.pre_norm) return;
  for (int m = 0; m < rows_; ++m) {
    kernels_.normalise(x(m), norm, network_.configuration.width, x(m),
                       &work_.narrow[m * narrow_stride()], &work_.scales[m]);
  }
}

void Layers::leave(const PackedMatrix& output, const Norm& norm) {
  add_output(input(), output, norm);
}

void Layers::feed_forward(const FeedForward& layer) {
  const Configuration& c = network_.configuration;
  enter(layer.norm);
  const size_t stride = round_up(c.feed_forward, 64);
  project(layer.inner, work_.inner.data(), stride);
  const bool relu = c.activation == Activation::relu;
  for (int m = 0; m < rows_; ++m) {
    float* inner = work_.inner.data() + m * stride;
    uint8_t* values = &work_.wide[m * wide_stride()];
    if (relu) {
      kernels_.quantise_relu(inner, c.feed_forward, values, &work_.scales[m]);
    } else {
      kernels_.activate(inner, c.feed_forward, c.activation);
      kernels_.quantise(inner, c.feed_forward, values, &work_.scales[m]);
    }
  }
  add_output({work_.wide.data(), wide_stride(), work_.scales.data(), rows_, relu}, layer.outer,
             layer.norm);
}

}  // namespace bothends
