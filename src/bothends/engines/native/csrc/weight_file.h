// The tensors of an ONNX file, where they lie in the file, without the ONNX library.
//
// Only what the weights need is read: ModelProto.graph (7), its initialisers (5), and of each its
// dimensions (1), type (2), name (8), raw bytes (9), and whether they are in another file (14); and
// the model's metadata (14).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace bothends {

// A file that is not what it should be; the message says what, and the caller adds the file's name.
struct DamagedFile : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Tensor {
  static constexpr int kFloat = 1, kInt8 = 3;  // TensorProto.DataType
  int type = 0;
  std::vector<int64_t> shape;
  const uint8_t* data = nullptr;
  size_t bytes = 0;
  bool elsewhere = false;
};

class WeightFile {
 public:
  // A tensor that is not in this file is taken from the one `beside` it, which must outlive this.
  explicit WeightFile(const std::string& path, const WeightFile* beside = nullptr);
  ~WeightFile();
  WeightFile(const WeightFile&) = delete;
  WeightFile& operator=(const WeightFile&) = delete;

  // The tensor called `name`, which must have this type and shape.
  const uint8_t* tensor(const std::string& name, int type, const std::vector<int64_t>& shape) const;
  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  const std::string& path() const { return path_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  void read();

  std::string path_;
  const WeightFile* beside_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace bothends
