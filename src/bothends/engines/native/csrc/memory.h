// Memory for weights and activations: aligned, in huge pages where the system has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace bothends {

inline constexpr size_t kAlignment = 64;

// Bytes that are owned, aligned to a cache line, and zero at first unless that is not wanted. A large
// one asks for huge pages: streaming weights through pages of 4 kB costs a miss of the address cache
// for each of them.
class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(size_t size, bool zero = true);
  ~Bytes();
  Bytes(Bytes&& other) noexcept { swap(other); }
  Bytes& operator=(Bytes&& other) noexcept {
    swap(other);
    return *this;
  }
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void swap(Bytes& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

inline size_t round_up(size_t value, size_t step) { return (value + step - 1) / step * step; }

// An array of numbers that grows and never shrinks, so that a step need not allocate it once a search
// of the same size has run. Growing keeps what was there.
template <typename T>
class Buffer {
 public:
  T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
  T& operator[](size_t i) const { return data()[i]; }
  size_t size() const { return bytes() / sizeof(T); }
  size_t bytes() const { return bytes_.size(); }

  // At least `count` elements; old content is lost unless `kept` elements are asked to stay.
  void reserve(size_t count, size_t kept = 0) {
    if (count <= size()) return;
    if (count > SIZE_MAX / sizeof(T) / 2) throw std::bad_alloc();
    Bytes larger(round_up((count > 2 * size() ? count : 2 * size()) * sizeof(T), kAlignment));
    T* to = reinterpret_cast<T*>(larger.data());
    for (size_t i = 0; i < kept; ++i) to[i] = data()[i];
    bytes_ = std::move(larger);
  }

 private:
  Bytes bytes_;
};

}  // namespace bothends
