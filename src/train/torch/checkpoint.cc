#include "train/torch/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

#include "train/torch/parameters.h"

namespace fleetfit::train {

void keep_numbers(const std::vector<at::Tensor>& tensors, Checkpoint& checkpoint) {
  for (const auto& tensor : tensors) checkpoint.numbers.push_back(numbers_of(tensor.to(at::kCPU)));
}

Status put_numbers(const std::vector<at::Tensor>& tensors, Checkpoint& checkpoint,
                   const std::string& file) {
  const at::NoGradGuard no_gradients;
  const auto fits = [](const at::Tensor& tensor, const std::vector<float>& numbers) {
    return tensor.numel() == std::ssize(numbers);
  };
  if (!std::ranges::equal(tensors, checkpoint.numbers, fits))
    return fail(ErrorCode::invalid_input, file + " is of another network");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    auto& numbers = checkpoint.numbers[i];
    tensors[i].copy_(at::from_blob(numbers.data(), tensors[i].sizes(), at::kFloat));
  }
  return {};
}

}  // namespace fleetfit::train
