// The layers of the network on rows of activations, shared by the encoder and the decoder.
#pragma once

#include "memory.h"
#include "network.h"
#include "team.h"

namespace bothends {

// What the rows of one pass need. Grows with the largest pass and is used again by the next.
struct Workspace {
  Buffer<float> x;         // (rows, width_stride): the residual stream
  Buffer<float> query;     // (rows, width_stride)
  Buffer<float> attended;  // (rows, width_stride)
  Buffer<float> inner;     // (rows, feed-forward stride)
  Buffer<uint8_t> narrow;  // (rows, width): quantised rows
  Buffer<uint8_t> wide;    // (rows, feed-forward): quantised rows
  Buffer<float> scales;    // (rows,)
  Buffer<float> scores;    // of one head, over all entries
  Buffer<float> row;       // one row of scratch
  Buffer<float> logits;    // (rows, kWordChunk)
  Team* team = nullptr;    // of a search that has helpers

  // `Kernels::product`, on several cores if that is quicker.
  void product(const Kernels& kernels, const QuantisedRows& rows, const PackedMatrix& matrix,
               int first, int last, float* out, size_t out_stride, bool add) const;
  void reserve(const Network& network, size_t rows, size_t entries);
  size_t bytes() const {
    return x.bytes() + query.bytes() + attended.bytes() + inner.bytes() + narrow.bytes() +
           wide.bytes() + scales.bytes() + scores.bytes() + row.bytes() + logits.bytes();
  }
};

// A pass of so many rows through layers. `workspace.x` goes in and comes out; between sublayers the
// quantised input of the next one is kept in `workspace.narrow`.
class Layers {
 public:
  Layers(const Network& network, Workspace& workspace, int rows)
      : network_(network), kernels_(network.kernels), work_(workspace), rows_(rows) {}

  // Before the first sublayer, which reads `x` as it is if norms come after.
  void begin();
  // After the last: with pre-norm, the residual stream still has to be normalised.
  void end(const Norm& final_norm);

  // A sublayer is `enter`, products, and `leave` with its output product.
  void enter(const Norm& norm);
  void leave(const PackedMatrix& output, const Norm& norm);
  void feed_forward(const FeedForward& layer);

  void project(const PackedMatrix& matrix, float* out, size_t stride) const;
  // Attention's output, quantised as the input of the output product.
  void take_attended();

  QuantisedRows input() const;
  float* x(int row) const { return work_.x.data() + row * network_.width_stride(); }
  float* query(int row) const { return work_.query.data() + row * network_.width_stride(); }
  float* attended(int row) const { return work_.attended.data() + row * network_.width_stride(); }

 private:
  void add_output(const QuantisedRows& rows, const PackedMatrix& output, const Norm& norm);
  size_t narrow_stride() const { return round_up(network_.configuration.width, kInputStep); }
  size_t wide_stride() const { return round_up(network_.configuration.feed_forward, kInputStep); }

  const Network& network_;
  const Kernels& kernels_;
  Workspace& work_;
  const int rows_;
};

}  // namespace bothends
